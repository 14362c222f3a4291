// libtutti_cuda.so, as the runtime finds and opens it.
#pragma once

#include <atomic>
#include <memory>
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
  /// Where another thread of the parent was opening the library, the child begins anew.
  void becomeChild();

 private:
  struct Found {
    Accelerator* accelerator = nullptr;
    int devices = 0;
    std::string why_not = {};  ///< where there are no devices
  };
  static std::unique_ptr<const Found> look();
  Accelerator* open(std::string* why);

  std::unique_ptr<std::mutex> opening_ = std::make_unique<std::mutex>();  ///< one looks, the others wait
  std::atomic<const Found*> found_{nullptr};  ///< written once, complete, by who looks; stays for good
  GpuGraveyard graveyard_;
};

}  // namespace tutti
