// --device: which memory a program works on.
#pragma once

#include <string>

#include "tools/device/device.h"

namespace tutti::device {

enum class Choice { automatic, host, cuda };

/// Of "auto", "host" or "cuda"; throws std::invalid_argument, saying so, for anything else.
Choice parseChoice(const std::string& text);

std::string choiceName(Choice choice);

/// The devices of this process, and the library's choice with them: sets TUTTI_DEVICE, so before the library
/// is used and while there is one thread. `automatic` follows TUTTI_DEVICE where that is set, else takes GPUs
/// where one can be used, else host memory. Throws Error, with the driver's words and what to do instead,
/// where GPUs are demanded and there are none.
Devices& chooseDevices(Choice choice);

/// The number of this process among those of its host, as the launcher says; 0 without one.
int localRank();

}  // namespace tutti::device
