// A library of the system that is opened at run time, so that a machine without it loses what it is for and
// nothing else.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>

namespace tutti {

/// Opened with its symbols local, and never closed: what is found stays valid to the end of the process.
class SharedLibrary {
 public:
  /// Opens the first of `names` that can be opened, in their order.
  explicit SharedLibrary(std::initializer_list<const char*> names);

  /// Sets `function` to the library's `symbol`, of several versions the newest; to nullptr, and notes a
  /// problem, where it has none.
  template <class Function>
  void find(Function*& function, const char* symbol) {
    assign(function, required(symbol));
  }

  /// As find, for what older versions of the library do without: that it is missing is no problem.
  template <class Function>
  void findIfThere(Function*& function, const char* symbol) {
    assign(function, lookUp(symbol));
  }

  /// Empty: the library and all that was to be found are there. Else why it could not be opened (the system's
  /// words, for each name), or the first symbol that it has not.
  const std::string& problem() const { return problem_; }

 private:
  void* lookUp(const char* symbol) const;
  void* required(const char* symbol);

  template <class Function>
  static void assign(Function*& function, void* symbol) {
    static_assert(sizeof(function) == sizeof(symbol));
    std::memcpy(&function, &symbol,
                sizeof(symbol));  // dlsym knows no types
  }

  void* library_ = nullptr;
  std::string name_;
  std::string problem_;
};

}  // namespace tutti
