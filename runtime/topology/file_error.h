// A file that cannot be used, and where it is wrong.
#pragma once

#include <stdexcept>
#include <string>

#include "runtime/topology/plain_text.h"

namespace tutti {

/// what(): "NAME:LINE: reason", or "NAME: reason" of a file that cannot be read.
class FileError : public std::runtime_error {
 public:
  FileError(const std::string& name, int line, const std::string& reason)
      : std::runtime_error(plainText(name) + ":" + std::to_string(line) + ": " + reason) {}
  FileError(const std::string& name, const std::string& reason)
      : std::runtime_error(plainText(name) + ": " + reason) {}
};

}  // namespace tutti
