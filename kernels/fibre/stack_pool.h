// Stacks for fibres, kept for the next use: making a protected one costs several system calls.
#pragma once

#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <vector>

namespace tutti {

/// The free stacks of one thread. Each has a page below it that may not be touched, so that overflow is a
/// fault and not silent damage. Memory is taken by the first touch of each page.
class StackPool {
 public:
  /// The calling thread's own; a stack goes back to the pool of the thread that ends with it.
  static StackPool& ofThisThread();

  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  boost::context::stack_context take();
  void giveBack(boost::context::stack_context& stack) noexcept;

 private:
  std::vector<boost::context::stack_context> free_;
};

/// What Boost.Context asks for stacks.
struct PooledStack {
  boost::context::stack_context allocate() { return StackPool::ofThisThread().take(); }
  void deallocate(boost::context::stack_context& stack) noexcept {
    StackPool::ofThisThread().giveBack(stack);
  }
};

}  // namespace tutti
