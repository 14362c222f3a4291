// The device code that the program and its libraries have registered.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "tools/cuda_emulator/machine/module.h"
#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/handle_table.h"

namespace tutti::emulator {

/// One fat binary. It becomes a module, of each device its own, when something of it is first used.
/// Thread-safe.
class Binary {
 public:
  explicit Binary(const void* container) : container_(container) {}
  /// On behalf of `user`, a kernel or a variable. Throws, after it has said why:
  /// cudaErrorNoKernelImageForDevice where there is no PTX, cudaErrorInvalidPtx where that cannot be
  /// translated.
  std::shared_ptr<Module> moduleOn(const Device& device, const std::string& user);

 private:
  const void* container_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Module>> modules_;
};

/// A kernel, and the module that keeps it.
using KernelPtr = std::shared_ptr<const Kernel>;

/// A __global__ function. Thread-safe.
class Function {
 public:
  Function(std::shared_ptr<Binary> binary, std::string name)
      : binary_(std::move(binary)), name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  /// To be asked about. Throws what moduleOn throws, and cudaErrorInvalidDeviceFunction where that has no
  /// such kernel.
  KernelPtr on(const Device& device) const;
  /// To be launched: translated, too. Throws the same.
  KernelPtr readyOn(const Device& device) const;

  /// What cudaFuncSetAttribute allowed; 0: never set.
  std::size_t dynamicSharedLimit() const { return dynamic_shared_limit_; }
  void setDynamicSharedLimit(std::size_t bytes) { dynamic_shared_limit_ = bytes; }

 private:
  std::shared_ptr<Binary> binary_;
  std::string name_;
  std::atomic<std::size_t> dynamic_shared_limit_{0};
};

struct VariablePlace {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
};

/// Thread-safe.
class Program {
 public:
  void addFunction(const std::shared_ptr<Binary>& binary, const void* host, const char* name);
  void addVariable(const std::shared_ptr<Binary>& binary, const void* host, const char* name);
  void forget(const std::shared_ptr<Binary>& binary);

  /// By the address of its host stub. Throws cudaErrorInvalidDeviceFunction.
  cudaKernel_t handle(const void* host) const;
  std::shared_ptr<Function> function(cudaKernel_t handle) const;
  /// By either.
  std::shared_ptr<Function> function(const void* host_or_handle) const;
  /// By the address of its host shadow. Throws cudaErrorInvalidSymbol.
  VariablePlace variable(const void* host, const Device& device) const;

 private:
  struct Variable {
    std::shared_ptr<Binary> binary;
    std::string name;
  };
  struct Entry {
    std::shared_ptr<Binary> binary;
    cudaKernel_t handle;
  };
  mutable std::shared_mutex mutex_;
  std::map<const void*, Entry> functions_;
  std::map<const void*, Variable> variables_;
  HandleTable<cudaKernel_t, Function> handles_;
};

Program& program();

}  // namespace tutti::emulator
