// The exception that Tutti's C++ code throws. Header only; a value, no state.
#pragma once

#include <stdexcept>
#include <string>

#include "nccl.h"

namespace tutti {

/// A failed call: `code()` is what the C API returns for it, `what()` says what failed, on which rank and
/// peer, what was expected and got, and what to try.
class Error : public std::runtime_error {
 public:
  Error(ncclResult_t code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ncclResult_t code() const noexcept { return code_; }

 private:
  ncclResult_t code_;
};

}  // namespace tutti
