// Where a module's variables live.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "tools/cuda_emulator/ptx/syntax.h"

namespace tutti::emulator::ptx {

/// Global and constant variables are numbered: device code finds their addresses in Thread::variables. Shared
/// variables are offsets in the block's shared memory: first those that the whole module sees, then those of
/// the entry, then the dynamic part.
struct Layout {
  std::vector<const Variable*> variables;  // into the outline
  std::map<std::string_view, std::size_t> variable_index;
  std::map<std::string_view, std::size_t> shared_offset;
  /// Extern arrays without a size: where dynamic shared memory begins.
  std::map<std::string_view, const Variable*> dynamic_shared;
  /// Entry -> its own shared variables.
  std::map<std::string_view, std::map<std::string_view, std::size_t>> entry_shared_offset;
  std::map<std::string_view, std::size_t> entry_shared_bytes;
};

/// `outline` must outlive the result.
Layout layOut(const Outline& outline);

}  // namespace tutti::emulator::ptx
