#include "transports/verbs/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kCapIpcLock = 14;

/// A line of /proc/self/status, as a number; 0 where there is none.
std::uint64_t ownStatus(const std::string& field, int base) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1), nullptr, base);
  }
  return 0;
}

std::uint64_t lockedLimit() {
  rlimit limit{};
  const bool is_exempt = (ownStatus("CapEff", 16) >> kCapIpcLock & 1) != 0;
  if (is_exempt || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<std::uint64_t>::max();
  return limit.rlim_cur;
}

std::string limitText(std::uint64_t need) {
  return fmt::format(
      "the limit of locked memory (ulimit -l) is {} KiB, {} KiB are in use, {} KiB more are needed. "
      "Raise it (/etc/security/limits.conf: memlock unlimited; containers: --ulimit memlock=-1), or "
      "lower TUTTI_SLOT_BYTES, TUTTI_SLOTS or TUTTI_LANES",
      lockedLimit() / 1024, ownStatus("VmPin", 10), need / 1024);
}

}  // namespace

RegisteredMemory::RegisteredMemory(std::shared_ptr<VerbsDevice> device, std::span<std::byte> bytes)
    : device_(std::move(device)), bytes_(bytes) {
  const std::uint64_t limit = lockedLimit();
  if (limit != std::numeric_limits<std::uint64_t>::max() &&
      ownStatus("VmPin", 10) * 1024 + bytes.size() > limit) {
    throw Error(ncclSystemError, fmt::format("RDMA device {}: {}", device_->name(), limitText(bytes.size())));
  }
  region_ = device_->verbs().reg_mr(device_->domain(), bytes.data(), bytes.size(),
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (region_ != nullptr) return;
  const int error = errno;
  throw Error(ncclSystemError, fmt::format("RDMA device {}: registering {} bytes: {} (errno {}){}",
                                           device_->name(), bytes.size(), std::strerror(error), error,
                                           error == ENOMEM ? "; " + limitText(bytes.size()) : ""));
}

RegisteredMemory::~RegisteredMemory() { device_->verbs().dereg_mr(region_); }

void UserMemory::add(std::span<std::byte> buffer) {
  const std::lock_guard lock(mutex_);
  buffers_[buffer.data()] = {.bytes = buffer, .by_device = {}};
}

void UserMemory::remove(const void* buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.erase(static_cast<const std::byte*>(buffer));
}

std::shared_ptr<RegisteredMemory> UserMemory::find(const std::shared_ptr<VerbsDevice>& device,
                                                   std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  auto after = buffers_.upper_bound(bytes.data());
  if (after == buffers_.begin()) return nullptr;
  Buffer& buffer = std::prev(after)->second;
  if (bytes.data() + bytes.size() > buffer.bytes.data() + buffer.bytes.size()) return nullptr;
  const auto [place, is_new] = buffer.by_device.try_emplace(device.get());
  if (is_new) {
    try {
      place->second = std::make_shared<RegisteredMemory>(device, buffer.bytes);
    } catch (const Error&) {
      // It is not tried again; the bytes are copied.
    }
  }
  return place->second;
}

}  // namespace tutti
