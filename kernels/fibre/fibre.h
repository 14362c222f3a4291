// A fibre: a function with a stack of its own, resumed and suspended by hand. Sanitizers are told of every
// switch.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>

#include "kernels/fibre/stack_pool.h"

namespace tutti {

/// Runs in the thread that resumes it, on a stack of that thread's pool. Must be done() before it is
/// destroyed: nothing unwinds its stack.
class Fibre {
 public:
  /// What ThreadSanitizer is to believe: that a switch orders what both sides do, or not. Then the body
  /// begins and ends hidden from it (thread_sanitizer.h), and so must the caller be, who creates, resumes and
  /// destroys it.
  enum class Switches { order, do_not_order };

  /// `body` gets the fibre, to call suspend() on, and must not throw.
  explicit Fibre(std::function<void(Fibre&)> body, Switches switches = Switches::order);
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;
  ~Fibre();

  /// Runs the body until it suspends or returns. From outside the fibre.
  void resume();
  /// Goes back to whoever resumed. From inside the fibre.
  void suspend();

  bool done() const { return done_; }

  const void* stackBegin() const { return static_cast<const char*>(stack_.sp) - stack_.size; }
  std::size_t stackBytes() const { return stack_.size; }

 private:
  boost::context::fiber enter(boost::context::fiber&& caller);
  // Part of their callers: what a function that switches leaves behind on ThreadSanitizer's own stack of
  // calls would be taken from that of the other side.
  [[gnu::always_inline]] void arriveInside();
  [[gnu::always_inline]] void leaveInside(bool for_good);

  std::function<void(Fibre&)> body_;
  const Switches switches_;
  PooledStack allocator_;
  boost::context::stack_context stack_;
  boost::context::fiber inside_;
  boost::context::fiber outside_;
  bool done_ = false;

  // Sanitizer bookkeeping of the two stacks; unused in plain builds.
  void* outside_fake_stack_ = nullptr;
  void* inside_fake_stack_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
};

}  // namespace tutti
