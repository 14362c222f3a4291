// The main program that all collectives share.
#pragma once

#include <string>

#include "bench/collective.h"
#include "bench/rank.h"

namespace tutti::perf {

/// Reads the command line, starts the ranks (processes with --launch, threads and GPUs with -t and -g),
/// measures, reports. Returns the exit status: 0, 1 (wrong values, too slow, failed), 2 (bad arguments).
int runProgram(int argc, char** argv, const Collective& collective, Call call);

/// The exit status for bad arguments that show before runProgram() can be called; says why, on one rank.
int refuseArguments(const Collective& collective, const std::string& why);

}  // namespace tutti::perf
