// Ranks that see GPUs which this machine does not have.
#pragma once

namespace tutti::run {

inline constexpr int kMaxEmulatedGpus = 64;

/// Puts into this process's environment, which the ranks inherit, what makes them load the emulated CUDA
/// runtime with `count` devices. Throws std::runtime_error where tutti-run was built without CUDA.
void emulateGpus(int count);

}  // namespace tutti::run
