// Pages in the address space.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/core/unique_fd.h"

namespace tutti::emulator {

/// A memfd's pages, readable and writable; the page after them is neither. Unmapped with the object. The
/// pages live as long as any process maps them.
class Mapping {
 public:
  /// New memory. Throws cudaErrorMemoryAllocation; a reason that a program's author can do something about,
  /// such as a limit of open files, is told.
  static std::shared_ptr<Mapping> create(std::size_t bytes);
  /// All of what `fd` names; it is not needed afterwards. Throws cudaErrorMapBufferObjectFailed.
  static std::shared_ptr<Mapping> open(const UniqueFd& fd, std::size_t bytes);

  Mapping(UniqueFd fd, std::byte* base, std::size_t bytes);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::byte* base() const { return base_; }
  /// -1 once it is closed.
  int fd() const { return fd_.get(); }
  /// For memory that no other process is to open: descriptors are scarce.
  void closeFd() { fd_ = UniqueFd(); }

 private:
  UniqueFd fd_;
  std::byte* base_;
  std::size_t reserved_bytes_;
};

}  // namespace tutti::emulator
