// The two ways in which tutti-train itself refuses; what the library refuses is a tutti::Error.
#pragma once

#include <stdexcept>

namespace tutti::train {

/// What the user asked for cannot be done. The rank that notices prints it and exits with status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Known to every rank after the same collective: all ranks throw it together, rank 0 alone prints it, and
/// all exit with status 1. The communicator still works.
class SharedFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tutti::train
