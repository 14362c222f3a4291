// Parses operands and numbers.
#pragma once

#include "tools/cuda_emulator/ptx/scanner.h"
#include "tools/cuda_emulator/ptx/syntax.h"

namespace tutti::emulator::ptx {

/// One operand of an instruction, up to a comma or the end.
Operand parseOperand(Scanner& scanner);

/// A number as written in an initialiser or as an immediate; a float keeps its bits.
Operand parseNumber(Scanner& scanner);

}  // namespace tutti::emulator::ptx
