// The floating-point environment in which combine's arithmetic is defined.
#pragma once

#include "kernels/host/cpu.h"

namespace tutti {

/// For its lifetime the calling thread rounds to nearest, keeps denormals and masks exceptions, whatever the
/// caller had set (MXCSR on x86: flushing denormals is common in training programs). The caller's control
/// word, its exception flags included, comes back at the end: operations raise no flags that the caller could
/// see.
class FloatEnvironment {
 public:
  FloatEnvironment() : callers_(floatControl()) {
    if (callers_ != kDefaultFloatControl) setFloatControl(kDefaultFloatControl);
  }
  ~FloatEnvironment() { setFloatControl(callers_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::uint32_t callers_;
};

}  // namespace tutti
