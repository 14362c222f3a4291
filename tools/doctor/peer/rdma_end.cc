#include "tools/doctor/peer/rdma_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <thread>

#include "tools/doctor/peer/conversation.h"
#include "transports/verbs/faults.h"

namespace tutti::doctor {
namespace {

constexpr std::size_t kLarge = 1U << 18;  ///< far more than a packet
constexpr std::size_t kSmall = sizeof(std::uint64_t);
constexpr std::uint64_t kMark = 0x7475747469;
constexpr std::size_t kArea =
    kLarge + kSmall;  ///< the small mark, then the large block, which ends in a mark
constexpr std::uint32_t kWindow = 8;
constexpr int kRoundTrips = 50;
constexpr std::chrono::milliseconds kLimit{3000};
constexpr std::chrono::milliseconds kBandwidthTime{300};

/// What is sent: marks at the beginning and at the end.
std::vector<std::byte> freshBytes() {
  std::vector<std::byte> bytes(2 * kArea);
  std::memcpy(bytes.data(), &kMark, kSmall);
  std::memcpy(bytes.data() + kLarge - kSmall, &kMark, kSmall);
  return bytes;
}

/// A device may have written it a moment ago.
bool isMarked(const std::byte* at) {
  std::atomic_thread_fence(std::memory_order_acquire);
  std::uint64_t value = 0;
  std::memcpy(&value, at, kSmall);
  return value == kMark;
}

}  // namespace

RdmaEnd::RdmaEnd(const VerbsPort& port, const Gid& gid, const RdmaSettings& settings)
    : settings_(settings),
      gid_(gid),
      bytes_(freshBytes()),
      memory_(port.device, bytes_),
      pairs_(port, 1, {.sends = kWindow, .receives = 1}, settings) {}

RdmaTarget RdmaEnd::target() const {
  return {.address = pairs_.address(gid_),
          .key = memory_.remoteKey(),
          .at = std::bit_cast<std::uint64_t>(bytes_.data()) + kArea};
}

void RdmaEnd::connect(const RdmaTarget& other) {
  other_ = other;
  pairs_.connect(gid_, other.address, settings_);
}

bool RdmaEnd::write(std::size_t bytes, std::size_t to_offset) {
  ibv_sge source = piece(std::bit_cast<std::uint64_t>(bytes_.data()), bytes, memory_.localKey());
  ibv_send_wr request{};
  request.sg_list = &source;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = other_.at + to_offset;
  request.wr.rdma.rkey = other_.key;
  return pairs_.post(0, request);
}

bool RdmaEnd::awaitCompletion(std::string& status) {
  const auto deadline = Clock::now() + kLimit;
  std::array<ibv_wc, 1> room;
  for (;;) {
    const auto done = pairs_.poll(room);
    if (!done.empty() && done[0].status == IBV_WC_SUCCESS) return true;
    if (!done.empty()) {
      status = explain(done[0].status);
      return false;
    }
    if (Clock::now() > deadline) break;
    std::this_thread::yield();
  }
  status = fmt::format("no acknowledgement in {} s", kLimit.count() / 1000);
  return false;
}

bool RdmaEnd::measureRoundTrip(RdmaTrial& trial) {
  std::vector<double> times;
  for (int i = 0; i < kRoundTrips; ++i) {
    const auto start = Clock::now();
    if (!write(kSmall, 0) || !awaitCompletion(trial.status)) return false;
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  std::ranges::nth_element(times, times.begin() + kRoundTrips / 2);
  trial.round_trip_us = times[kRoundTrips / 2];
  return true;
}

bool RdmaEnd::measureBandwidth(RdmaTrial& trial) {
  if (!write(kLarge, kSmall) || !awaitCompletion(trial.status)) return false;
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
  const auto start = Clock::now();
  const auto end = start + kBandwidthTime;
  while (Clock::now() < end || done < posted) {
    if (Clock::now() < end && posted - done < kWindow) {
      if (!write(kLarge, kSmall)) return false;
      ++posted;
    } else {
      if (!awaitCompletion(trial.status)) return false;
      ++done;
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  trial.gbps = static_cast<double>(done * kLarge) * 8 / 1e9 / seconds;
  return true;
}

void RdmaEnd::measure(RdmaTrial& trial) {
  trial.small_acknowledged = measureRoundTrip(trial);
  if (trial.small_acknowledged) trial.large_acknowledged = measureBandwidth(trial);
}

void RdmaEnd::noteArrived(RdmaTrial& trial) const {
  const std::byte* const area = bytes_.data() + kArea;
  trial.small_arrived = isMarked(area);
  trial.large_arrived = isMarked(area + kLarge);
}

}  // namespace tutti::doctor
