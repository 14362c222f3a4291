#include "bench/json_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "bench/table.h"

namespace tutti::perf {
namespace {

using Json = nlohmann::ordered_json;

Json environment() {
  Json variables = Json::array();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("TUTTI_") || text.starts_with("NCCL_")) variables.push_back(text);
  }
  return variables;
}

/// Beside what is there already no file is made: it is written to. Devices, pipes, directories (which are
/// then refused), and whatever has its name in /dev, such as /dev/stdout.
bool isToBeOpened(const std::string& path) {
  std::error_code error;
  return path.starts_with("/dev/") || !std::filesystem::is_regular_file(path, error);
}

}  // namespace

JsonFile::JsonFile(const std::string& path, int format_version, const std::vector<std::string>& arguments)
    : path_(path) {
  for (int suffix = 0;; ++suffix) {
    file_.reset(std::fopen(path_.c_str(), "wxe"));
    if (!file_ && errno == EEXIST && isToBeOpened(path_)) file_.reset(std::fopen(path_.c_str(), "ae"));
    if (file_) break;
    if (errno != EEXIST)
      throw std::system_error(errno, std::generic_category(), "-J: cannot create " + path_);
    path_ = path + "." + std::to_string(suffix);
  }
  document_["version"] = format_version;
  document_["start_time"] = timeOfDay();
  document_["args"] = arguments;
  document_["env"] = environment();
}

void JsonFile::finish(const std::vector<std::string>& errors) {
  if (!file_) return;  // an earlier call has failed
  document_["errors"] = errors;
  document_["end_time"] = timeOfDay();
  const std::string text = document_.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0;
  const int error = errno;
  // A file system may tell only now that it had no room.
  if (std::fclose(file_.release()) == 0 && written) return;
  throw std::system_error(written ? errno : error, std::generic_category(), "-J: cannot write " + path_);
}

}  // namespace tutti::perf
