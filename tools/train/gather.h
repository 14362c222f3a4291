// Small all-gathers, over the one integer type that every version of the library has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::train {

/// The bytes of all ranks, [ranks x bytes.size()]. All ranks pass the same size, a multiple of 4. Collective.
std::vector<std::byte> gatherBytes(Comm& comm, std::span<const std::byte> bytes);

/// The words of all ranks, [ranks x words.size()]. All ranks pass the same size. Collective.
std::vector<std::uint64_t> gatherWords(Comm& comm, std::span<const std::uint64_t> words);

}  // namespace tutti::train
