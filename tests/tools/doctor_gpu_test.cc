// tutti-doctor on a host with GPUs, which are emulated.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/harness/command.h"

namespace tutti::test {
namespace {

using nlohmann::json;

json doctorOnGpus(std::map<std::string, std::string> environment) {
  environment.insert({"TUTTI_DEVICE", "auto"});
  const CommandResult result = runCommand(
      {"tutti-run", "--emulate-gpus", "2", "-n", "1", "--no-prefix", "tutti-doctor", "--json"}, environment);
  json document = json::parse(result.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << result.out << result.err;
  return document;
}

json about(const json& document, const std::string& check) {
  for (const json& finding : document.value("findings", json::array())) {
    if (finding.at("area") == "GPUs" && finding.at("check") == check) return finding;
  }
  ADD_FAILURE() << check << " is not in " << document;
  return {{"level", ""}, {"seen", ""}};
}

TEST(DoctorOnGpus, FindsThemAndTriesThem) {
  const json document = doctorOnGpus({});
  EXPECT_NE(about(document, "devices").at("seen").get<std::string>().find("2: "), std::string::npos);
  EXPECT_EQ(about(document, "peer access").at("level"), "ok");
  EXPECT_EQ(about(document, "CUDA IPC").at("level"), "ok");
}

TEST(DoctorOnGpus, MemoryThatNoOtherProcessMayOpenIsAWarning) {
  const json document =
      doctorOnGpus({{"TUTTI_EMULATED_FAULTS", "fail:call=cudaIpcOpenMemHandle,error=cudaErrorNotSupported"}});
  EXPECT_EQ(about(document, "CUDA IPC").at("level"), "warning") << document;
  EXPECT_EQ(document.at("status"), "warning");
}

TEST(DoctorOnGpus, GpusThatDoNotComeUpAreAFailureInTheDriversWords) {
  const json document = doctorOnGpus(
      {{"TUTTI_DEVICE", "cuda"},
       {"TUTTI_EMULATED_FAULTS", "fail:call=cudaGetDeviceCount,error=cudaErrorInsufficientDriver"}});
  EXPECT_EQ(about(document, "devices").at("level"), "failure") << document;
  EXPECT_NE(about(document, "devices").at("seen").get<std::string>().find("driver"), std::string::npos);
}

}  // namespace
}  // namespace tutti::test
