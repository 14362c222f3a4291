#include "transports/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transports/memory_budget.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

[[noreturn]] void fail(const char* call, std::size_t bytes, const char* remedy) {
  const int error = errno;
  throw Error(ncclSystemError, fmt::format("{} for {} bytes of shared memory: {} (errno {}). {}", call, bytes,
                                           std::strerror(error), error, remedy));
}

std::byte* mapShared(int fd, std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

}  // namespace

SegmentToken randomToken() {
  SegmentToken token;
  randombytes_buf(token.data(), token.size());
  return token;
}

std::shared_ptr<Segment> Segment::create(const SegmentToken& token, std::size_t bytes) {
  requireFreeMemory(bytes);
  UniqueFd fd(::memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) fail("memfd_create", bytes, "Check the limit of open files (ulimit -n).");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    fail("ftruncate", bytes, "Check the limit of file sizes (ulimit -f).");
  }
  std::byte* data = mapShared(fd.get(), bytes);
  if (data == nullptr) fail("mmap", bytes, "Check the limit of address space (ulimit -v).");
  return std::shared_ptr<Segment>(new Segment(token, data, bytes, std::move(fd)));
}

void Segment::reserve(std::size_t offset, std::size_t bytes) {
  const int error = ::posix_fallocate(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (error != 0) {
    errno = error;
    fail("preallocation", bytes, "Free memory, or lower TUTTI_SLOT_BYTES, TUTTI_SLOTS or TUTTI_LANES.");
  }
  // Spares faults later; older kernels do not know it, and do without.
  ::madvise(data_ + offset, bytes, MADV_POPULATE_WRITE);
}

std::shared_ptr<Segment> Segment::map(const SegmentToken& token, UniqueFd fd, std::size_t bytes) {
  struct stat status {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(fd.get(), &status) != 0 ||
      static_cast<std::size_t>(status.st_size) != bytes) {
    throw Error(ncclSystemError,
                fmt::format("a peer handed over something else than a sealed segment of {} bytes", bytes));
  }
  std::byte* data = mapShared(fd.get(), bytes);
  if (data == nullptr) fail("mmap", bytes, "Check the limit of address space (ulimit -v).");
  return std::shared_ptr<Segment>(new Segment(token, data, bytes, std::move(fd)));
}

Segment::~Segment() { ::munmap(data_, bytes_); }

std::shared_ptr<Segment> SegmentCache::create(std::size_t bytes) {
  auto segment = Segment::create(randomToken(), bytes);
  const std::scoped_lock lock(mutex_);
  segments_[segment->token()] = segment;
  return segment;
}

std::shared_ptr<Segment> SegmentCache::find(const SegmentToken& token) {
  const std::scoped_lock lock(mutex_);
  const auto found = segments_.find(token);
  return found == segments_.end() ? nullptr : found->second.lock();
}

std::shared_ptr<Segment> SegmentCache::map(const SegmentToken& token, UniqueFd fd, std::size_t bytes,
                                           bool keeps_fd) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(segments_, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = segments_[token];
  auto segment = entry.lock();
  if (segment == nullptr) {
    segment = Segment::map(token, std::move(fd), bytes);
    if (!keeps_fd) segment->closeFd();
    entry = segment;
  }
  return segment;
}

}  // namespace tutti
