// link_perf over RDMA: that it takes that way, and that what arrives is right. Run by tests/softroce/guest.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/harness/command.h"
#include "tests/harness/scratch_directory.h"

namespace tutti {
namespace {

TEST(LinkPerf, MeasuresALinkByRdma) {
  const test::ScratchDirectory folder;
  const std::string path = folder.path() + "/link.json";
  // 1 KiB is the largest slot that travels as one write, 1025 the smallest that does not.
  for (const char* bytes : {"8", "1024", "1025", "300000"}) {
    const test::CommandResult result =
        test::runCommand({"link_perf", "--transport", "verbs", "--ib-dev", "h0r0,h1r0", "-b", bytes, "-e",
                          bytes, "-n", "20", "-J", path});
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.out.find("# Transport  : verbs, RDMA (h0r0:1)\n"), std::string::npos) << result.out;
    std::ifstream file(path);
    const auto report = nlohmann::json::parse(file);
    EXPECT_EQ(report["transport"]["name"], "verbs");
    ASSERT_EQ(report["results"].size(), 2U);
    for (const auto& row : report["results"]) EXPECT_EQ(row["wrong"], 0);
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace tutti
