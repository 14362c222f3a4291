// Parses PTX as nvcc writes it (ISA 6 to 9). Throws Error with the line for what it does not know.
#pragma once

#include <string_view>
#include <vector>

#include "tools/cuda_emulator/ptx/syntax.h"

namespace tutti::emulator::ptx {

/// Variables and signatures; function bodies are passed over, but for their shared variables. Cheap.
Outline parseOutline(std::string_view text);

/// The statements of a function's body.
std::vector<Statement> parseBody(const Function& function);

/// Bytes of one element of a fundamental type, such as "b32"; 0 when there is no such type. A predicate: 1.
std::size_t bytesOfType(std::string_view type);

}  // namespace tutti::emulator::ptx
