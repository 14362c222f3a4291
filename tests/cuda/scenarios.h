// What ranks on GPUs do in tests: by name, so that they can be threads or processes.
#pragma once

#include <string>

#include "tests/cuda/test_rank.h"

namespace tutti::test {

/// Throws where something is wrong, also for an unknown name.
void runScenario(const std::string& name, TestRank& rank);

// work.cc
void collectives(TestRank& rank);   ///< each algorithm, several sizes and streams
void transfers(TestRank& rank);     ///< more queues than blocks, in both directions
void twoStreams(TestRank& rank);    ///< one order, whatever the stream
void graphReplays(TestRank& rank);  ///< captured work, replayed among work that is queued directly
void capturedFork(TestRank& rank);  ///< two streams of one capture
void wokenReplays(TestRank& rank);  ///< somebody is told before a replay

// regions.cc
void registeredBuffers(TestRank& rank);  ///< used in place; passed through slots once withdrawn
void ownMemory(TestRank& rank);          ///< the same with a program's cudaMalloc, again and again
void foreignMemory(TestRank& rank);      ///< what cannot be exported is known as that

// ends.cc
void stopped(TestRank& rank);     ///< while a kernel waits
void mismatch(TestRank& rank);    ///< of counts
void unreceived(TestRank& rank);  ///< a slot that nobody asked for
void deadline(TestRank& rank);    ///< a kernel's own

}  // namespace tutti::test
