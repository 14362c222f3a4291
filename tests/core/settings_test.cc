#include "runtime/core/settings.h"

#include <fmt/format.h>
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
  EXPECT_EQ(settings.log.level, LogLevel::none);
  EXPECT_TRUE(settings.ignored.empty());
}

TEST(Settings, SomeActOnOneKindOfMemoryOnly) {
  const Settings settings = read({{"NCCL_MIN_NCHANNELS", "99"},
                                  {"NCCL_MAX_CTAS", "4"},
                                  {"NCCL_P2P_LEVEL", ""},
                                  {"NCCL_SHM_DISABLE", "1"},
                                  {"TUTTI_SLOTS", "5"}});
  EXPECT_EQ(settings.ignored_on_host, (std::vector<std::string>{"NCCL_MIN_NCHANNELS", "NCCL_MAX_CTAS"}));
  EXPECT_EQ(settings.ignored_on_gpus, (std::vector<std::string>{"NCCL_SHM_DISABLE"}));
  EXPECT_TRUE(settings.ignored.empty());
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
  EXPECT_EQ(settings.log.level, LogLevel::info);
  EXPECT_EQ(settings.log.file, "/tmp/x.%p");
}

TEST(Settings, WrongValuesAreRefusedByName) {
  const std::pair<const char*, const char*> wrong[] = {
      {"TUTTI_SLOTS", "1"},
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
      {"NCCL_IB_ADDR_FAMILY", "AF_UNIX"},
      {"NCCL_ALGO", "Rign"},
      {"NCCL_ALGO", "Ring,"},
      {"NCCL_ALGO", "alreduce:Ring"},
      {"NCCL_ALGO", "^Ring,Tree,CollnetDirect,CollnetChain,NVLS,NVLSTree,PAT"},
      {"NCCL_PROTO", "LL256"},
      {"NCCL_DEBUG_SUBSYS", "INIT,COL"},
      {"NCCL_DEBUG_TIMESTAMP_LEVELS", "NONE"},
      {"NCCL_CHECK_MODE", "1"},
      {"NCCL_COMM_BLOCKING", "no"},
      {"NCCL_P2P_LEVEL", "FAR"},
      {"NCCL_P2P_LEVEL", "-1"},
      {"NCCL_P2P_LEVEL", "1x"},
      {"NCCL_P2P_LEVEL", "NET"},
      {"NCCL_NET_GDR_LEVEL", "PIXB"},
      {"NCCL_CROSS_NIC", "3"},
      {"NCCL_GRAPH_DUMP_FILE_RANK", "-1"},
      {"NCCL_IGNORE_CPU_AFFINITY", "yes"},
      {"NCCL_MAX_NCHANNELS", "0"},
      {"NCCL_BUFFSIZE", "4M"},
      {"NCCL_NTHREADS", "many"},
      // Whose grammar is nobody else's.
      {"TUTTI_FAULTS", "foo"},
      {"NCCL_COMM_ID", "node7"},
      {"NCCL_SOCKET_IFNAME", "eth0,10.0.0.0/33"},
      {"NCCL_IB_HCA", "mlx5_0:0"},
      {"NCCL_IB_ADDR_RANGE", "10.0.0/8"},
      {"NCCL_NET_GDR_LEVEL", "NEAR"},
      {"NCCL_NET", "foo"}};
  for (const auto& [name, value] : wrong) {
    const std::string text = refusal(name, value);
    EXPECT_NE(text.find(std::string(name) + "=\"" + value + "\""), std::string::npos) << text;
  }
}

TEST(Settings, NetworksThatThereAreNotAreRefusedWithThoseThatThereAre) {
  EXPECT_EQ(read({{"NCCL_NET", "socket"}}).network_choice, NetworkChoice::sockets);
  EXPECT_NE(refusal("NCCL_NET", "AWS Libfabric").find("IB (RDMA) or Socket (TCP)"), std::string::npos);
  // Which one to load is another question, and without effect.
  EXPECT_EQ(read({{"NCCL_NET_PLUGIN", "foo"}}).ignored, std::vector<std::string>{"NCCL_NET_PLUGIN"});
}

TEST(Settings, WrongListsAreRefusedWithThePlace) {
  struct Case {
    const char* value;
    const char* problem;
  };
  for (const auto& [value, problem] :
       {Case{"^", "at character 2: a name is missing"},
        {";", "at character 1: a list is missing"},
        {"Ring;;broadcast:Ring", "at character 6: a list is missing"},
        {"Ring;Tree", "at character 6: \"Tree\" has no collective and colon before it"},
        {"allreduce:Ring; Tree", "at character 17: \"Tree\" has no collective and colon before it"},
        {"Ring,Tree, ring", "at character 12: \"ring\" is there twice"},
        {"Ring,,Tree", "at character 6: a name is missing"},
        {"Ring,", "at character 6: a name is missing"},
        {"Tree,^Ring", "at character 6: \"^Ring\" is none"},
        {"^Tree,Rign", "at character 7: \"Rign\" is none"},
        {":Ring", "at character 1: before a colon one of AllReduce"},
        {"Ring;alreduce:Ring", "at character 6: before a colon one of AllReduce"},
        {"allreduce:", "at character 11: a name is missing"},
        {"allreduce:Ring;AllReduce:Tree", "at character 16: a second list for the same collective"},
        {"allreduce:Ring:Tree", "at character 11: \"Ring:Tree\" is none"},
        {"^Ring,Tree,CollnetDirect,CollnetChain,NVLS,NVLSTree,PAT",
         "at character 1: the list leaves nothing"}}) {
    const std::string text = refusal("NCCL_ALGO", value);
    EXPECT_NE(text.find(problem), std::string::npos) << value << "\n" << text;
  }
  EXPECT_NE(refusal("NCCL_PROTO", "LL;Simple").find("at character 4: \"Simple\" has no"), std::string::npos);
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

/// NCCL's names, whatever the case, and the numbers that it maps to them.
TEST(Settings, LevelsAreThoseOfNccl) {
  const std::pair<const char*, PathClass> levels[] = {
      {"LOC", PathClass::loc}, {"NVL", PathClass::nvl}, {"pix", PathClass::pix}, {"PXB", PathClass::pxb},
      {"PHB", PathClass::phb}, {"Sys", PathClass::sys}, {"0", PathClass::loc},   {"1", PathClass::pix},
      {"2", PathClass::pxb},   {"3", PathClass::phb},   {"4", PathClass::sys},   {"5", PathClass::sys},
      {"100", PathClass::sys}};
  for (const auto& [text, level] : levels) {
    const Settings settings = read({{"NCCL_NET_GDR_LEVEL", text}, {"NCCL_P2P_LEVEL", text}});
    EXPECT_EQ(settings.rdma.gpu_level, level) << text;
    EXPECT_EQ(settings.topology.rdma_level, level) << text;
    EXPECT_EQ(settings.topology.p2p_level, level) << text;
    EXPECT_EQ(settings.uses_peer_access, level != PathClass::loc) << text;
    EXPECT_TRUE(settings.ignored.empty()) << text;
  }
  EXPECT_EQ(read({}).rdma.gpu_level, std::nullopt);
  EXPECT_EQ(read({}).topology.p2p_level, std::nullopt);
  EXPECT_EQ(read({}).topology.cross_nic, TopologyRules::CrossNic::automatic);
  EXPECT_EQ(read({{"NCCL_CROSS_NIC", "0"}}).topology.cross_nic, TopologyRules::CrossNic::no);
  EXPECT_EQ(read({{"NCCL_CROSS_NIC", "1"}}).topology.cross_nic, TopologyRules::CrossNic::yes);
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

PlanOverride planOf(const Settings& settings, Collective collective) {
  return settings.plans[static_cast<std::size_t>(collective)];
}

TEST(Settings, AlgorithmsHaveTheGrammarOfNccl) {
  using Pick = PlanOverride::Pick;
  struct Case {
    const char* value;
    Pick all_reduce;
    Pick broadcast;
  };
  for (const auto& [value, all_reduce, broadcast] :
       {Case{"Ring", Pick::ring, Pick::ring}, Case{"tree", Pick::not_ring, Pick::not_ring},
        Case{"Ring,Tree", Pick::automatic, Pick::automatic}, Case{"^Ring", Pick::not_ring, Pick::not_ring},
        Case{"^Tree", Pick::automatic, Pick::automatic},
        Case{"^Tree,CollnetDirect,CollnetChain,NVLS,NVLSTree,PAT", Pick::ring, Pick::ring},
        Case{"allreduce:Ring", Pick::ring, Pick::automatic},
        Case{"ALLREDUCE: Tree ; Broadcast:ring;", Pick::not_ring, Pick::ring},
        Case{"Ring;allreduce:^Ring", Pick::not_ring, Pick::ring},
        Case{"one_shot", Pick::one_shot, Pick::one_shot}}) {
    const Settings settings = read({{"NCCL_ALGO", value}});
    EXPECT_EQ(planOf(settings, Collective::all_reduce).algorithm, all_reduce) << value;
    EXPECT_EQ(planOf(settings, Collective::broadcast).algorithm, broadcast) << value;
    EXPECT_TRUE(settings.ignored.empty()) << value;
  }
}

TEST(Settings, ProtocolsHaveTheGrammarOfNccl) {
  using Form = PlanOverride::Form;
  const std::pair<const char*, Form> cases[] = {{"Simple", Form::plain},       {"LL", Form::packets},
                                                {"LL,LL128", Form::packets},   {"^LL", Form::automatic},
                                                {"^LL,LL128", Form::plain},    {"^Simple", Form::packets},
                                                {"reduce:LL", Form::automatic}};
  for (const auto& [value, form] : cases) {
    EXPECT_EQ(planOf(read({{"NCCL_PROTO", value}}), Collective::all_reduce).slots, form) << value;
  }
  const Settings plan_wins =
      read({{"NCCL_PROTO", "LL"}, {"NCCL_ALGO", "Ring"}, {"TUTTI_PLAN", "direct/slots"}});
  EXPECT_EQ(planOf(plan_wins, Collective::reduce), (PlanOverride{PlanOverride::Pick::direct, Form::plain}));
}

TEST(Settings, NumbersOfNcclMayBeHexadecimal) {
  EXPECT_EQ(read({{"NCCL_IB_TC", "0x6A"}}).rdma.traffic_class, 106);
  EXPECT_EQ(read({{"NCCL_BUFFSIZE", "0x100000"}}).links.most_slot_bytes, (1U << 20) / 4);
  EXPECT_NE(refusal("NCCL_IB_TC", "0x"), "accepted");
  EXPECT_NE(refusal("NCCL_IB_TC", "0x-1"), "accepted");
}

TEST(Settings, WhatNothingActsOnIsToldAndItsFormChecked) {
  EXPECT_EQ(read({{"NCCL_NTHREADS", "512"}, {"NCCL_NET_PLUGIN", "none"}, {"NCCL_PXN_DISABLE", "-1"}})
                .ignored.size(),
            3U);
  EXPECT_FALSE(effectOf("NCCL_NTHREADS", "512").acts);
  EXPECT_TRUE(effectOf("NCCL_ALGO", "Tree").acts);
  EXPECT_NE(effectOf("NCCL_ALGO", "Tre").problem, "");
}

TEST(Settings, SubsystemsAreListedOrLeftOut) {
  const auto shows = [](const char* value, LogSubsystem subsystem) {
    return (read({{"NCCL_DEBUG_SUBSYS", value}}).log.subsystems & bit(subsystem)) != 0;
  };
  EXPECT_TRUE(shows("", LogSubsystem::init));
  EXPECT_FALSE(shows("", LogSubsystem::coll));
  EXPECT_TRUE(shows("coll", LogSubsystem::coll));
  EXPECT_FALSE(shows("COLL,ENV", LogSubsystem::init));
  EXPECT_TRUE(shows("ALL", LogSubsystem::destroy));
  EXPECT_FALSE(shows("^INIT,NET", LogSubsystem::net));
  EXPECT_TRUE(shows("^INIT,NET", LogSubsystem::coll));
  EXPECT_EQ(read({{"NCCL_DEBUG_TIMESTAMP_LEVELS", "INFO,WARN"}}).log.timestamp_levels,
            bit(LogLevel::info) | bit(LogLevel::warn));
}

// The page is made of the table: where this fails, put what it prints into the page.
TEST(Settings, EveryOneIsDocumented) {
  std::ifstream file(TUTTI_SOURCE_DIR "/docs/environment.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string acting;
  for (const auto& [name, value, meaning] : actingSettings()) {
    acting += fmt::format("| `{}` | {} | {} |\n", name, value, meaning);
  }
  std::string idle;
  for (const auto& [name, value, why] : idleSettings()) idle += fmt::format("| `{}` | {} |\n", name, why);
  for (const std::string& table : {acting, idle}) {
    EXPECT_NE(text.str().find("|---|\n" + table + "\n"), std::string::npos) << "docs/environment.md lacks:\n"
                                                                            << table;
  }
}

}  // namespace
}  // namespace tutti
