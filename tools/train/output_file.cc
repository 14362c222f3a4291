#include "tools/train/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "tools/train/errors.h"

namespace tutti::train {
namespace {

std::string systemWords(int error) { return std::generic_category().message(error); }

constexpr mode_t kMode = 0666;  // less the umask

}  // namespace

OutputFile::OutputFile(std::string option, std::string path)
    : option_(std::move(option)), path_(std::move(path)) {
  if (path_ == "-") {
    fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  } else {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    remove_ = fd_ >= 0;
    if (fd_ < 0 && errno == EEXIST) fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  }
  if (fd_ < 0) {
    throw UsageError(fmt::format("{} {}: cannot be written: {}", option_, path_, systemWords(errno)));
  }
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : option_(std::move(other.option_)),
      path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      remove_(std::exchange(other.remove_, false)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (remove_) ::unlink(path_.c_str());
}

void OutputFile::write(std::string_view content) {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) fail();
  if (S_ISREG(status.st_mode) && path_ != "-" && ::ftruncate(fd_, 0) != 0) fail();
  while (!content.empty()) {
    const ssize_t written = ::write(fd_, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail();
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  remove_ = false;
  if (::close(std::exchange(fd_, -1)) != 0) fail();
}

void OutputFile::fail() const {
  throw std::runtime_error(fmt::format("{} {}: cannot be written: {}", option_, path_, systemWords(errno)));
}

}  // namespace tutti::train
