// Libraries of this project that need CUDA, and are opened when a GPU is wanted.
#pragma once

#include <string>

namespace tutti::device {

/// Raised with every change of what passes between programs and their plugins; entries refuse another one.
inline constexpr int kPluginVersion = 2;

/// The symbol of a library that lies beside libtutti. The library stays open. nullptr, with *why in the
/// loader's words, where it cannot be opened, or has no such symbol.
void* findPluginEntry(const std::string& library, const char* symbol, std::string* why);

template <class Function>
Function pluginEntry(const std::string& library, const char* symbol, std::string* why) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the loader knows no types
  return reinterpret_cast<Function>(findPluginEntry(library, symbol, why));
}

}  // namespace tutti::device
