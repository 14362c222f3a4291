#include "kernels/fibre/stack_pool.h"

#include <boost/context/protected_fixedsize_stack.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tutti {
namespace {

// A strand needs a few KiB; an error's text and the unwinding of an exception need the rest. Instrumented
// frames are several times larger.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kStackBytes = std::size_t{512} * 1024;
#else
constexpr std::size_t kStackBytes = std::size_t{128} * 1024;
#endif

/// Free stacks that a thread keeps: enough for an all-to-all of 64 ranks, and a bound on what idles.
constexpr std::size_t kMostKept = 256;

}  // namespace

StackPool& StackPool::ofThisThread() {
  thread_local StackPool pool;
  return pool;
}

StackPool::~StackPool() {
  for (auto& stack : free_) boost::context::protected_fixedsize_stack(kStackBytes).deallocate(stack);
}

boost::context::stack_context StackPool::take() {
  if (free_.empty()) return boost::context::protected_fixedsize_stack(kStackBytes).allocate();
  const boost::context::stack_context stack = free_.back();
  free_.pop_back();
  return stack;
}

void StackPool::giveBack(boost::context::stack_context& stack) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  // The frames below a fibre's body never return, so their red zones are still marked: for the next fibre,
  // and for whatever is mapped here once the stack is freed.
  __asan_unpoison_memory_region(static_cast<char*>(stack.sp) - stack.size, stack.size);
#endif
  try {
    if (free_.capacity() == 0) free_.reserve(kMostKept);
    if (free_.size() < kMostKept) {
      free_.push_back(stack);
      return;
    }
  } catch (...) {
    free_.shrink_to_fit();  // no memory for the list: the stack is freed instead
  }
  boost::context::protected_fixedsize_stack(kStackBytes).deallocate(stack);
}

}  // namespace tutti
