// The rendezvous of the ranks, and the file that tells them of it.
#pragma once

#include <string>

#include "nccl.h"

namespace tutti::run {

/// Opens the rendezvous in this process (ncclGetUniqueId; it lives as long as the process). Throws
/// tutti::Error with the library's words.
ncclUniqueId openRendezvous();

/// A file that only this user can read and that holds the 128 bytes of an id, in a fresh directory below
/// TMPDIR (or /tmp). Both are removed with the object.
class IdFile {
 public:
  /// Throws std::system_error.
  explicit IdFile(const ncclUniqueId& id);
  IdFile(const IdFile&) = delete;
  IdFile& operator=(const IdFile&) = delete;
  ~IdFile();

  const std::string& path() const { return path_; }

 private:
  void write(const ncclUniqueId& id) const;
  void remove() const noexcept;

  std::string directory_;
  std::string path_;
};

}  // namespace tutti::run
