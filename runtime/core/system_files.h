// Small files of /proc and /sys, by which the system tells of itself. What cannot be read is as if it were
// not there: containers hide much.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The first line; empty where it cannot be read.
std::string firstLine(const std::filesystem::path& path);
/// The first number; `otherwise` where there is none.
std::int64_t numberIn(const std::filesystem::path& path, std::int64_t otherwise);
/// What is in a folder, sorted; nothing where it is not there.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder);
/// The numbers of a list such as "0-3,8-11", ascending; beyond `most` none. What is no list is empty.
std::vector<int> numbersOfList(std::string_view list, int most = 1 << 16);

}  // namespace tutti
