// For becomeChild(), after fork().
#pragma once

#include <memory>
#include <vector>

namespace tutti {

/// Puts a new object in the place of one that threads of the parent, which are not in the child, may have
/// been in the middle of. That one stays as it is, and reachable, for good. One thread at a time.
template <class T>
void renewInChild(std::unique_ptr<T>& object) {
  static auto* const of_parents = new std::vector<T*>;
  of_parents->push_back(object.release());
  object = std::make_unique<T>();
}

}  // namespace tutti
