// Text of files and of their names, as it may be shown and written.
#pragma once

#include <string>
#include <string_view>

namespace tutti {

/// UTF-8 in which each byte that is none, and each character that XML 1.0 forbids or a terminal obeys, is a
/// '?'. Tabs and ends of lines are blanks.
std::string plainText(std::string_view text);

}  // namespace tutti
