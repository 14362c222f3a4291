#include "runtime/status_words.h"

#include <fmt/format.h>

namespace tutti {

std::uint64_t numberOf(const RankStatus& line, const Descriptor& collective) {
  const std::uint64_t entered = line.entered.load(std::memory_order_acquire);
  for (std::uint64_t number = entered; number > 0 && number + RankStatus::kKept > entered; --number) {
    Descriptor found;
    if (line.readDescriptor(number, found) && found == collective) return number;
  }
  return 0;
}

std::string operationText(const RankStatus& line, std::uint64_t number) {
  Descriptor found;
  return line.readDescriptor(number, found) ? describe(found, number) : fmt::format("operation #{}", number);
}

std::string meetingText(const Attendance& attendance, const RankSet& excluded) {
  constexpr int kMost = 16;
  if (attendance.call != Attendance::Call::shrink) return nameOf(attendance.call);
  std::string ranks;
  int count = 0;
  for (int rank = 0; rank < kMaxRanks; ++rank) {
    if (excluded.contains(rank) && ++count <= kMost)
      ranks += fmt::format("{}{}", count > 1 ? ", " : "", rank);
  }
  if (count > kMost) ranks += fmt::format(" and {} more", count - kMost);
  return fmt::format("{}, excluding rank {}", nameOf(attendance.call), ranks);
}

namespace {

std::string lastCollectiveOf(const RankStatus& line) {
  const std::uint64_t entered = line.entered.load(std::memory_order_acquire);
  return entered == 0 ? "no collective" : operationText(line, entered);
}

}  // namespace

std::string endedSplitOf(const RankStatus& line) {
  return fmt::format("{}, after {}, which it gave up", nameOf(Attendance::Call::split),
                     lastCollectiveOf(line));
}

std::string lastCallOf(const RankStatus& line) {
  const Attendance attendance = line.readAttendance();
  const std::uint64_t completed = line.completed.load(std::memory_order_acquire);
  const std::uint64_t entered = line.entered.load(std::memory_order_acquire);
  const std::string last = lastCollectiveOf(line);
  if (attendance.isUnderWay()) return fmt::format("is in {}, after {}", nameOf(attendance.call), last);
  if (entered == 0) return "has entered no collective yet";
  return fmt::format("{} {}", entered > completed ? "is inside" : "last completed", last);
}

}  // namespace tutti
