#include "tools/device/seat.h"

#include <chrono>
#include <thread>
#include <utility>

namespace tutti::device {

Seat::Seat(std::unique_ptr<Device> device, bool own_stream)
    : device_(std::move(device)), stream_(own_stream ? device_->makeStream() : nullptr) {}

Seat::Seat(Seat&& other) noexcept
    : device_(std::move(other.device_)),
      stream_(std::exchange(other.stream_, nullptr)),
      comm_(std::move(other.comm_)) {}

Seat::~Seat() {
  if (device_ == nullptr) return;
  device_->makeCurrent();
  comm_ = Comm(nullptr);  // its work is on the stream
  if (stream_ != nullptr) device_->destroyStream(stream_);
}

void Seat::requireGood() const {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm(), &state));
  check(state);
}

void Seat::finish() const {
  using std::chrono::steady_clock;
  constexpr auto kLook = std::chrono::milliseconds(50);
  // Much may be queued behind what has failed: the failure is told before all of it has passed.
  for (auto next = steady_clock::now() + kLook; !device_->isDone(stream_);) {
    std::this_thread::yield();
    if (steady_clock::now() < next) continue;
    next = steady_clock::now() + kLook;
    requireGood();
  }
  device_->synchronize(stream_);
  requireGood();
}

std::vector<Seat> takeSeats(const Devices& devices, const SeatPlan& plan) {
  const auto count = static_cast<std::size_t>(plan.count);
  std::vector<Seat> seats;
  seats.reserve(count);
  for (int i = 0; i < plan.count; ++i) {
    seats.emplace_back(devices.open(plan.first_device + i), plan.own_streams);
  }
  std::vector<ncclComm_t> comms(count);
  inOneGroup(count, [&](std::size_t i) {
    seats[i].device().makeCurrent();
    check(ncclCommInitRank(&comms[i], plan.nranks, plan.id, plan.first_rank + static_cast<int>(i)));
  });
  for (std::size_t i = 0; i < count; ++i) seats[i].join(comms[i]);
  return seats;
}

}  // namespace tutti::device
