// The one place through which every launch goes on the thread that carries it out.
#pragma once

namespace tutti {

/// Lives while a thread carries out operations: what must be so around them for the arithmetic, and is given
/// back to the caller afterwards, belongs here. Fibres that start within it inherit it.
class LaunchScope {
 public:
  LaunchScope() {}   // NOLINT(modernize-use-equals-default)
  ~LaunchScope() {}  // NOLINT(modernize-use-equals-default)
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;
};

}  // namespace tutti
