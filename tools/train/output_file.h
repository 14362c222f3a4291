// A file that is written at the end of a run, but whose path is tried at the start.
#pragma once

#include <string>
#include <string_view>

namespace tutti::train {

/// Move only. A file that this object created and nobody wrote is removed with it; one that was there before
/// keeps its content until write().
class OutputFile {
 public:
  /// `option` is for messages: "--json". The path "-" is standard output. Throws UsageError when `path`
  /// cannot be written.
  OutputFile(std::string option, std::string path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  const std::string& path() const { return path_; }

  /// Replaces the content. Once. Throws std::runtime_error with the system's words.
  void write(std::string_view content);

 private:
  [[noreturn]] void fail() const;

  std::string option_;
  std::string path_;
  int fd_ = -1;
  bool remove_ = false;
};

}  // namespace tutti::train
