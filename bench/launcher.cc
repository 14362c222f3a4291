#include "bench/launcher.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tutti::perf {

void becomeLauncher(const std::vector<std::string>& options, const std::vector<std::string>& arguments) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path beside = self.parent_path() / "tutti-run";
  std::vector<std::string> line{std::filesystem::exists(beside) ? beside.string() : "tutti-run",
                                "--no-prefix"};
  line.insert(line.end(), options.begin(), options.end());
  line.push_back(self.string());
  line.insert(line.end(), arguments.begin() + 1, arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(line.size() + 1);
  for (std::string& word : line) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers.front(), pointers.data());
  throw std::system_error(errno, std::generic_category(),
                          "cannot start tutti-run, neither beside " + self.string() + " nor in PATH");
}

}  // namespace tutti::perf
