// libtutti_cuda.so, as the runtime finds and opens it.
#pragma once

#include <mutex>
#include <string>

#include "runtime/core/accelerator.h"
#include "runtime/core/settings.h"
#include "runtime/gpu_remains.h"

namespace tutti {

/// The GPUs of this process: opened at most once, never closed. Thread-safe.
class GpuLibrary {
 public:
  /// The GPUs that communicators are to work on; nullptr for host memory, with *why in words where that was
  /// not asked for. Throws Error(ncclUnhandledCudaError) where GPUs were demanded and cannot be used.
  Accelerator* wanted(DeviceChoice choice, std::string* why);

  /// The GPUs if they were opened already, else nullptr.
  Accelerator* opened() const;

  /// For communicators on host memory, to tell addresses of GPUs from others: opens the library, if the
  /// process uses CUDA anyway. nullptr where it does not.
  Accelerator* ifCudaIsUsed();

  GpuGraveyard& graveyard();
  void lockForFork() { graveyard_.lockForFork(); }
  void unlockAfterFork() { graveyard_.unlockAfterFork(); }
  /// Before it is unlocked in the child.
  void becomeChild() { graveyard_.becomeChild(); }

 private:
  Accelerator* open(std::string* why);

  mutable std::mutex mutex_;
  bool is_tried_ = false;
  Accelerator* accelerator_ = nullptr;
  int devices_ = 0;
  std::string why_not_;
  GpuGraveyard graveyard_;
};

}  // namespace tutti
