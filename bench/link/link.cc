#include "bench/link/link.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "bench/inputs.h"

namespace tutti::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kGuard = 64;  ///< bytes behind a message that are looked at, too
constexpr std::byte kGarbage{0xa5};

double secondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// Byte `index` of message `seed`.
std::byte byteOf(std::uint64_t seed, std::size_t index) {
  return static_cast<std::byte>(mix(seed + index / 8) >> (index % 8 * 8));
}

/// Of the fifth of the messages that took the least time; `arrivals` begins with the start.
double fastestFifth(const std::vector<Clock::time_point>& arrivals) {
  const std::size_t messages = arrivals.size() - 1;
  const std::size_t window = (messages + 4) / 5;
  double fewest = secondsBetween(arrivals.front(), arrivals[window]);
  for (std::size_t i = 1; i + window < arrivals.size(); ++i) {
    fewest = std::min(fewest, secondsBetween(arrivals[i], arrivals[i + window]));
  }
  return fewest > 0 ? static_cast<double>(window) / fewest : 0;
}

}  // namespace

Link::Link(const device::Seat& seat, const Buffers& buffers)
    : seat_(seat),
      rank_(seat.rank()),
      exchange_(std::span(&seat, 1)),
      largest_(buffers.bytes),
      buffers_(seat, buffers.bytes + kGuard, 0, buffers.registered) {}

void Link::send(std::size_t bytes) {
  check(ncclSend(buffers_.send(), bytes, ncclUint8, 1 - rank(), seat_.comm(), seat_.stream()));
  if (seat_.stream() != nullptr) seat_.finish();
}

void Link::receive(std::size_t bytes) {
  check(ncclRecv(buffers_.recv(), bytes, ncclUint8, 1 - rank(), seat_.comm(), seat_.stream()));
  if (seat_.stream() != nullptr) seat_.finish();
}

void Link::meet() {
  if (rank() == 0) {
    send(1);
    receive(1);
  } else {
    receive(1);
    send(1);
  }
}

Bandwidth Link::bandwidth(std::size_t bytes, std::size_t warmup, std::size_t iterations) {
  const auto pass = [&] { rank() == 0 ? send(bytes) : receive(bytes); };
  for (std::size_t i = 0; i < warmup; ++i) pass();
  meet();
  std::vector<Clock::time_point> times{Clock::now()};
  times.reserve(iterations + 1);
  for (std::size_t i = 0; i < iterations; ++i) {
    pass();
    times.push_back(Clock::now());
  }
  // A send returns when its buffer may be used again; that all has arrived, the receiver knows.
  rank() == 0 ? receive(1) : send(1);
  const double seconds = secondsBetween(times.front(), Clock::now());
  const double peak = fastestFifth(times);
  const std::vector<double> peaks = exchange_.gather<double>(std::span(&peak, 1));
  const double messages_per_s = static_cast<double>(iterations) / seconds;
  const auto size = static_cast<double>(bytes);
  return {.iterations = iterations,
          .peak_bytes_per_s = size * std::max(peaks[1], messages_per_s),
          .average_bytes_per_s = size * messages_per_s,
          .messages_per_s = messages_per_s};
}

IterationStats Link::latency(std::size_t bytes, std::size_t warmup, std::size_t iterations) {
  std::vector<double> half_us;
  half_us.reserve(iterations);
  for (std::size_t i = 0; i < warmup + iterations; ++i) {
    const auto start = Clock::now();
    if (rank() == 0) {
      send(bytes);
      receive(bytes);
    } else {
      receive(bytes);
      send(bytes);
    }
    if (i >= warmup) half_us.push_back(secondsBetween(start, Clock::now()) * 1e6 / 2);
  }
  return statsOf(std::move(half_us));
}

void Link::fill(std::byte* at, std::size_t bytes, std::uint64_t seed) {
  device::HostView view(seat_.device(), seat_.stream(), at, bytes);
  for (std::size_t i = 0; i < bytes; ++i) view.data()[i] = byteOf(seed, i);
  view.store();
}

std::uint64_t Link::wrongOf(std::size_t bytes, std::uint64_t seed, std::optional<std::size_t> corrupt) {
  device::HostView view(seat_.device(), seat_.stream(), buffers_.recv(), bytes + kGuard);
  view.load();
  if (corrupt && *corrupt < bytes) view.data()[*corrupt] ^= std::byte{1};
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += view.data()[i] != byteOf(seed, i) ? 1 : 0;
  for (std::size_t i = bytes; i < bytes + kGuard; ++i) wrong += view.data()[i] != kGarbage ? 1 : 0;
  return wrong;
}

std::uint64_t Link::countWrong(std::size_t bytes, std::optional<std::size_t> corrupt) {
  const auto seedOf = [this](int sender) { return mix(2 * checks_ + static_cast<std::uint64_t>(sender)); };
  fill(buffers_.send(), bytes, seedOf(rank()));
  seat_.device().fill(buffers_.recv(), std::to_integer<std::uint8_t>(kGarbage), bytes + kGuard,
                      seat_.stream());
  if (rank() == 0) {
    send(bytes);
    receive(bytes);
  } else {
    receive(bytes);
    send(bytes);
  }
  const std::uint64_t wrong = wrongOf(bytes, seedOf(1 - rank()), rank() == 1 ? corrupt : std::nullopt);
  ++checks_;
  const std::vector<std::uint64_t> all = exchange_.gather<std::uint64_t>(std::span(&wrong, 1));
  return all[0] + all[1];
}

}  // namespace tutti::perf
