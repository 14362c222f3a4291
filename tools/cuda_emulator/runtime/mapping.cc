#include "tools/cuda_emulator/runtime/mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "tools/cuda_emulator/machine/memory_check.h"
#include "tools/cuda_emulator/runtime/error.h"

namespace tutti::emulator {
namespace {

std::size_t pageBytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

std::size_t wholePages(std::size_t bytes) { return (bytes + pageBytes() - 1) / pageBytes() * pageBytes(); }

/// nullptr, with errno, where that fails.
std::byte* mapGuarded(int fd, std::size_t bytes) {
  const auto reserved = wholePages(bytes) + pageBytes();
  void* const base = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (::mmap(base, wholePages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    const int error = errno;
    ::munmap(base, reserved);
    errno = error;
    return nullptr;
  }
  return static_cast<std::byte*>(base);
}

[[noreturn]] void failAllocation(const char* step, std::size_t bytes) {
  say(fmt::format("{} for {} bytes: {}", step, bytes, std::generic_category().message(errno)));
  throw CudaError(cudaErrorMemoryAllocation);
}

}  // namespace

std::shared_ptr<Mapping> Mapping::create(std::size_t bytes) {
  UniqueFd fd(::memfd_create("emulated device memory", MFD_CLOEXEC));
  if (!fd) failAllocation("memfd_create", bytes);
  if (::ftruncate(fd.get(), static_cast<off_t>(wholePages(bytes))) != 0) failAllocation("ftruncate", bytes);
  auto* const base = mapGuarded(fd.get(), bytes);
  if (base == nullptr) failAllocation("mmap", bytes);
  return std::make_shared<Mapping>(std::move(fd), base, bytes);
}

std::shared_ptr<Mapping> Mapping::open(const UniqueFd& fd, std::size_t bytes) {
  auto* const base = mapGuarded(fd.get(), bytes);
  require(base != nullptr, cudaErrorMapBufferObjectFailed);
  return std::make_shared<Mapping>(UniqueFd(), base, bytes);
}

Mapping::Mapping(UniqueFd fd, std::byte* base, std::size_t bytes)
    : fd_(std::move(fd)), base_(base), reserved_bytes_(wholePages(bytes) + pageBytes()) {}

Mapping::~Mapping() {
  if (!memoryIsChecked()) {
    ::munmap(base_, reserved_bytes_);
    return;
  }
  // The pages go, the addresses are never used again.
  static_cast<void>(::mmap(base_, reserved_bytes_, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
}

}  // namespace tutti::emulator
