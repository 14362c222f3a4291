// Accesses of device code to memory that is not there: an error of the launch, as on a GPU, not the process's
// end.
#pragma once

#include "tools/cuda_emulator/machine/cuda_thread.h"

namespace tutti::emulator {

/// Says whose code runs from now on in this OS thread; nullptr: nobody's. A fault in that thread's module
/// unwinds the thread, with a mistake that its launch reports. Other faults, and all of them where the
/// program handles SIGSEGV itself (a sanitizer does), stay what they were.
void deviceCodeRuns(const CudaThread* thread);

/// Once per OS thread before device code runs in it: faults are handled on a stack of their own, since a full
/// stack is one of them.
void prepareForFaults();

}  // namespace tutti::emulator
