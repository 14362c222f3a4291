// What the system says of itself: its name, and files of /proc (small files: runtime/core/system_files.h).
#pragma once

#include <filesystem>
#include <string>

#include "runtime/core/system_files.h"

namespace tutti::doctor {

std::string hostName();

/// What stands behind "FIELD:" in a file of such lines, without blanks around it.
std::string fieldIn(const std::filesystem::path& path, const std::string& field);

}  // namespace tutti::doctor
