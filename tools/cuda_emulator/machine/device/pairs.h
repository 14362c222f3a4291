// Packed instructions (f16x2, bf16x2): both halves alike.
#pragma once

#include "tools/cuda_emulator/machine/device/floats.h"

namespace tutti::emulator {

template <class Operation>
[[gnu::always_inline]] inline u32 eachHalf(Operation operation) {
  return static_cast<u32>(operation(0)) | (static_cast<u32>(operation(16)) << 16);
}

/// Calls kOperation on the low halves and on the high halves.
template <auto kOperation, class... Operands>
[[gnu::always_inline]] inline u32 paired(Operands... operands) {
  return eachHalf([&](u32 shift) { return kOperation(static_cast<u16>(operands >> shift)...); });
}

}  // namespace tutti::emulator
