// What an application does with its buffers between two calls: it writes the whole input and reads the whole
// output.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::peers {

/// Eight bytes of equal elements.
struct Pattern {
  std::uint64_t word;
};

/// Fills the buffer with plain stores.
void rewrite(std::byte* buffer, std::size_t bytes, Pattern pattern);

/// Reads all of the buffer; true when it holds nothing but the pattern.
bool holds(const std::byte* buffer, std::size_t bytes, Pattern pattern);

}  // namespace tutti::peers
