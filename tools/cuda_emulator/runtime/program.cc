#include "tools/cuda_emulator/runtime/program.h"

#include <fmt/format.h>

#include <utility>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/fat_binary.h"
#include "tools/cuda_emulator/runtime/memory_map.h"

namespace tutti::emulator {
namespace {

std::string extractFor(const std::string& name, const void* container) {
  try {
    return extractPtx(container);
  } catch (const std::exception& error) {
    say(fmt::format("{}: {}", ptx::readableName(name), error.what()));
    throw CudaError(cudaErrorNoKernelImageForDevice);
  }
}

/// What the machine cannot read or translate.
template <class Body>
void tellingWhy(const std::string& user, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    say(fmt::format("{}: {}", ptx::readableName(user), error.what()));
    throw CudaError(cudaErrorInvalidPtx);
  }
}

}  // namespace

std::shared_ptr<Module> Binary::moduleOn(const Device& device, const std::string& user) {
  const std::lock_guard lock(mutex_);
  auto& module = modules_[device.index()];
  if (module != nullptr) return module;
  const auto ptx = extractFor(user, container_);
  tellingWhy(user, [&] { module = Module::load(ptx); });
  return module;
}

KernelPtr Function::on(const Device& device) const {
  auto module = binary_->moduleOn(device, name_);
  const auto* const kernel = module->kernel(name_);
  require(kernel != nullptr, cudaErrorInvalidDeviceFunction);
  return {std::move(module), kernel};
}

KernelPtr Function::readyOn(const Device& device) const {
  const auto module = binary_->moduleOn(device, name_);
  tellingWhy(name_, [&] { module->prepare(); });
  return on(device);
}

void Program::addFunction(const std::shared_ptr<Binary>& binary, const void* host, const char* name) {
  const std::unique_lock lock(mutex_);
  functions_[host] = {binary, handles_.add(std::make_shared<Function>(binary, name))};
}

void Program::addVariable(const std::shared_ptr<Binary>& binary, const void* host, const char* name) {
  const std::unique_lock lock(mutex_);
  variables_[host] = {binary, name};
}

void Program::forget(const std::shared_ptr<Binary>& binary) {
  const std::unique_lock lock(mutex_);
  std::erase_if(variables_, [&](const auto& entry) { return entry.second.binary == binary; });
  std::erase_if(functions_, [&](const auto& entry) {
    if (entry.second.binary != binary) return false;
    handles_.remove(entry.second.handle);
    return true;
  });
}

cudaKernel_t Program::handle(const void* host) const {
  const std::shared_lock lock(mutex_);
  const auto found = functions_.find(host);
  require(found != functions_.end(), cudaErrorInvalidDeviceFunction);
  return found->second.handle;
}

std::shared_ptr<Function> Program::function(cudaKernel_t handle) const {
  return handles_.get(handle, cudaErrorInvalidDeviceFunction);
}

std::shared_ptr<Function> Program::function(const void* host_or_handle) const {
  {
    const std::shared_lock lock(mutex_);
    const auto found = functions_.find(host_or_handle);
    if (found != functions_.end()) return function(found->second.handle);
  }
  return function(static_cast<cudaKernel_t>(const_cast<void*>(host_or_handle)));
}

VariablePlace Program::variable(const void* host, const Device& device) const {
  Variable variable;
  {
    const std::shared_lock lock(mutex_);
    const auto found = variables_.find(host);
    require(found != variables_.end(), cudaErrorInvalidSymbol);
    variable = found->second;
  }
  VariablePlace place;
  const auto module = variable.binary->moduleOn(device, variable.name);
  place.address = module->variable(variable.name, &place.bytes);
  require(place.address != nullptr, cudaErrorInvalidSymbol);
  // Known already when it was asked for before.
  memoryMap().add({place.address, place.bytes, MemoryKind::variable, device.index(), 0, nullptr});
  return place;
}

Program& program() {
  static auto* const result =
      new Program;  // binaries are unregistered at exit, after static objects have gone
  return *result;
}

}  // namespace tutti::emulator
