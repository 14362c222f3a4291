// The machine, as device code calls it.
#pragma once

#include "tools/cuda_emulator/machine/device/abi.h"

namespace tutti::emulator {

const Machine& machineTable();

}  // namespace tutti::emulator
