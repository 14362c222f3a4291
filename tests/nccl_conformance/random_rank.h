// One rank that carries out a random program.
#pragma once

#include <nccl.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/nccl_conformance/random_program.h"

namespace conformance {

/// The arenas of all ranks after each step that is checked; empty after others.
std::vector<std::vector<Bytes>> expectedArenas(const RandomProgram& program);

/// Takes part as `rank`. `ids`: one for each communicator. `meet`: called by all ranks after a communicator
/// was destroyed. Ranks of one process wait for each other there, since CUDA may wait for all GPUs when
/// memory is freed: no kernel may be waiting for a rank that is doing so. Throws std::runtime_error, once all
/// of its communicators are aborted, when a call fails or a byte is wrong.
void takePart(const RandomProgram& program, const std::vector<std::vector<Bytes>>& expected, int rank,
              const std::vector<ncclUniqueId>& ids, const std::function<void()>& meet);

}  // namespace conformance
