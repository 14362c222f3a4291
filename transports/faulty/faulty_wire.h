// Faults on the bytes that a network sends, for tests: see ../README.md for what can be asked for.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "runtime/core/fault_plan.h"
#include "transports/wire.h"

namespace tutti {

/// How far off the next occurrence of a fault is that comes `every` so many bytes. `random`: nullptr, or what
/// varies it.
std::uint64_t faultDistance(std::uint64_t every, std::mt19937_64* random);

/// Used by one thread at a time.
class FaultyWire final : public Wire {
 public:
  FaultyWire(std::unique_ptr<Wire> wire, const FaultPlan& plan);

  ssize_t send(int fd, const msghdr& message) override;
  ssize_t receive(int fd, msghdr& message) override { return wire_->receive(fd, message); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Active {
    Fault fault;
    std::uint64_t next;                      ///< position of the next one
    std::optional<Clock::time_point> until;  ///< stall: its end, once it has begun
  };

  bool isDelayed(const Active& active, int fd);
  bool isStalled(Active& active);
  void schedule(Active& active, std::uint64_t from);
  ssize_t sendPart(int fd, const msghdr& message, std::size_t bytes);

  std::unique_ptr<Wire> wire_;
  std::optional<std::mt19937_64> random_;
  std::vector<Active> faults_;
  std::uint64_t position_ = 0;               ///< bytes sent so far
  std::map<int, Clock::time_point> delays_;  ///< by socket: when its bytes may move
};

}  // namespace tutti
