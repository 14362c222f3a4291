// Runs tutti-train as its users do; what its test files share.
#pragma once

#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/command.h"

namespace tutti::test {

inline constexpr std::chrono::seconds kTrainLimit(120);

/// Payload is counted for the ring, whatever the library would choose by itself.
inline const std::map<std::string, std::string> kRing{{"NCCL_ALGO", "Ring"}};

inline CommandResult trainAlone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tutti-train");
  return runCommand(std::move(arguments), kRing, kTrainLimit);
}

/// tutti-run, which lets ranks say their part for so long once one of them has failed.
inline std::vector<std::string> withLauncher(int nranks) {
  return {"tutti-run", "--kill-after", "60", "-n", std::to_string(nranks)};
}

/// `launcher`: further options of tutti-run.
inline CommandResult trainOn(int nranks, const std::vector<std::string>& arguments,
                             const std::vector<std::string>& launcher = {},
                             const std::map<std::string, std::string>& environment = kRing) {
  std::vector<std::string> all = withLauncher(nranks);
  all.insert(all.end(), launcher.begin(), launcher.end());
  all.emplace_back("tutti-train");
  all.insert(all.end(), arguments.begin(), arguments.end());
  return runCommand(std::move(all), environment, kTrainLimit);
}

/// On so many hosts, by the algorithm that the library chooses.
inline CommandResult trainOnHosts(int nranks, int hosts, const std::vector<std::string>& arguments) {
  return trainOn(nranks, arguments, {"--hosts", std::to_string(hosts)}, {});
}

inline std::string both(const CommandResult& result) {
  return "stdout:\n" + result.out + "stderr:\n" + result.err;
}

inline std::string contentOf(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The document in a file; a JSON null when there is none.
inline nlohmann::json documentOf(const std::string& path) {
  return nlohmann::json::parse(contentOf(path), nullptr, false);
}

}  // namespace tutti::test
