// What the ranks learn of each other's hosts, and where they sit in them.
#include <gtest/gtest.h>

#include <filesystem>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/bootstrap/rendezvous.h"
#include "runtime/cluster_exchange.h"
#include "runtime/process.h"
#include "runtime/seats.h"
#include "runtime/topology/nccl_xml.h"
#include "tests/harness/rank_group.h"
#include "tests/harness/ranks.h"
#include "tests/harness/scratch_directory.h"
#include "tests/topology/builders.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::seconds;

PeerInfo onGpu(int rank, const std::string& bus_id) {
  PeerInfo peer;
  peer.rank = rank;
  bus_id.copy(peer.gpu_bus_id.data(), peer.gpu_bus_id.size() - 1);
  return peer;
}
PeerInfo onCpus(int rank, const std::vector<int>& cpus) {
  PeerInfo peer;
  peer.rank = rank;
  for (const int cpu : cpus) peer.cores[static_cast<std::size_t>(cpu) / 64] |= std::uint64_t{1} << (cpu % 64);
  return peer;
}

/// Every rank's own view of the whole. `tells` gives a rank's text; empty: that of its host.
struct Exchange {
  RanksByHost hosts;
  std::vector<Topology> topologies;  ///< by host
  std::vector<PeerInfo> peers;
  std::function<std::string(int rank, const std::string& text)> tells = [](int, const std::string& text) {
    return text;
  };

  std::uint32_t more_bytes = 0;  ///< rank 2 announces

  std::vector<std::shared_ptr<const Cluster>> clusters;
  std::vector<std::string> errors;

  void run() {
    Process::instance();  // starts libsodium
    const auto nranks = static_cast<int>(peers.size());
    std::vector<TopologyNotice> notices(peers.size());
    std::vector<std::string> own(peers.size());
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      const auto description = describeTopology(topologies[host], hosts[host], peers);
      const int leader = hosts[host][0];
      notices[static_cast<std::size_t>(leader)] = description.notice;
      if (leader == 2) notices[2].bytes += more_bytes;
      own[static_cast<std::size_t>(leader)] = tells(leader, description.text);
    }
    const UniqueId id = decode(openRendezvous({.init_timeout = seconds(60), .is_for_this_process = true}));
    clusters.resize(peers.size());
    errors = test::runThreads(nranks, [&](int rank) {
      Bootstrap bootstrap(id, nranks, rank, {}, std::chrono::steady_clock::now() + seconds(60));
      const auto at = static_cast<std::size_t>(rank);
      try {
        clusters[at] = exchangeTopologies(bootstrap, rank, own[at], notices, hosts, peers);
      } catch (const Error& error) {
        bootstrap.fail(error.what());
        throw;
      }
      bootstrap.barrier();
      bootstrap.leave();
    });
  }
};

std::string textOf(const Cluster& cluster) {
  std::string text;
  for (const Cluster::Host& host : cluster.hosts) {
    const Cluster::HostShape& shape = cluster.shapes[host.shape];
    text += fmt::format("host of shape {} with", host.shape);
    for (std::size_t i = 0; i < host.ranks.size(); ++i)
      text += fmt::format(" {} at {}", host.ranks[i], shape.topology->label(shape.seats[i]));
    text += "\n";
  }
  for (const Cluster::HostShape& shape : cluster.shapes) text += writeNcclXml({*shape.topology});
  return text;
}

std::vector<std::array<int, 3>> sortedLinks(const Topology& topology) {
  std::vector<std::array<int, 3>> links;
  for (const NvLinks& link : topology.nvlinks) links.push_back({link.from, link.to, link.count});
  std::ranges::sort(links);
  return links;
}

/// Two GPUs of dgxLike() on each host.
Exchange threeHosts() {
  Exchange exchange;
  exchange.hosts = {{0, 1}, {2, 3}, {4, 5}};
  exchange.topologies = {test::dgxLike(), test::nvlinkMesh4(), test::dgxLike()};
  for (int rank = 0; rank < 6; ++rank) {
    const Topology& host = exchange.topologies[static_cast<std::size_t>(rank) / 2];
    const int gpu = host.all(TopologyKind::gpu)[static_cast<std::size_t>(rank) % 2];
    exchange.peers.push_back(onGpu(rank, host.nodes[static_cast<std::size_t>(gpu)].bus_id));
  }
  return exchange;
}

TEST(TopologyExchange, AllRanksLearnTheSameAndEqualHostsAreOneShape) {
  Exchange exchange = threeHosts();
  // What is one host's own makes no other shape.
  for (TopologyNode& node : exchange.topologies[2].nodes) node.net.guid += 77;
  exchange.topologies[2].unseen.emplace_back("something");
  // The text of a host that another one is equal to is never sent.
  exchange.tells = [](int rank, const std::string& text) { return rank == 4 ? "never sent" : text; };
  exchange.run();
  ASSERT_EQ(exchange.errors, test::noErrors(6));
  const Cluster& first = *exchange.clusters[0];
  ASSERT_EQ(first.shapes.size(), 2U);
  EXPECT_EQ(first.hosts[0].shape, first.hosts[2].shape);
  EXPECT_NE(first.hosts[0].shape, first.hosts[1].shape);
  EXPECT_EQ(first.hosts[2].ranks, (std::vector<int>{4, 5}));
  for (const auto& cluster : exchange.clusters) EXPECT_EQ(textOf(*cluster), textOf(first));
  // The independent side: the topology that went in, as far as it is not one host's own.
  Topology expected = test::dgxLike();
  for (TopologyNode& node : expected.nodes) node.net.guid = 0;
  EXPECT_EQ(first.shapes[0].topology->nodes, expected.nodes);
  EXPECT_EQ(sortedLinks(*first.shapes[0].topology), sortedLinks(expected));
  EXPECT_EQ(first.shapes[0].seats,
            (std::vector<int>{expected.all(TopologyKind::gpu)[0], expected.all(TopologyKind::gpu)[1]}));
}

TEST(TopologyExchange, LongDescriptionsTakeSeveralRounds) {
  Exchange exchange;
  exchange.hosts = {{0}, {1}, {2}};
  for (int host = 0; host < 3; ++host) {
    Topology topology = test::laptop();
    // CPUs that share no cache: more than one round.
    CpuDetails& details = topology.nodes[0].cpu;
    details.cpus.clear();
    details.caches.clear();
    for (int cpu = 0; cpu < 20000 + host; ++cpu) {
      details.cpus.push_back(cpu);
      details.caches.push_back({cpu});
    }
    exchange.topologies.push_back(std::move(topology));
    exchange.peers.push_back(onCpus(host, {0}));
  }
  ASSERT_GT(describeTopology(exchange.topologies[0], {0}, exchange.peers).text.size(), 512U * 1024);
  exchange.run();
  ASSERT_EQ(exchange.errors, test::noErrors(3));
  for (std::size_t host = 0; host < 3; ++host) {
    for (const auto& cluster : exchange.clusters) {
      const Topology& got = *cluster->shapes[cluster->hosts[host].shape].topology;
      EXPECT_EQ(got.nodes[0].cpu.caches, exchange.topologies[host].nodes[0].cpu.caches);
    }
  }
}

TEST(TopologyExchange, WhatIsDamagedFailsOnAllRanks) {
  Exchange exchange = threeHosts();
  exchange.tells = [](int rank, std::string text) {
    if (rank == 2) text[text.size() / 2] ^= 1;
    return text;
  };
  exchange.run();
  for (const std::string& error : exchange.errors)
    EXPECT_NE(error.find("the description of its host that rank 2"), std::string::npos) << error;
}

TEST(TopologyExchange, WhatIsAnnouncedIsBoundedAndHasToCome) {
  for (const auto& [more, words] : {std::pair(1000U, "the description of its host that rank 2"),
                                    std::pair(5000000U, "rank 2 (pid 0 on ) announces 50")}) {
    Exchange exchange = threeHosts();
    exchange.more_bytes = more;
    exchange.run();
    for (const std::string& error : exchange.errors) EXPECT_NE(error.find(words), std::string::npos) << error;
  }
}

TEST(TopologyExchange, AGpuThatTheFirstRankDoesNotSeeIsAdded) {
  Exchange exchange;
  exchange.hosts = {{0, 1}};
  exchange.topologies = {test::laptop()};
  exchange.peers = {onGpu(0, "e000:01:00.0"), onGpu(1, "e000:02:00.0")};
  exchange.run();
  ASSERT_EQ(exchange.errors, test::noErrors(2));
  const Cluster::HostShape& shape = exchange.clusters[1]->shapes[0];
  ASSERT_EQ(shape.seats.size(), 2U);
  EXPECT_EQ(shape.topology->label(shape.seats[1]), "GPU 1 (e000:02:00.0)");
}

/// Two sockets of 16 CPUs, GPUs at both.
class Seats : public testing::Test {
 protected:
  Cluster::HostShape seats(const std::vector<PeerInfo>& peers) const {
    std::vector<int> ranks;
    ranks.reserve(peers.size());
    for (const PeerInfo& peer : peers) ranks.push_back(peer.rank);
    return seatsOf(topology_, ranks, peers);
  }
  /// By the system's numbers.
  std::vector<int> numa(const std::vector<PeerInfo>& peers) const {
    std::vector<int> numbers;
    for (const int seat : seats(peers).seats)
      numbers.push_back(topology_->nodes[static_cast<std::size_t>(seat)].cpu.numa);
    return numbers;
  }

  std::shared_ptr<const Topology> topology_ = std::make_shared<const Topology>(test::dgxLike());
};

TEST_F(Seats, ARankSitsAtTheNodeOfItsCpus) {
  EXPECT_EQ(numa({onCpus(0, {20}), onCpus(1, {3, 4}), onCpus(2, {31})}), (std::vector<int>{1, 0, 1}));
}

TEST_F(Seats, RanksThatMayRunAnywhereAreDealtInBlocks) {
  const std::vector<int> anywhere{0, 16};
  EXPECT_EQ(numa({onCpus(0, anywhere), onCpus(1, anywhere), onCpus(2, anywhere), onCpus(3, anywhere)}),
            (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(numa({onCpus(0, {}), onCpus(1, {})}), (std::vector<int>{0, 1})) << "the mask was too small";
  EXPECT_EQ(numa({onCpus(0, {500}), onCpus(1, {501})}), (std::vector<int>{0, 1})) << "another machine's file";
}

TEST_F(Seats, ACacheIsKnownWhereAllCpusShareOne) {
  EXPECT_EQ(seats({onCpus(0, {20}), onCpus(1, {3, 4})}).caches, (std::vector<int>{1, 0}));
  EXPECT_EQ(seats({onCpus(0, {20}), onCpus(1, {3, 20})}).caches, std::vector<int>{});
}

TEST_F(Seats, AGpuThatIsNotThereIsAnErrorThatNamesIt) {
  const std::string gpu =
      topology_->nodes[static_cast<std::size_t>(topology_->all(TopologyKind::gpu)[5])].bus_id;
  EXPECT_EQ(seats({onGpu(0, gpu)}).seats, std::vector<int>{topology_->all(TopologyKind::gpu)[5]});
  try {
    seats({onGpu(0, "0000:ff:00.0")});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("works on GPU 0000:ff:00.0"), std::string::npos) << error.what();
  }
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TopologyFiles, WhatIsDumpedMayBeGiven) {
  const test::ScratchDirectory folder;
  const std::string first = folder.path() + "/first.xml";
  test::RankGroup dumping(2, {"conform-briefly", "3"}, {{"NCCL_TOPO_DUMP_FILE", first}});
  test::expectSuccess(dumping.wait());
  const TopologyFile dumped = readNcclXml(contents(first), first);
  ASSERT_EQ(dumped.hosts.size(), 1U);
  EXPECT_FALSE(dumped.hosts[0].all(TopologyKind::numa_node).empty());
  // A machine that this one is not.
  const std::string given = folder.write("given.xml", writeNcclXml({test::pcieOnly4()}));
  const std::string second = folder.path() + "/second.xml";
  test::RankGroup giving(
      4, {"conform-briefly", "3"},
      {{"NCCL_TOPO_FILE", given}, {"NCCL_TOPO_DUMP_FILE", second}, {"NCCL_TOPO_DUMP_FILE_RANK", "3"}}, {}, 2);
  test::expectSuccess(giving.wait());
  const TopologyFile again = readNcclXml(contents(second), second);
  EXPECT_EQ(again.hosts[0].all(TopologyKind::gpu).size(), 4U);
  EXPECT_EQ(again.hosts[0].all(TopologyKind::numa_node).size(), 2U);
}

#ifdef TUTTI_EMULATED_GPU_TESTS
TEST(TopologyFiles, EmulatedGpusAreInIt) {
  const test::ScratchDirectory folder;
  const std::string path = folder.path() + "/dump.xml";
  const test::CommandResult result = test::runCommand(
      {"tutti-run", "--emulate-gpus", "2", "-n", "2", "all_reduce_perf", "--device", "cuda", "-b", "8", "-e",
       "8"},
      {{"TUTTI_DEVICE", "auto"}, {"NCCL_TOPO_DUMP_FILE", path}, {"NCCL_TOPO_DUMP_FILE_RANK", "1"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Topology host = readNcclXml(contents(path), path).hosts.at(0);
  const std::vector<int> gpus = host.all(TopologyKind::gpu);
  ASSERT_EQ(gpus.size(), 2U);
  for (int i = 0; i < 2; ++i) {
    const TopologyNode& node = host.nodes[static_cast<std::size_t>(gpus[static_cast<std::size_t>(i)])];
    EXPECT_EQ(node.bus_id, fmt::format("e000:0{}:00.0", i + 1)) << "as the emulator numbers them";
    EXPECT_EQ(node.gpu.device, i);
    EXPECT_EQ(node.gpu.rank, i);
    EXPECT_EQ(node.gpu.compute_capability, 90);
    EXPECT_EQ(node.gpu.model, fmt::format("Emulated GPU {}", i));
  }
}

TEST(TopologyFiles, GpusThatTheFileLacksAreNamed) {
  const test::ScratchDirectory folder;
  const std::string path = folder.write("given.xml", writeNcclXml({test::pcieOnly4()}));
  const test::CommandResult result =
      test::runCommand({"tutti-run", "--emulate-gpus", "2", "-n", "2", "all_reduce_perf", "--device", "cuda",
                        "-b", "8", "-e", "8"},
                       {{"TUTTI_DEVICE", "auto"}, {"NCCL_TOPO_FILE", path}, {"NCCL_DEBUG", "WARN"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(
      (result.out + result.err).find("lists no GPU with bus id e000:01:00.0; it is added at NUMA node "),
      std::string::npos)
      << result.out << result.err;
}
#endif

TEST(TopologyFiles, OneThatIsWrongIsRefusedInWords) {
  const test::ScratchDirectory folder;
  const std::string path =
      folder.write("wrong.xml", "<system version=\"1\">\n<cpu numaid=\"zero\"/>\n</system>");
  test::RankGroup group(2, {"conform-briefly", "3"}, {{"NCCL_TOPO_FILE", path}});
  for (const auto& result : group.wait()) test::expectSays(result, "NCCL_TOPO_FILE: " + path + ":2: ");
}

TEST(TopologyFiles, RanksOfAHostMustNameTheSame) {
  const test::ScratchDirectory folder;
  const std::string path = folder.write("given.xml", writeNcclXml({test::pcieOnly4()}));
  test::RankGroup group(2, {"conform-briefly", "3"}, {{"NCCL_TOPO_FILE", path}},
                        {{1, {{"NCCL_TOPO_FILE", "/nowhere/given.xml"}}}});
  for (const auto& result : group.wait()) {
    test::expectSays(result, "NCCL_TOPO_FILE differs between rank 0 (pid ");
    test::expectSays(result, "which are on one host");
  }
}

TEST(TopologyFiles, WhatSuitsNotThisMachineOrTheseRanksIsAWarning) {
  const test::ScratchDirectory folder;
  Topology host = test::pcieOnly4();
  host.nodes[static_cast<std::size_t>(host.all(TopologyKind::numa_node)[1])].cpu.cpus.push_back(60001);
  const std::string path = folder.write("given.xml", writeNcclXml({host}));
  test::RankGroup group(2, {"conform-briefly", "3"},
                        {{"NCCL_TOPO_FILE", path},
                         {"NCCL_DEBUG", "WARN"},
                         {"NCCL_TOPO_DUMP_FILE", folder.path() + "/dump.xml"},
                         {"NCCL_TOPO_DUMP_FILE_RANK", "2"}});
  const auto results = group.wait();
  test::expectSuccess(results);
  for (const char* words : {"60001, and this machine has ", "that of another machine",
                            "NCCL_TOPO_DUMP_FILE is not written: NCCL_TOPO_DUMP_FILE_RANK is 2, and a"}) {
    EXPECT_NE(results[0].err.find(words), std::string::npos) << results[0].err;
  }
}

TEST(TopologyFiles, SmallerCommunicatorsAfterTheFirstAreNotWarnedOf) {
  const test::ScratchDirectory folder;
  test::RankGroup group(
      4, [](int) { return std::vector<std::string>{"split"}; },
      {{"NCCL_DEBUG", "WARN"},
       {"NCCL_TOPO_DUMP_FILE", folder.path() + "/dump.xml"},
       {"NCCL_TOPO_DUMP_FILE_RANK", "3"}},
      {}, 1, "subgroup_program");
  const auto results = group.wait();
  test::expectSuccess(results);
  for (const auto& result : results)
    EXPECT_EQ(result.err.find("is not written"), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/dump.xml"));
}

TEST(TopologyFiles, ADumpThatCannotBeWrittenIsAWarning) {
  test::RankGroup group(2, {"conform-briefly", "3"},
                        {{"NCCL_TOPO_DUMP_FILE", "/nowhere/dump.xml"}, {"NCCL_DEBUG", "WARN"}});
  const auto results = group.wait();
  test::expectSuccess(results);
  EXPECT_NE(results[0].err.find("NCCL_TOPO_DUMP_FILE cannot be written: /nowhere/dump.xml: No such file"),
            std::string::npos)
      << results[0].err;
}

}  // namespace
}  // namespace tutti
