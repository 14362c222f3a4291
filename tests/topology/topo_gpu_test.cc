// tutti-topo where CUDA's runtime is emulated: the virtual GPUs are part of the machine.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti::test {
namespace {

TEST(Topo, ShowsEmulatedGpus) {
  const ScratchDirectory scratch;
  const std::string file = scratch.path() + "/machine.json";
  const CommandResult result = runCommand(
      {"tutti-run", "--emulate-gpus", "3", "-n", "1", "tutti-topo", "--format", "json", "--output", file},
      {{"TUTTI_DEVICE", "auto"}});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  std::ifstream stream(file);
  const nlohmann::json document = nlohmann::json::parse(stream, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << file;
  int gpus = 0;
  for (const nlohmann::json& node : document.at("shapes").at(0).at("nodes"))
    gpus += node.at("kind") == "gpu" ? 1 : 0;
  EXPECT_EQ(gpus, 3);
  EXPECT_EQ(document.at("hosts").at(0).at("ranks").size(), 3);
}

}  // namespace
}  // namespace tutti::test
