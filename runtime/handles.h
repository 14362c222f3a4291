// The objects behind C handles that are alive, so that a stale or made-up handle is an error in words.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace tutti {

/// Handles are the objects' addresses, and are not dereferenced until found here. Thread-safe. Costs a lock
/// and a look-up per call, and keeps the object alive for the caller while another thread removes it.
template <class T>
class Handles {
 public:
  /// Never destroyed, like Process.
  static Handles& instance() {
    static auto* const handles = new Handles;
    return *handles;
  }

  T* add(std::shared_ptr<T> object) {
    const std::scoped_lock lock(mutex_);
    T* const handle = object.get();
    alive_.emplace(handle, std::move(object));
    return handle;
  }

  /// nullptr unless it is alive.
  std::shared_ptr<T> find(const T* handle) const {
    const std::scoped_lock lock(mutex_);
    const auto found = alive_.find(handle);
    return found != alive_.end() ? found->second : nullptr;
  }

  /// The same, and ends the handle: only one caller gets the object.
  std::shared_ptr<T> remove(const T* handle) {
    const std::scoped_lock lock(mutex_);
    const auto found = alive_.find(handle);
    if (found == alive_.end()) return nullptr;
    auto object = std::move(found->second);
    alive_.erase(found);
    return object;
  }

 private:
  Handles() = default;

  mutable std::mutex mutex_;
  std::unordered_map<const T*, std::shared_ptr<T>> alive_;
};

}  // namespace tutti
