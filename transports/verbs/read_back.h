// When a GPU sees what a device wrote into its memory.
//
// A completion tells that the data are on their way over PCIe, not that they have arrived. What brings
// certainty is a read of that memory by the same device: it goes the way of the data, and cannot overtake
// them. So nothing in a GPU's memory is published before such a read, begun after the completion, has come
// back.
//
// One thread at a time uses all of this.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "transports/verbs/memory.h"
#include "transports/verbs/queue_pairs.h"

namespace tutti {

/// Reads a byte of GPU memory by a queue pair that is connected to itself. One read serves all links of a
/// port that ask while none is under way.
class ReadBack {
 public:
  /// What is read; registered with the port's device.
  struct Source {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
  };

  /// Throws Error.
  ReadBack(const VerbsPort& port, const RdmaSettings& settings, const Source& source);

  /// A read that begins from now on; returns its number.
  std::uint64_t request();
  /// All reads up to this number are back. Never fewer than before.
  std::uint64_t done();
  /// Why no read comes back any more; "" as long as they do.
  const std::string& problem() const { return problem_; }
  /// The next one that comes back makes the device's channel readable.
  void arm() { pairs_.arm(); }

 private:
  void begin();

  Source source_;
  std::unique_ptr<std::byte, void (*)(void*)> target_;
  RegisteredMemory target_memory_;
  QueuePairs pairs_;
  std::uint64_t begun_ = 0;
  std::uint64_t done_ = 0;  ///< begun_, or one less
  bool wants_more_ = false;
  std::chrono::steady_clock::time_point since_{};  ///< the last one was begun
  std::string problem_;
};

/// How far one link can be published: what has arrived, of that what can be seen. Counts slots.
class Visibility {
 public:
  /// `count` are published. `by`: nullptr where all that has arrived can be seen, in host memory.
  void restart(std::shared_ptr<ReadBack> by, std::uint64_t count) {
    by_ = std::move(by);
    arrived_ = visible_ = count;
    awaited_.clear();
  }
  /// The connection has ended: what could not be seen by then has not arrived.
  void stop() { restart(nullptr, visible_); }

  std::uint64_t arrived() const { return arrived_; }
  /// `count` have arrived; with or without data in a GPU's memory.
  void arrive(std::uint64_t count, bool has_data = true) {
    if (count == arrived_) return;
    arrived_ = count;
    if (by_ == nullptr || (!has_data && awaited_.empty())) {
      visible_ = count;
      return;
    }
    const std::uint64_t read = by_->request();
    if (awaited_.empty() || awaited_.back().number != read) awaited_.push_back({.number = read, .covers = 0});
    awaited_.back().covers = count;
  }
  std::uint64_t visible() {
    for (; !awaited_.empty() && by_->done() >= awaited_.front().number; awaited_.pop_front()) {
      visible_ = awaited_.front().covers;
    }
    return visible_;
  }
  /// Something has arrived and cannot be seen yet.
  bool isPending() const { return !awaited_.empty(); }
  /// Why it never will; "" where it will.
  std::string problem() const { return by_ == nullptr ? "" : by_->problem(); }

 private:
  struct Read {
    std::uint64_t number;
    std::uint64_t covers;  ///< what had arrived before it began
  };

  std::shared_ptr<ReadBack> by_;
  std::uint64_t arrived_ = 0;
  std::uint64_t visible_ = 0;
  std::deque<Read> awaited_;  ///< in order: one under way, and the next
};

}  // namespace tutti
