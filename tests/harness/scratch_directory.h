// A fresh directory for one test, removed with its contents.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace tutti::test {

class ScratchDirectory {
 public:
  ScratchDirectory() : path_((std::filesystem::temp_directory_path() / "tutti-test.XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::system_error(errno, std::generic_category(), path_);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  bool empty() const { return std::filesystem::is_empty(path_); }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    std::string file = path_ + "/" + name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

  /// The same, executable.
  std::string addProgram(const std::string& name, const std::string& text) const {
    std::string file = write(name, text);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }

 private:
  std::string path_;
};

}  // namespace tutti::test
