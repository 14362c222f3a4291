// Compiles C++ into a shared object, kept on disk under a key, and loads it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tutti::emulator {

/// A loaded shared object.
class NativeCode {
 public:
  /// Takes the object of this key from the cache; else `units` says what to compile, each unit with `header`
  /// in front of it. The key must name all that decides the outcome but the compiler, which is added here.
  /// Processes that need the same object at once wait for the one that compiles. Throws Error with the
  /// compiler's words.
  static std::unique_ptr<NativeCode> make(const std::string& key, const std::string& header,
                                          const std::function<std::vector<std::string>()>& units);
  NativeCode(const NativeCode&) = delete;
  NativeCode& operator=(const NativeCode&) = delete;
  ~NativeCode();

  /// Throws Error when there is none.
  void* symbol(const std::string& name) const;

  /// Where the object's code lies in memory: [begin, end).
  struct Range {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
  };
  Range code() const { return code_; }

 private:
  explicit NativeCode(void* handle);

  void* handle_;
  Range code_;
};

}  // namespace tutti::emulator
