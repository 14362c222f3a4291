#include "runtime/core/settings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tutti/error.h"

namespace tutti {
namespace {

Settings read(const std::map<std::string, std::string>& variables) {
  return readSettings([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const std::string& name, const std::string& value) {
  try {
    read({{name, value}});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ncclInvalidUsage);
    return error.what();
  }
  return "accepted";
}

TEST(Settings, DefaultsAreUsable) {
  const Settings settings = read({});
  EXPECT_GE(settings.links.slot_count, 2U);
  EXPECT_EQ(settings.links.slot_bytes % 64, 0U);
  EXPECT_GT(settings.init_timeout.count(), 0);
  EXPECT_EQ(settings.log_level, LogLevel::none);
}

TEST(Settings, ValuesAreRead) {
  const Settings settings = read({{"TUTTI_TIMEOUT", "0.25"},
                                  {"TUTTI_SLOT_BYTES", "4096"},
                                  {"TUTTI_SLOTS", "8"},
                                  {"NCCL_DEBUG", "info"},
                                  {"NCCL_DEBUG_FILE", "/tmp/x.%p"}});
  EXPECT_EQ(settings.timeout.count(), 250);
  EXPECT_EQ(settings.links.slot_bytes, 4096U);
  EXPECT_EQ(settings.links.slot_count, 8U);
  EXPECT_EQ(settings.log_level, LogLevel::info);
  EXPECT_EQ(settings.log_file, "/tmp/x.%p");
}

TEST(Settings, WrongValuesAreRefusedByName) {
  const std::pair<const char*, const char*> wrong[] = {{"TUTTI_SLOTS", "1"},
                                                       {"TUTTI_SLOTS", "two"},
                                                       {"TUTTI_SLOTS", "4x"},
                                                       {"TUTTI_SLOT_BYTES", "100"},
                                                       {"TUTTI_LANES", "0"},
                                                       {"TUTTI_LANES", "-1"},
                                                       {"TUTTI_TIMEOUT", "-1"},
                                                       {"TUTTI_TIMEOUT", "nan"},
                                                       {"TUTTI_TIMEOUT", "inf"},
                                                       {"TUTTI_TIMEOUT", "1e99"},
                                                       {"TUTTI_INIT_TIMEOUT", "0"},
                                                       {"NCCL_DEBUG", "LOUD"},
                                                       {"TUTTI_BOOTSTRAP_PORT", "65536"},
                                                       {"NCCL_IB_ADDR_FAMILY", "AF_UNIX"}};
  for (const auto& [name, value] : wrong) {
    const std::string text = refusal(name, value);
    EXPECT_NE(text.find(std::string(name) + "=\"" + value + "\""), std::string::npos) << text;
  }
}

TEST(Settings, RdmaIsNotDemandedAndForbiddenAtOnce) {
  EXPECT_EQ(read({{"NCCL_IB_DISABLE", "1"}}).network_choice, NetworkChoice::sockets);
  EXPECT_EQ(read({{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "0"}}).network_choice, NetworkChoice::rdma);
  try {
    read({{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "1"}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("NCCL_IB_DISABLE=\"1\": expected 0, since NCCL_NET=IB"),
              std::string::npos)
        << error.what();
  }
}

TEST(Settings, NumbersOutOfRangeAreRefusedWithTheRange) {
  struct Range {
    const char* name;
    const char* below;  ///< nullptr: none
    const char* above;
    const char* range;
  };
  for (const Range& range : {Range{"NCCL_IB_GID_INDEX", "-2", "256", "0 to 255"},
                             {"NCCL_IB_TIMEOUT", "0", "32", "1 to 31"},
                             {"NCCL_IB_RETRY_CNT", nullptr, "8", "0 to 7"},
                             {"NCCL_IB_SL", nullptr, "16", "0 to 15"},
                             {"NCCL_IB_TC", nullptr, "256", "0 to 255"},
                             {"NCCL_IB_PKEY", nullptr, "65536", "0 to 65535"},
                             {"NCCL_IB_QPS_PER_CONNECTION", "0", "9", "1 to 8"},
                             {"NCCL_DMABUF_ENABLE", nullptr, "2", "0 to 1"}}) {
    for (const char* value : {range.below, range.above, "x"}) {
      if (value == nullptr) continue;
      const std::string text = refusal(range.name, value);
      EXPECT_NE(text.find(std::string("a whole number from ") + range.range), std::string::npos) << text;
    }
  }
}

TEST(Settings, GpuMemoryIsKeptFromDevicesByLevelsOfNccl) {
  const auto read = [](const char* level) {
    return readSettings(
        [level](const char* name) { return std::string(name) == "NCCL_NET_GDR_LEVEL" ? level : nullptr; });
  };
  EXPECT_TRUE(read(nullptr).rdma.gpu_slots);
  EXPECT_FALSE(read("LOC").rdma.gpu_slots);
  EXPECT_FALSE(read("0").rdma.gpu_slots);
  EXPECT_TRUE(read("LOC").ignored.empty());
  const Settings other = read("PHB");
  EXPECT_TRUE(other.rdma.gpu_slots);
  EXPECT_EQ(other.ignored, std::vector<std::string>{"NCCL_NET_GDR_LEVEL"});
}

TEST(Settings, VariablesThatNothingReadsAreNamed) {
  const char* environment[] = {
      "TUTTI_TIMEOT=3", "TUTTI_TIMEOUT=3",       "NCCL_P2P_DISABLE=1", "NCCL_DEBUG=INFO",
      "PATH=/NCCL_BIN", "TUTTI_EMULATED_GPUS=2", "TUTTI_RANK=0",       nullptr};
  EXPECT_EQ(unreadVariables(environment), (std::vector<std::string>{"NCCL_P2P_DISABLE", "TUTTI_TIMEOT"}));
}

TEST(Settings, VersionsOfNcclAreReadInBothWays) {
  EXPECT_EQ(read({}).nccl_version, 0);
  EXPECT_EQ(read({{"TUTTI_NCCL_VERSION", "2.27.5"}}).nccl_version, 22705);
  EXPECT_EQ(read({{"TUTTI_NCCL_VERSION", "22705"}}).nccl_version, 22705);
  for (const char* wrong :
       {"2.27", "2", "2.27.5.1", "2.27.", "2.8.4", "2804", "v2.27.5", "2.27.500", "-2.27.5"}) {
    EXPECT_NE(refusal("TUTTI_NCCL_VERSION", wrong).find("a version of NCCL from 2.9.0 on"), std::string::npos)
        << wrong;
  }
}

TEST(Settings, BlockingIsWhatIsSaid) {
  EXPECT_EQ(read({}).blocks, std::nullopt);
  EXPECT_EQ(read({{"NCCL_COMM_BLOCKING", "0"}}).blocks, false);
  EXPECT_EQ(read({{"NCCL_COMM_BLOCKING", "1"}}).blocks, true);
  EXPECT_NE(refusal("NCCL_COMM_BLOCKING", "2"), "accepted");
}

TEST(Settings, EveryOneIsDocumented) {
  std::ifstream file(TUTTI_SOURCE_DIR "/docs/settings.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const SettingRow& row : settingRows()) {
    const std::string line = "| `" + std::string(row.name) + "` | " +
                             (row.default_value.empty() ? "" : std::string(row.default_value)) + " | " +
                             std::string(row.meaning) + " |";
    EXPECT_NE(text.str().find(line), std::string::npos) << "docs/settings.md lacks:\n" << line;
  }
}

}  // namespace
}  // namespace tutti
