#include "tools/cuda_emulator/runtime/ipc.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/memory_map.h"
#include "tools/cuda_emulator/runtime/settings.h"

namespace tutti::emulator {
namespace {

/// What a cudaIpcMemHandle_t holds: where the owner's descriptor is found in /proc, and what tells another
/// process or file that came to the same number from it.
struct Ticket {
  std::uint32_t magic;
  std::int32_t pid;
  std::uint64_t machine;     ///< settings().machine
  std::uint64_t start_time;  ///< of the process, in clock ticks since boot
  std::uint64_t inode;
  std::uint64_t bytes;
  std::int32_t fd;
  std::int32_t device;  ///< its number on the machine
};
constexpr std::uint32_t kMagic = 0x74757469;
static_assert(sizeof(Ticket) == 48 && sizeof(Ticket) <= sizeof(cudaIpcMemHandle_t));

using Key = std::tuple<std::int32_t, std::uint64_t, std::uint64_t>;  // pid, start time, inode

struct Imports {
  std::mutex mutex;
  struct Import {
    std::byte* base = nullptr;
    int count = 0;
    int device = 0;  ///< that opened it first
  };
  std::map<Key, Import> open;
};

Imports& imports() {
  static auto* const result = new Imports;
  return *result;
}

/// Field 22 of /proc/PID/stat; the second one, in parentheses, may hold spaces. 0 where there is no process.
std::uint64_t startTime(std::int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  auto at = name_end + 1;
  for (int field = 3; field <= 22; ++field) at = text.find(' ', at) + 1;
  return std::strtoull(text.c_str() + at, nullptr, 10);
}

std::uint64_t inodeOf(int fd) {
  struct stat status {};
  require(::fstat(fd, &status) == 0, cudaErrorMapBufferObjectFailed);
  return status.st_ino;
}

Ticket parse(const cudaIpcMemHandle_t& handle) {
  Ticket ticket{};
  std::memcpy(&ticket, &handle, sizeof(ticket));
  require(ticket.magic == kMagic, cudaErrorInvalidValue);
  return ticket;
}

/// This process's device that the memory lies on, or the current one where it sees no such device.
Device& deviceOf(const Ticket& ticket) {
  for (int index = 0; index < deviceCount(); ++index) {
    if (device(index).number() == ticket.device) return device(index);
  }
  return currentDevice();
}

UniqueFd openDescriptor(const Ticket& ticket) {
  require(startTime(ticket.pid) == ticket.start_time, cudaErrorMapBufferObjectFailed);
  const auto path = fmt::format("/proc/{}/fd/{}", ticket.pid, ticket.fd);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  require(static_cast<bool>(fd) && inodeOf(fd.get()) == ticket.inode, cudaErrorMapBufferObjectFailed);
  return fd;
}

std::byte* map(const Ticket& ticket) {
  const auto& owner = deviceOf(ticket);
  const bool same = currentDevice().number() == ticket.device;
  require(same || settings().peer_access, cudaErrorPeerAccessUnsupported);
  auto mapping = Mapping::open(openDescriptor(ticket), ticket.bytes);
  auto* const base = mapping->base();
  memoryMap().add({base, ticket.bytes, MemoryKind::imported, owner.index(), 0, std::move(mapping)});
  return base;
}

}  // namespace

cudaIpcMemHandle_t exportMemory(const void* address) {
  const auto found = memoryMap().find(address);
  require(found && found->kind == MemoryKind::device, cudaErrorInvalidValue);
  Ticket ticket{};
  ticket.magic = kMagic;
  ticket.pid = ::getpid();
  ticket.machine = settings().machine;
  ticket.start_time = startTime(ticket.pid);
  ticket.inode = inodeOf(found->mapping->fd());
  ticket.bytes = found->bytes;
  ticket.fd = found->mapping->fd();
  ticket.device = device(found->device).number();
  cudaIpcMemHandle_t handle{};
  std::memcpy(&handle, &ticket, sizeof(ticket));
  return handle;
}

std::byte* importMemory(const cudaIpcMemHandle_t& handle, unsigned flags) {
  require(flags == cudaIpcMemLazyEnablePeerAccess, cudaErrorInvalidValue);
  const auto ticket = parse(handle);
  require(ticket.machine == settings().machine, cudaErrorMapBufferObjectFailed);
  const bool own = ticket.pid == ::getpid() && ticket.start_time == startTime(ticket.pid);
  require(!own, cudaErrorDeviceUninitialized);
  auto& opened = imports();
  const std::lock_guard lock(opened.mutex);
  const Key key{ticket.pid, ticket.start_time, ticket.inode};
  const auto found = opened.open.find(key);
  if (found != opened.open.end()) {
    ++found->second.count;
    return found->second.base;
  }
  auto* const base = map(ticket);
  opened.open[key] = {base, 1, currentDevice().index()};
  return base;
}

void closeImport(void* base) {
  auto& opened = imports();
  const std::lock_guard lock(opened.mutex);
  const auto found = std::find_if(opened.open.begin(), opened.open.end(),
                                  [&](const auto& entry) { return entry.second.base == base; });
  require(found != opened.open.end(), cudaErrorInvalidValue);
  if (--found->second.count > 0) return;
  if (const auto allocation = memoryMap().find(base)) device(allocation->device).streams().synchronize();
  memoryMap().remove(base, {MemoryKind::imported});
  opened.open.erase(found);
}

void closeImportsOf(const Device& device) {
  auto& opened = imports();
  const std::lock_guard lock(opened.mutex);
  std::erase_if(opened.open, [&](const auto& entry) {
    if (entry.second.device != device.index()) return false;
    memoryMap().remove(entry.second.base, {MemoryKind::imported});
    return true;
  });
}

}  // namespace tutti::emulator
