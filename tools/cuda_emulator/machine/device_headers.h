// The text of machine/device/*.h, as every translated module includes it.
#pragma once

#include <string>

namespace tutti::emulator {

/// All of them in one, in an order that needs no includes among them.
const std::string& deviceHeaders();

}  // namespace tutti::emulator
