// What holds for any bytes that a reader of topology files may meet. Each function returns if it does, and
// throws std::logic_error with what does not.
#pragma once

#include <string_view>

namespace tutti::test {

/// FileError or hosts that are valid, that have paths, and that are read back the same when written.
void checkNcclXml(std::string_view text);
void checkHwlocXml(std::string_view text);
/// The same of channels, for a host of four GPUs and two ports.
void checkGraphXml(std::string_view text);

}  // namespace tutti::test
