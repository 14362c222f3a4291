// What the environment says: whoever misspells a value or a name would test something else than he thinks, so
// a wrong value ends the program, with a line on standard error and status 2.
#pragma once

#include <cstddef>
#include <limits>

namespace tutti::emulator {

/// "0" or "1"; `otherwise` where `name` is not set or empty.
bool flagOf(const char* name, bool otherwise);
/// A whole number from 0 to `most`; `otherwise` where `name` is not set or empty.
std::size_t numberOf(const char* name, std::size_t otherwise,
                     std::size_t most = std::numeric_limits<std::size_t>::max());
/// One line on standard error for each variable that is named like the emulator's and is none of them.
void warnOfUnknownVariables();

}  // namespace tutti::emulator
