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
    throw MemoryLimitError(ncclSystemError,
                           fmt::format("RDMA device {}: {}", device_->name(), limitText(bytes.size())));
  }
  region_ = device_->verbs().reg_mr(device_->domain(), bytes.data(), bytes.size(),
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (region_ != nullptr) return;
  const int error = errno;
  const auto text = fmt::format("RDMA device {}: registering {} bytes: {} (errno {})", device_->name(),
                                bytes.size(), std::strerror(error), error);
  if (error == ENOMEM) throw MemoryLimitError(ncclSystemError, text + "; " + limitText(bytes.size()));
  throw Error(ncclSystemError, text);
}

RegisteredMemory::~RegisteredMemory() { device_->verbs().dereg_mr(region_); }

void UserMemory::add(std::span<std::byte> buffer) {
  const std::lock_guard lock(mutex_);
  buffers_[buffer.data()].bytes = buffer;
}

void UserMemory::remove(const void* buffer) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(static_cast<const std::byte*>(buffer));
  if (found == buffers_.end()) return;
  count_ -= found->second.by_device.size();
  buffers_.erase(found);
  for (auto& [address, other] : buffers_) other.is_refused = false;
}

std::shared_ptr<RegisteredMemory> UserMemory::find(const std::shared_ptr<VerbsDevice>& device,
                                                   std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const auto after = buffers_.upper_bound(bytes.data());
  if (after == buffers_.begin()) return nullptr;
  Buffer& buffer = std::prev(after)->second;
  if (bytes.data() + bytes.size() > buffer.bytes.data() + buffer.bytes.size()) return nullptr;
  const auto known = buffer.by_device.find(device.get());
  if (known != buffer.by_device.end()) {
    known->second.used = ++clock_;
    return known->second.memory;
  }
  if (buffer.is_refused) return nullptr;
  auto made = make(device, buffer);
  if (made == nullptr) return nullptr;
  buffer.by_device[device.get()] = {made, ++clock_};
  ++count_;
  return made;
}

/// Other buffers make room. nullptr where that does not help.
std::shared_ptr<RegisteredMemory> UserMemory::make(const std::shared_ptr<VerbsDevice>& device,
                                                   Buffer& buffer) {
  const auto tell = [&](const auto& note, const std::string& how) {
    if (note)
      note(fmt::format("{} registered bytes at {}: {}", buffer.bytes.size(),
                       static_cast<const void*>(buffer.bytes.data()), how));
  };
  std::string problem = fmt::format("{} registrations are in use, more are not kept", most_);
  while (count_ < most_ || evict()) {
    try {
      auto made = std::make_shared<RegisteredMemory>(device, buffer.bytes);
      tell(notes_.in_place, fmt::format("RDMA device {} works on them in place", device->name()));
      return made;
    } catch (const MemoryLimitError& error) {
      problem = error.what();
      if (!evict()) break;
    } catch (const Error& error) {
      problem = error.what();
      break;
    }
  }
  buffer.is_refused = true;
  tell(notes_.copied, fmt::format("they are copied through slots: {}", problem));
  return nullptr;
}

/// Ends the registration that was not used for longest. False where all are in use.
bool UserMemory::evict() {
  Buffer* oldest = nullptr;
  const VerbsDevice* its_device = nullptr;
  std::uint64_t used = std::numeric_limits<std::uint64_t>::max();
  for (auto& [address, buffer] : buffers_) {
    for (const auto& [device, registration] : buffer.by_device) {
      if (registration.memory.use_count() > 1 || registration.used >= used) continue;
      oldest = &buffer;
      its_device = device;
      used = registration.used;
    }
  }
  if (oldest == nullptr) return false;
  oldest->by_device.erase(its_device);
  --count_;
  return true;
}

}  // namespace tutti
