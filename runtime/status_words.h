// What a rank's line of the status board says, in words.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/rank_status.h"

namespace tutti {

/// Number of the last collective like this that the rank entered; 0 if its line does not say.
std::uint64_t numberOf(const RankStatus& line, const Descriptor& collective);

/// "operation #6" as the line knows it: "AllReduce #6 sum float ×100".
std::string operationText(const RankStatus& line, std::uint64_t number);

/// What the rank called to make another communicator: "ncclCommShrink, excluding rank 2, 5".
std::string meetingText(const Attendance& attendance, const RankSet& excluded);

/// What a rank called that gave up a split: "ncclCommSplit, after AllReduce #6 sum float ×100, which it gave
/// up".
std::string endedSplitOf(const RankStatus& line);

/// What the rank is doing, to follow its name: "is inside AllReduce #6 sum float ×100".
std::string lastCallOf(const RankStatus& line);

}  // namespace tutti
