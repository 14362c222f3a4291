// The file of a JSON report (-J), whatever is measured.
#pragma once

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::perf {

/// One file, written once, at finish(). Of the environment only TUTTI_ and NCCL_ variables are recorded.
class JsonFile {
 public:
  /// Creates `path`, or, where that is a file, the first free one of PATH.0, PATH.1, ... What is no file,
  /// such as a pipe, is opened. Throws std::system_error, naming the path.
  JsonFile(const std::string& path, int format_version, const std::vector<std::string>& arguments);

  const std::string& path() const { return path_; }
  nlohmann::ordered_json& document() { return document_; }

  /// Writes and closes the file. `errors` says what ended the run early. Throws std::system_error.
  void finish(const std::vector<std::string>& errors);

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  nlohmann::ordered_json document_;
};

}  // namespace tutti::perf
