// Several programs in one thread: each a strand that yields to the others where it would wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/fibre/fibre.h"
#include "runtime/core/wait.h"

namespace tutti {

/// Runs strands to their ends in the thread that calls run(). Used once.
///
/// A strand that waits leaves its question with the runner, which asks the questions of all waiting strands
/// round by round, on its own stack, and resumes those that hold or whose fault cell is tripped. A question
/// is asked anew in every round, so no wake-up can be lost: there are none. When a round found nothing to do
/// the thread waits a little (Pace); about every 20 ms each waiting strand's monitor looks at its wait.
///
/// A single strand runs in place: no fibre, no switch, and it waits by itself.
class FibreRunner : public WaitScheduler {
 public:
  /// Called with what the strand's WaitContexts hold as scheduler.
  using Body = std::function<void(WaitScheduler*)>;

  static constexpr std::size_t kNone = SIZE_MAX;

  /// `spins`: pauses before an idle thread yields, see Pace.
  explicit FibreRunner(std::uint32_t spins) : spins_(spins) {}
  FibreRunner(const FibreRunner&) = delete;
  FibreRunner& operator=(const FibreRunner&) = delete;
  virtual ~FibreRunner() = default;

  /// Adds a strand that starts after strand `after` has ended, and returns its number. Strands start in the
  /// order in which they were added.
  std::size_t add(Body body, std::size_t after = kNone);

  /// Returns when all strands have ended; then throws what the first of them threw.
  void run();

  bool wait(const WaitContext& context, int peer, ReadyQuestion ready) final;

 protected:
  /// Asks the question of a waiting strand; for tests, which break it on purpose.
  virtual bool ask(std::size_t /*strand*/, const ReadyQuestion& ready) { return ready(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// A wait, on the stack of the strand that waits.
  struct Wait {
    const WaitContext& context;
    int peer;
    ReadyQuestion ready;
    bool answer = false;
    bool is_timed = false;  ///< the clock is read only for waits that last
    WaitTime time;
    Clock::time_point next_inspection;
  };

  struct Strand {
    Body body;
    std::size_t after;
    std::unique_ptr<Fibre> fibre;  ///< once started
    Wait* wait = nullptr;          ///< while it waits
    bool ended = false;
  };

  bool visit(std::size_t number);
  bool start(Strand& strand);
  void resume(std::size_t number);
  void inspectWaits();
  Progress* anyProgress() const;

  std::uint32_t spins_;
  std::vector<Strand> strands_;
  std::size_t current_ = kNone;
  std::exception_ptr thrown_;
};

}  // namespace tutti
