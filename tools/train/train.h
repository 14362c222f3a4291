// A whole training run: the loop over steps, and what is made of it.
#pragma once

#include "tools/train/console.h"
#include "tools/train/data.h"
#include "tools/train/options.h"
#include "tools/train/record.h"
#include "tools/train/world.h"

namespace tutti::train {

/// Trains on all ranks of `world`; rank 0's console speaks. What a run must not be (replicas differ, the loss
/// is not finite, --verify fails, --no-average does not make replicas differ) ends it and is in the record's
/// failure, the same on all ranks. With `keep_steps` the record holds every step. Throws tutti::Error when
/// the library fails. Collective.
RunRecord train(World& world, const Options& options, const Corpus& corpus, const Console& console,
                bool keep_steps);

}  // namespace tutti::train
