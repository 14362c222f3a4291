#include "kernels/fibre/fibre.h"

#include <unistd.h>

#include <cassert>
#include <utility>

// The sanitizers' own interface is the only way to tell them that the stack pointer jumps on purpose.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include "kernels/fibre/thread_sanitizer.h"
#endif

namespace tutti {

Fibre::Fibre(std::function<void(Fibre&)> body, Switches switches)
    : body_(std::move(body)), switches_(switches), stack_(allocator_.allocate()) {
#if defined(__SANITIZE_THREAD__)
  if (switches_ == Switches::do_not_order) {
    // What the last fibre did on this stack comes before nothing that this one does; below it is a guard
    // page.
    const auto guard = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    makeThreadSanitizerForget(static_cast<char*>(stack_.sp) - stack_.size + guard, stack_.size - guard);
  }
#endif
  inside_ = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack_.sp, stack_.size, stack_), allocator_,
      [this](boost::context::fiber&& caller) { return enter(std::move(caller)); });
#if defined(__SANITIZE_THREAD__)
  tsan_inside_ = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
  assert(done_);
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(tsan_inside_);
#endif
}

void Fibre::resume() {
#if defined(__SANITIZE_ADDRESS__)
  const auto* bottom = static_cast<const char*>(stack_.sp) - stack_.size;
  __sanitizer_start_switch_fiber(&outside_fake_stack_, bottom, stack_.size);
#endif
#if defined(__SANITIZE_THREAD__)
  tsan_outside_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_inside_, switches_ == Switches::order ? 0 : __tsan_switch_to_fiber_no_sync);
#endif
  inside_ = std::move(inside_).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(outside_fake_stack_, nullptr, nullptr);
#endif
}

inline void Fibre::arriveInside() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(inside_fake_stack_, &outside_bottom_, &outside_size_);
#endif
}

inline void Fibre::leaveInside([[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &inside_fake_stack_, outside_bottom_, outside_size_);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(tsan_outside_, switches_ == Switches::order ? 0 : __tsan_switch_to_fiber_no_sync);
#endif
}

void Fibre::suspend() {
  leaveInside(false);
  outside_ = std::move(outside_).resume();
  arriveInside();
}

boost::context::fiber Fibre::enter(boost::context::fiber&& caller) {
#if defined(__SANITIZE_THREAD__)
  if (switches_ == Switches::do_not_order) hideFromThreadSanitizer();
#endif
  outside_ = std::move(caller);
  arriveInside();
  body_(*this);
  done_ = true;
#if defined(__SANITIZE_THREAD__)
  if (switches_ == Switches::do_not_order) showToThreadSanitizer();
#endif
  leaveInside(true);
  return std::move(outside_);
}

}  // namespace tutti
