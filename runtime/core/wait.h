// How a thread waits for another rank: politely, with an eye on faults.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "runtime/core/descriptor.h"
#include "runtime/core/fault.h"

namespace tutti {

/// What a long wait asks from time to time. The runtime implements it; executors only call it.
class WaitMonitor {
 public:
  /// Looks for dead peers, differing arguments and passed deadlines, and trips the fault cell on one.
  /// `peer` is the rank waited for, `waited` how long this wait has lasted, by WaitTime. The wait's own
  /// question is asked again between two calls.
  virtual void inspect(int peer, std::chrono::nanoseconds waited) = 0;

  /// `peer` sent data of another operation than this rank is in. Trips the fault cell with both in words.
  virtual void differs(int peer, const Descriptor& theirs) = 0;

  /// Whether `peer` has neither failed nor left: only then is memory that it lent still lent. If not, trips
  /// the fault cell. Costs a look at its line of the status board.
  virtual bool isLending(int peer) = 0;

 protected:
  ~WaitMonitor() = default;
};

/// Of waits that nothing but their own question ends.
class NoMonitor final : public WaitMonitor {
 public:
  void inspect(int, std::chrono::nanoseconds) override {}
  void differs(int, const Descriptor&) override {}
  bool isLending(int) override { return true; }
};

/// Moves the posted slots and the credits of network links, in the thread that waits for them: no hop to
/// another thread. Used by whoever holds the communicator's turn.
class Progress {
 public:
  /// One non-blocking pass over what can be sent and received now; `peer` is waited for and comes first.
  virtual void poll(int peer) = 0;

  /// Slots were posted on a link to `peer`, or released on a link from it: sends what is worth sending now.
  /// Never blocks.
  virtual void push(int peer) = 0;

  /// Sleeps for `limit`, or until poll() would find something.
  virtual void nap(std::chrono::nanoseconds limit) = 0;

 protected:
  ~Progress() = default;
};

/// How long a wait has lasted, for deadlines. Who waits looks every 20 ms; between two looks no more than a
/// second counts. So a process that was stopped, or a machine that stood still, blames nobody for what it has
/// missed itself: the others get their time once it looks again.
class WaitTime {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void start(TimePoint now) { *this = WaitTime{now}; }
  std::chrono::nanoseconds look(TimePoint now) {
    constexpr std::chrono::nanoseconds kMost = std::chrono::seconds(1);
    waited_ += std::min<std::chrono::nanoseconds>(now - last_look_, kMost);
    last_look_ = now;
    return waited_;
  }
  /// At the last look.
  std::chrono::nanoseconds waited() const { return waited_; }

  WaitTime() = default;
  explicit WaitTime(TimePoint now) : last_look_(now) {}

 private:
  TimePoint last_look_;
  std::chrono::nanoseconds waited_{};
};

/// One wait's pace: first pauses, then yields, then short sleeps; and when it is time to ask the monitor.
/// Waiting steps: `spins` pauses (0 where ranks outnumber cores: the peer needs this core), then sched_yield
/// for about 2 ms, then sleeps that grow with the wait, from 100 µs to 10 ms.
class Pace {
 public:
  explicit Pace(std::uint32_t spins) : spins_(spins) {}

  /// Waits a little; with `progress`, naps there. True when the monitor should be asked (about every 20 ms).
  bool step(Progress* progress = nullptr);

  /// When step() has just returned true.
  std::chrono::nanoseconds waited() const { return time_.waited(); }

 private:
  std::uint32_t spins_;
  std::uint32_t steps_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point next_inspection_;
  WaitTime time_;
};

struct WaitContext;

/// A question that does not block, by reference: asked any number of times, only while its owner waits.
class ReadyQuestion {
 public:
  template <class Ready>
  explicit ReadyQuestion(const Ready& ready)
      : ask_([](const void* closure) -> bool { return (*static_cast<const Ready*>(closure))(); }),
        closure_(&ready) {}
  bool operator()() const { return ask_(closure_); }

 private:
  bool (*ask_)(const void*);
  const void* closure_;
};

/// Who waits on behalf of a program where several run in one thread: lets the others run meanwhile.
class WaitScheduler {
 public:
  /// Returns true once ready() holds, false once the context's fault cell is tripped.
  virtual bool wait(const WaitContext& context, int peer, ReadyQuestion ready) = 0;

 protected:
  ~WaitScheduler() = default;
};

/// Everything the waits of one program need to know. Used by the thread that runs the program.
struct WaitContext {
  const FaultCell& fault;
  WaitMonitor& monitor;
  std::uint32_t spins;
  WaitScheduler* scheduler = nullptr;  ///< nullptr: the program has the thread for itself
  Progress* progress = nullptr;        ///< nullptr: no network links

  /// Returns true once ready() holds, false once the fault cell is tripped.
  template <class Ready>
  bool until(int peer, Ready ready) const {
    if (ready()) return true;
    if (scheduler != nullptr) return scheduler->wait(*this, peer, ReadyQuestion(ready));
    Pace pace(spins);
    while (!ready()) {
      if (fault.tripped()) return false;
      if (progress != nullptr) progress->poll(peer);
      if (pace.step(progress)) monitor.inspect(peer, pace.waited());
    }
    return true;
  }
};

}  // namespace tutti
