#include "runtime/registrations.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>

#include "runtime/process.h"
#include "transports/network.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Peers close a region of GPU memory within a tenth of a second, unless they are gone or inside a kernel.
constexpr auto kUntilClosed = std::chrono::seconds(1);

}  // namespace

void Registrations::clear() {
  const std::scoped_lock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + kUntilClosed;
  for (const auto& [begin, buffer] : buffers_) forget(buffer, deadline);
  buffers_.clear();
}

void* Registrations::add(const void* buffer, std::size_t bytes, std::string* note) {
  if (buffer == nullptr || bytes == 0) {
    throw Error(ncclInvalidArgument,
                fmt::format("ncclCommRegister: {}", buffer == nullptr ? "buff is NULL" : "size is 0"));
  }
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
  if (bytes > UINTPTR_MAX - begin) {
    throw Error(ncclInvalidArgument,
                fmt::format("ncclCommRegister: {} bytes at {} go beyond the end of the address space. Is the "
                            "size in bytes?",
                            bytes, buffer));
  }
  const std::scoped_lock lock(mutex_);
  const auto after = buffers_.lower_bound(begin + bytes);
  if (after != buffers_.begin()) {
    const Buffer& before = std::prev(after)->second;
    if (before.begin + before.bytes > begin) {
      throw Error(
          ncclInvalidUsage,
          fmt::format("ncclCommRegister: {} bytes at {} overlap {} bytes at {}, which are registered with "
                      "this communicator already. Register a buffer once; ncclCommDeregister ends it",
                      bytes, buffer, before.bytes, std::bit_cast<const void*>(before.begin)));
    }
  }
  Buffer made{.begin = begin, .bytes = bytes, .region = 0, .region_offset = 0};
  if (gpu_ != nullptr) {
    makeGpuRegion(made, note);
  } else {
    makeHostRegion(made, note);
    if (network_ != nullptr) network_->useMemory({std::bit_cast<std::byte*>(begin), bytes});
  }
  count_.fetch_add(1, std::memory_order_release);
  return &buffers_.emplace(begin, made).first->second;
}

void Registrations::makeHostRegion(Buffer& buffer, std::string* note) {
  *note = "peers in other processes copy it (memory of ncclMemAlloc could be mapped by them)";
  const auto* memory = std::bit_cast<const void*>(buffer.begin);
  const auto allocation = process_.pin(memory, buffer.bytes);
  if (allocation == nullptr) return;
  buffer.region = publish(*allocation);
  buffer.region_offset = buffer.begin - reinterpret_cast<std::uintptr_t>(allocation->data());
  if (buffer.region == 0) process_.unpin(memory);
  *note = buffer.region != 0
              ? fmt::format("region {}: peers in other processes may map it", buffer.region)
              : fmt::format("no region is free ({} are in use): peers copy it", RegionTable::kSize);
}

void Registrations::makeGpuRegion(Buffer& buffer, std::string* note) {
  buffer.region = gpu_->publish(std::bit_cast<void*>(buffer.begin), buffer.bytes, note);
  if (buffer.region != 0) *note = fmt::format("region {} of GPU memory: peers may map it", buffer.region);
}

/// Tells the peers of a segment. Returns the region's number, or 0 when the table is full.
std::uint32_t Registrations::publish(const Segment& segment) {
  for (std::size_t tried = 0; tried < RegionTable::kSize; ++tried) {
    const std::uint32_t number = ++last_number_;
    RegionEntry& entry = table_.entry(number);
    if (number == 0 || entry.number.load(std::memory_order_relaxed) != 0) continue;
    entry.fd = segment.fd();
    entry.bytes = segment.bytes();
    entry.token = segment.token();
    entry.number.store(number, std::memory_order_release);
    return number;
  }
  return 0;
}

void Registrations::forget(const Buffer& buffer, std::chrono::steady_clock::time_point deadline) {
  if (network_ != nullptr && gpu_ == nullptr)
    network_->forgetMemory(std::bit_cast<const void*>(buffer.begin));
  if (buffer.region == 0) return;
  if (gpu_ != nullptr) {
    const auto left = std::max(deadline - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
    gpu_->withdraw(buffer.region, std::chrono::duration_cast<std::chrono::milliseconds>(left));
    return;
  }
  table_.entry(buffer.region).number.store(0, std::memory_order_release);
  process_.unpin(std::bit_cast<const void*>(buffer.begin));
}

void Registrations::remove(const void* handle) {
  std::unique_lock lock(mutex_);
  const auto found =
      std::ranges::find_if(buffers_, [handle](const auto& entry) { return &entry.second == handle; });
  if (found == buffers_.end()) {
    throw Error(ncclInvalidUsage,
                "ncclCommDeregister: the handle is none of this communicator's, or was deregistered already");
  }
  const Buffer buffer = found->second;
  buffers_.erase(found);
  count_.fetch_sub(1, std::memory_order_release);
  // Operations of other threads go on meanwhile; a peer may wait for just these.
  lock.unlock();
  forget(buffer, std::chrono::steady_clock::now() + kUntilClosed);
}

/// What peers have mapped stays the memory that was freed, so they are to forget it.
void Registrations::forgetFreed(Buffer& buffer) {
  gpu_->withdraw(buffer.region, std::chrono::milliseconds(0));
  buffer.region = 0;
  process_.log().write(
      LogLevel::warn, rank_,
      fmt::format("{} bytes at {} were freed while registered, and other memory got their address: it is "
                  "passed through slots. Call ncclCommDeregister before freeing, and register the new memory",
                  buffer.bytes, std::bit_cast<const void*>(buffer.begin)));
}

RegionPlace Registrations::find(const void* buffer, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer);
  const std::scoped_lock lock(mutex_);
  const auto after = buffers_.upper_bound(begin);
  if (after == buffers_.begin()) return {};
  Buffer& candidate = std::prev(after)->second;
  if (candidate.region == 0 || begin + bytes > candidate.begin + candidate.bytes) return {};
  if (gpu_ != nullptr && !gpu_->isStillIn(candidate.region, buffer)) {
    forgetFreed(candidate);
    return {};
  }
  return {candidate.region, candidate.region_offset + (begin - candidate.begin)};
}

}  // namespace tutti
