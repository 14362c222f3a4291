#include "runtime/core/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace tutti {

SharedLibrary::SharedLibrary(std::initializer_list<const char*> names) {
  std::string refusals;
  for (const char* name : names) {
    library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      name_ = name;
      return;
    }
    refusals += fmt::format("{}{}", refusals.empty() ? "" : "; ", ::dlerror());
  }
  problem_ = refusals;
}

void* SharedLibrary::lookUp(const char* symbol) const {
  // dlsym would search the program in place of a library that is not open.
  return library_ == nullptr ? nullptr : ::dlsym(library_, symbol);
}

void* SharedLibrary::required(const char* symbol) {
  void* const found = lookUp(symbol);
  if (found == nullptr && problem_.empty()) problem_ = fmt::format("{} has no {}", name_, symbol);
  return found;
}

}  // namespace tutti
