// Where the values of settings come from: the process's environment, then NCCL's files of NAME=VALUE lines.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/settings.h"

namespace tutti {

/// A value; only names with NCCL_ or TUTTI_ before them are kept. Of several values for a name the first
/// that was added counts.
class Environment {
 public:
  struct Value {
    std::string text;
    std::string origin;  ///< "environment", or "/etc/nccl.conf line 3"
  };

  /// This process's: its variables, then the file of NCCL_CONF_FILE or else ~/.nccl.conf, then
  /// /etc/nccl.conf, of which the last two may be missing. Throws Error(ncclInvalidUsage) where
  /// NCCL_CONF_FILE cannot be read.
  static Environment ofProcess();

  /// `variables`: NAME=VALUE, then nullptr.
  void addVariables(const char* const* variables);
  /// Lines of a file: NAME=VALUE without quotes, spaces around both are dropped; # opens a comment line.
  void addFile(const std::string& path, std::string_view text);

  const Value* find(std::string_view name) const;
  /// What a person should hear: lines of files that are passed over, names close to known ones, quotes that
  /// are taken for a part of a value.
  std::vector<std::string> warnings() const;
  /// Names that nothing here knows.
  std::vector<std::string> unknown() const;

 private:
  void add(std::string_view name, std::string_view value, const std::string& origin);

  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> bad_lines_;
};

/// A known name that a person may have meant by an unknown one; empty where none is close.
std::string_view closestSetting(std::string_view name);

/// As readSettings(get); a value that is refused is named with the file that it came from. With `problems`,
/// they take in what would be thrown, and the variable has its default.
Settings readSettings(const Environment& environment, std::vector<std::string>* problems = nullptr);

}  // namespace tutti
