#include "tools/run/id_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tools/run/unique_fd.h"
#include "tutti/tutti.h"

namespace tutti::run {

ncclUniqueId openRendezvous() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  return id;
}

IdFile::IdFile(const ncclUniqueId& id) {
  const char* base = std::getenv("TMPDIR");
  // Absolute, because a rank may change its directory before it joins.
  const auto parent = std::filesystem::absolute(base != nullptr && *base != '\0' ? base : "/tmp");
  directory_ = (parent / "tutti-run.XXXXXX").string();
  if (::mkdtemp(directory_.data()) == nullptr) {
    throw systemError("cannot create a directory for the id in '" + parent.string() + "' (TMPDIR)");
  }
  path_ = directory_ + "/id";
  try {
    write(id);
  } catch (...) {
    remove();
    throw;
  }
}

IdFile::~IdFile() { remove(); }

void IdFile::write(const ncclUniqueId& id) const {
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!file) throw systemError("cannot create '" + path_ + "'");
  // A umask may have taken more away than others' rights.
  if (::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) throw systemError("fchmod '" + path_ + "'");
  const ssize_t written = ::write(file.get(), id.internal, sizeof(id.internal));
  if (written < 0) throw systemError("cannot write '" + path_ + "'");
  if (written != static_cast<ssize_t>(sizeof(id.internal))) {
    throw std::system_error(ENOSPC, std::generic_category(), "cannot write all of '" + path_ + "'");
  }
}

void IdFile::remove() const noexcept {
  ::unlink(path_.c_str());
  ::rmdir(directory_.c_str());
}

}  // namespace tutti::run
