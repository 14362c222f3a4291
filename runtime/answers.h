// Which ranks do not answer, judged by the tables that a control plane's root makes of all that do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace tutti {

/// What one rank knows of that. told() is called by one thread, the rest by any.
class Answers {
 public:
  static constexpr std::chrono::milliseconds kAskEvery{100};

  Answers(int nranks, int rank);

  /// Whether the last asking was kAskEvery ago; then this counts as one.
  bool isTimeToAsk();

  /// A table came; `answered`: by rank, who is in it.
  void told(const std::vector<bool>& answered);

  /// Whether the rank is in the last table, and that came when it was asked for.
  bool isKnown(int rank) const;

  /// Whether the rank has not said what it is doing for a second, though it was asked and every rank between
  /// it and the root did: then it is stopped, or unreachable. Who is late once only lacked a core.
  bool isSilent(int rank) const;

  /// How long ago the first of all tables without it came; 0: it is in the last one.
  std::chrono::nanoseconds missingFor(int rank) const;

 private:
  bool isAnswered() const;

  int rank_;
  std::vector<std::atomic<std::int64_t>>
      missing_since_;  ///< by rank; nanoseconds of the clock; 0: is not missing
  std::atomic<std::int64_t> asked_at_{0};
  std::atomic<std::int64_t> told_at_{0};
};

}  // namespace tutti
