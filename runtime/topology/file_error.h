// A file that cannot be used, and where it is wrong.
#pragma once

#include <stdexcept>
#include <string>

namespace tutti {

/// what(): "NAME:LINE: reason".
class FileError : public std::runtime_error {
 public:
  FileError(const std::string& name, int line, const std::string& reason)
      : std::runtime_error(name + ":" + std::to_string(line) + ": " + reason) {}
};

}  // namespace tutti
