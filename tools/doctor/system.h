// What the system says of itself: its name, and small files of /proc and /sys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tutti::doctor {

std::string hostName();

/// The first line; empty where it cannot be read.
std::string firstLine(const std::filesystem::path& path);
/// The first number; `otherwise` where there is none.
std::int64_t numberIn(const std::filesystem::path& path, std::int64_t otherwise);
/// What stands behind "FIELD:" in a file of such lines, without blanks around it.
std::string fieldIn(const std::filesystem::path& path, const std::string& field);
/// What is in a folder, sorted; nothing where it is not there.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder);

}  // namespace tutti::doctor
