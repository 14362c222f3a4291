// Objects of the program that graphs keep: cudaUserObject_t.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace tutti::emulator {

/// Calls the program's destructor at its end, in whichever thread drops the last reference: on a real
/// machine in one of CUDA's own. The destructor may not call CUDA.
class UserObject {
 public:
  UserObject(void* data, cudaHostFn_t destroy) : data_(data), destroy_(destroy) {}
  UserObject(const UserObject&) = delete;
  UserObject& operator=(const UserObject&) = delete;
  ~UserObject();

 private:
  void* data_;
  cudaHostFn_t destroy_;
};

using UserObjectPtr = std::shared_ptr<const UserObject>;

/// The references that the program itself holds. Thread-safe.
class UserReferences {
 public:
  UserReferences(UserObjectPtr object, std::size_t count) : object_(std::move(object)), count_(count) {}

  /// Throws cudaErrorInvalidValue where there are none.
  UserObjectPtr object() const;
  void add(std::size_t count);
  /// True where none is left. Throws cudaErrorInvalidValue where there are fewer.
  bool drop(std::size_t count);

 private:
  mutable std::mutex mutex_;
  UserObjectPtr object_;
  std::size_t count_;
};

}  // namespace tutti::emulator
