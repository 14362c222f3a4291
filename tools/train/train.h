// The training loop: gradient of the own slice, average over the ranks, update, check.
#pragma once

#include "tools/train/data.h"
#include "tools/train/options.h"
#include "tutti/tutti.h"

namespace tutti::train {

/// Trains on all ranks of `comm`; rank 0 prints. Throws SharedFailure when replicas differ, the loss is not
/// finite, --verify fails or --no-average does not make replicas differ; tutti::Error when the library fails.
/// Collective.
void train(Comm& comm, const Options& options, const Corpus& corpus);

}  // namespace tutti::train
