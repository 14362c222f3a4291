// One rank that carries out a random program.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "tests/nccl_conformance/random_program.h"

namespace conformance {

/// The arenas of all ranks after each step that is checked; empty after others.
std::vector<std::vector<Bytes>> expectedArenas(const RandomProgram& program);

/// Takes part as `rank`. `ids`: one for each communicator. Throws std::runtime_error, once all of its
/// communicators are aborted, when a call fails or a byte is wrong.
void takePart(const RandomProgram& program, const std::vector<std::vector<Bytes>>& expected, int rank,
              const std::vector<ncclUniqueId>& ids);

}  // namespace conformance
