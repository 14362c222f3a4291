#include "tools/doctor/system.h"

#include <unistd.h>

#include <array>
#include <fstream>

namespace tutti::doctor {

namespace fs = std::filesystem;

std::string hostName() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string fieldIn(const fs::path& path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(field + ":")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", field.size() + 1);
    if (begin == std::string::npos) return "";
    return line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
  }
  return "";
}

}  // namespace tutti::doctor
