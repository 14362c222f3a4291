#include "transports/peer_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/core/unique_fd.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Opens what another process has open. Needs no more than the right to read that process's /proc entries.
UniqueFd openOf(int pid, int fd) {
  return UniqueFd(::open(fmt::format("/proc/{}/fd/{}", pid, fd).c_str(), O_RDWR | O_CLOEXEC));
}

bool finished(ssize_t done, std::size_t bytes, const char* call, std::string* error) {
  if (done == static_cast<ssize_t>(bytes)) return true;
  *error = done < 0 ? fmt::format("{}: {} (errno {})", call, std::strerror(errno), errno)
                    : fmt::format("{}: only {} of {} bytes", call, done, bytes);
  return false;
}

}  // namespace

PeerMemory::PeerMemory(const PeerInfo& peer, const RegionTable& regions, bool is_same_process,
                       SegmentCache& cache)
    : pid_(peer.pid), regions_(&regions), is_same_process_(is_same_process), cache_(&cache) {}

MemoryAccess PeerMemory::probe(const SegmentToken& token, std::uint64_t address, int fd) const {
  if (is_same_process_) return {.direct = true};
  MemoryAccess access;
  std::string error;
  SegmentToken seen{};
  auto* to = reinterpret_cast<std::byte*>(seen.data());
  access.copies = read(to, address, seen.size(), &error) && seen == token;
  const UniqueFd opened = openOf(pid_, fd);
  access.regions = opened && ::fcntl(opened.get(), F_GET_SEALS) > 0;
  return access;
}

/// The region's memory, mapped at the first call. Throws Error.
const Segment& PeerMemory::segmentOf(std::uint32_t region) {
  if (const auto found = mapped_.find(region); found != mapped_.end()) return *found->second;
  const RegionEntry& entry = regions_->entry(region);
  if (entry.number.load(std::memory_order_acquire) != region) {
    throw Error(
        ncclInvalidUsage,
        fmt::format("its region {} is gone: was the buffer freed or deregistered during the operation?",
                    region));
  }
  forgetDeadRegions();
  std::shared_ptr<Segment> segment = cache_->find(entry.token);
  if (segment == nullptr) {
    UniqueFd opened = openOf(pid_, entry.fd);
    if (!opened) {
      throw Error(ncclSystemError,
                  fmt::format("opening its region {}: {} (errno {})", region, std::strerror(errno), errno));
    }
    segment = cache_->map(entry.token, std::move(opened), entry.bytes, false);
  }
  return *mapped_.emplace(region, std::move(segment)).first->second;
}

std::byte* PeerMemory::map(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes,
                           std::string* error) {
  try {
    const Segment& segment = segmentOf(region);
    if (offset <= segment.bytes() && bytes <= segment.bytes() - offset) return segment.data() + offset;
    *error = fmt::format("bytes {} to {} of its region {} of {} bytes", offset, offset + bytes, region,
                         segment.bytes());
  } catch (const Error& failed) {
    *error = failed.what();
  }
  return nullptr;
}

/// Gives back what the peer has freed since: the memory lives until its last mapping goes.
void PeerMemory::forgetDeadRegions() {
  std::erase_if(mapped_, [this](const auto& known) {
    return regions_->entry(known.first).number.load(std::memory_order_acquire) != known.first;
  });
}

bool PeerMemory::read(std::byte* to, std::uint64_t from_address, std::size_t bytes,
                      std::string* error) const {
  const iovec local{to, bytes};
  const iovec remote{std::bit_cast<void*>(from_address), bytes};
  return finished(::process_vm_readv(pid_, &local, 1, &remote, 1, 0), bytes, "process_vm_readv", error);
}

bool PeerMemory::write(std::uint64_t to_address, const std::byte* from, std::size_t bytes,
                       std::string* error) const {
  const iovec local{const_cast<std::byte*>(from), bytes};
  const iovec remote{std::bit_cast<void*>(to_address), bytes};
  return finished(::process_vm_writev(pid_, &local, 1, &remote, 1, 0), bytes, "process_vm_writev", error);
}

}  // namespace tutti
