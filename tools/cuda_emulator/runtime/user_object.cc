#include "tools/cuda_emulator/runtime/user_object.h"

#include <utility>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/thread_state.h"

namespace tutti::emulator {

UserObject::~UserObject() {
  const bool was_inside = std::exchange(threadState().in_host_function, true);
  destroy_(data_);
  threadState().in_host_function = was_inside;
}

UserObjectPtr UserReferences::object() const {
  const std::lock_guard lock(mutex_);
  require(count_ > 0, cudaErrorInvalidValue);
  return object_;
}

void UserReferences::add(std::size_t count) {
  const std::lock_guard lock(mutex_);
  require(count_ > 0, cudaErrorInvalidValue);
  count_ += count;
}

bool UserReferences::drop(std::size_t count) {
  const std::lock_guard lock(mutex_);
  require(count <= count_, cudaErrorInvalidValue);
  count_ -= count;
  return count_ == 0;
}

}  // namespace tutti::emulator
