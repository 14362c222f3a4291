#include "tools/cuda_emulator/runtime/device.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/settings.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

namespace tutti::emulator {
namespace {

using Devices = std::vector<std::unique_ptr<Device>>;

Devices makeDevices() {
  Devices result;
  result.reserve(settings().devices.size());
  for (const int number : settings().devices) {
    result.push_back(std::make_unique<Device>(static_cast<int>(result.size()), number));
  }
  return result;
}

const Devices& devices() {
  static const auto* const result = new Devices(makeDevices());  // streams' threads may outlive main
  return *result;
}

}  // namespace

Device::Device(int index, int number) : index_(index), number_(number), streams_(*this) {}

cudaUUID_t Device::uuid() const {
  cudaUUID_t result{};
  const auto machine = settings().machine;
  const auto number = static_cast<std::uint32_t>(number_);
  std::memcpy(result.bytes, "EMUL", 4);
  std::memcpy(result.bytes + 4, &machine, sizeof(machine));
  std::memcpy(result.bytes + 12, &number, sizeof(number));
  return result;
}

std::string Device::busId() const {
  return fmt::format("{:04x}:{:02x}:00.0", kPciDomain, kFirstPciBus + number_);
}

void Device::takeMemory(std::size_t bytes) {
  auto used = used_bytes_.load();
  do {
    require(bytes <= settings().device_bytes - used, cudaErrorMemoryAllocation);
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes));
}

void Device::giveMemory(std::size_t bytes) { used_bytes_ -= bytes; }

std::size_t Device::freeMemory() const { return settings().device_bytes - used_bytes_.load(); }

void Device::fail(cudaError_t code, const std::string& why) {
  auto expected = cudaSuccess;
  if (!fault_.compare_exchange_strong(expected, code)) return;
  say(fmt::format("device {} failed: {}", index_, why));
  const std::lock_guard lock(mutex_);
  failure_.request_stop();
}

std::stop_token Device::failed() const {
  const std::lock_guard lock(mutex_);
  return failure_.get_token();
}

void Device::reset() {
  streams_.closeAll();
  fault_ = cudaSuccess;
  is_initialized_ = false;
  const std::lock_guard lock(mutex_);
  failure_ = {};
  peers_.clear();
}

bool Device::canAccess(const Device& peer) const { return &peer != this && settings().peer_access; }

void Device::enablePeer(const Device& peer) {
  require(&peer != this, cudaErrorInvalidDevice);
  require(canAccess(peer), cudaErrorPeerAccessUnsupported);
  const std::lock_guard lock(mutex_);
  require(peers_.insert(peer.index()).second, cudaErrorPeerAccessAlreadyEnabled);
}

void Device::disablePeer(const Device& peer) {
  const std::lock_guard lock(mutex_);
  require(peers_.erase(peer.index()) == 1, cudaErrorPeerAccessNotEnabled);
}

int deviceCount() { return static_cast<int>(devices().size()); }

Device& device(int index) {
  require(deviceCount() > 0, cudaErrorNoDevice);
  require(index >= 0 && index < deviceCount(), cudaErrorInvalidDevice);
  return *devices()[static_cast<std::size_t>(index)];
}

Device& currentDevice() { return device(threadState().device); }

}  // namespace tutti::emulator
