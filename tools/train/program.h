// What main() does, by mode. All return the exit status; what they throw is main's to word.
#pragma once

#include "tools/train/options.h"
#include "tutti/launch.h"

namespace tutti::train {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

/// One rank of a training run, with its reports.
int runTraining(const Options& options, const device::Devices& devices, const tuttiLaunch_t& launch);

/// Under a launcher only rank 0 measures; the other ranks end at once.
int runScaling(const Options& options);

/// Under a launcher only rank 0 speaks.
int runExplainTraffic(const Options& options);

}  // namespace tutti::train
