// Predicted bandwidths: worked out by hand.
#include "runtime/topology/prediction.h"

#include <gtest/gtest.h>

#include "tests/topology/builders.h"
#include "tests/topology/search_oracle.h"

namespace tutti {
namespace {

using test::clusterOf;

PredictedBandwidth predict(const Cluster& cluster, Collective collective, const HostMemoryCosts& costs = {}) {
  const auto all = predictBandwidths(cluster, searchCluster(cluster, {}), costs);
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kCollectiveCount));
  const PredictedBandwidth& found = all[static_cast<std::size_t>(collective)];
  EXPECT_EQ(found.collective, collective);
  return found;
}

void expectBandwidth(const PredictedBandwidth& predicted, const std::string& algorithm,
                     double algorithm_gbytes, double bus_gbytes) {
  EXPECT_EQ(predicted.algorithm, algorithm);
  EXPECT_NEAR(predicted.algorithm_gbytes_per_s, algorithm_gbytes, 1e-6 * algorithm_gbytes);
  EXPECT_NEAR(predicted.bus_gbytes_per_s, bus_gbytes, 1e-6 * bus_gbytes);
}

// Direct, n = 8: a GPU sends 2/8 of the message to each of 7, over 240 GB/s: 240 / 1.75; bus 2 * 7/8 of it.
TEST(Prediction, AllReduceOnNvswitch) {
  const PredictedBandwidth predicted =
      predict(clusterOf(test::dgxLike(), TopologyKind::gpu, 1), Collective::all_reduce);
  expectBandwidth(predicted, "direct", 240 / 1.75, 240);
  EXPECT_EQ(
      predicted.limit,
      "NVLinks from GPU 0 (0000:02:00.0) to NVSwitch, 240 GB/s, carries 1.75 bytes per byte of the message");
}

// The root lends all of it to each of 7.
TEST(Prediction, BroadcastOnNvswitch) {
  expectBandwidth(predict(clusterOf(test::dgxLike(), TopologyKind::gpu, 1), Collective::broadcast), "direct",
                  240.0 / 7, 240.0 / 7);
}

// Each of 3 others gets 1/4 over links of its own, 80 GB/s.
TEST(Prediction, AllToAllOnAMesh) {
  expectBandwidth(predict(clusterOf(test::nvlinkMesh4(), TopologyKind::gpu, 1), Collective::all_to_all),
                  "direct", 320, 240);
}

// GPUs 0 and 1 each send 2/4 to 2 and to 3: twice the message over the sockets' 10 GB/s, but through an Intel
// CPU 2.4 of the switch's 12: 5; bus 1.5 of it.
TEST(Prediction, AllReduceOverTwoSockets) {
  const PredictedBandwidth predicted =
      predict(clusterOf(test::pcieOnly4(), TopologyKind::gpu, 1), Collective::all_reduce);
  expectBandwidth(predicted, "direct", 5, 7.5);
  EXPECT_EQ(predicted.limit,
            "PCI link to PCI bridge (0000:01:00.0), 12 GB/s, carries 2.4 bytes per byte of the message");
}

// Two hosts: inside 2/8 to each of 7 over 240 GB/s; between, each GPU exchanges 1/8 by its port at 24, which
// takes less.
TEST(Prediction, AllReduceOverTwoHosts) {
  expectBandwidth(predict(clusterOf(test::dgxLike(), TopologyKind::gpu, 2), Collective::all_reduce),
                  "hierarchical", 240 / 1.75, 2 * 15.0 / 16 * 240 / 1.75);
}

// The ring's 16 channels of 12 GB/s: the bus bandwidth of a ring is what its channels carry.
TEST(Prediction, RingsOverTwoHosts) {
  const Cluster cluster = clusterOf(test::dgxLike(), TopologyKind::gpu, 2);
  expectBandwidth(predict(cluster, Collective::all_gather), "ring", 192 * 16.0 / 15, 192);
  expectBandwidth(predict(cluster, Collective::reduce_scatter), "ring", 192 * 16.0 / 15, 192);
  expectBandwidth(predict(cluster, Collective::broadcast), "ring", 192, 192);
}

// Channels that cross NICs, the second host walked backwards: still what the search says, two of 12 / 2.2.
TEST(Prediction, CrossingRingsOverTwoHosts) {
  test::HostBuilder host;
  for (int socket = 0; socket < 2; ++socket) {
    const int bridge = host.bridge(host.numaNode("GenuineIntel", 6, 79), test::kGen3x16);
    host.gpu(bridge, test::kGen3x16, 70);
    host.nic(bridge, test::kGen3x16, 100000);
  }
  Cluster cluster = clusterOf(host.topology, TopologyKind::gpu, 2);
  cluster.shapes.push_back(cluster.shapes[0]);  // so that both are looked at
  cluster.hosts[1].shape = 1;
  const double bus = 2 * 12 / 2.2;
  expectBandwidth(predict(cluster, Collective::all_gather), "ring", bus * 4 / 3, bus);
}

// All-to-all over two hosts: each GPU sends 8 of 16 blocks by its port at 24.
TEST(Prediction, AllToAllOverTwoHosts) {
  expectBandwidth(predict(clusterOf(test::dgxLike(), TopologyKind::gpu, 2), Collective::all_to_all), "direct",
                  48, 45);
}

// Ranks that are not numbered host by host go round a ring, and so do more than 64.
TEST(Prediction, AlgorithmsAreThePlanners) {
  Cluster mixed = clusterOf(test::nvlinkMesh4(), TopologyKind::gpu, 2);
  std::swap(mixed.hosts[0].ranks[3], mixed.hosts[1].ranks[0]);
  EXPECT_EQ(predict(mixed, Collective::all_reduce).algorithm, "ring");
  const Cluster many = clusterOf(test::nvlinkMesh4(), TopologyKind::gpu, 17);
  EXPECT_EQ(predict(many, Collective::all_reduce).algorithm, "ring");
  EXPECT_EQ(predict(many, Collective::all_to_all).algorithm, "direct");
}

/// `count` ranks on one NUMA node.
Cluster onHostMemory(int count) {
  Cluster cluster = clusterOf(test::laptop(), TopologyKind::numa_node, 1);
  cluster.shapes[0].seats.resize(static_cast<std::size_t>(count), cluster.shapes[0].seats[0]);
  cluster.hosts[0].ranks.resize(static_cast<std::size_t>(count));
  std::iota(cluster.hosts[0].ranks.begin(), cluster.hosts[0].ranks.end(), 0);
  return cluster;
}

// Lent, n = 2: a rank reads half of both inputs and writes half of both outputs: 2 bytes per byte of message.
// Through slots, it also copies its other half in (2 touched per byte) and the result out: 2 more.
TEST(Prediction, AllReduceOnHostMemory) {
  const Cluster cluster = onHostMemory(2);
  const PredictedBandwidth lent =
      predict(cluster, Collective::all_reduce, {.combine_gbytes_per_s = 20, .lends = true});
  expectBandwidth(lent, "direct", 10, 10);
  EXPECT_EQ(lent.limit, "each rank's cores, 20 GB/s in combine: touch 2 bytes per byte of the message");
  expectBandwidth(
      predict(cluster, Collective::all_reduce, {.combine_gbytes_per_s = 20, .copy_gbytes_per_s = 40}),
      "direct", 1 / (2.0 / 20 + 2.0 / 40), 1 / (2.0 / 20 + 2.0 / 40));
}

TEST(Prediction, UnmeasuredMemoryIsSaidToBeSo) {
  const PredictedBandwidth predicted = predict(onHostMemory(2), Collective::all_reduce);
  expectBandwidth(predicted, "direct", 0, 0);
  EXPECT_EQ(predicted.limit, "the ranks' own memory, which was not measured");
}

TEST(Prediction, OneRankSendsNothing) {
  const PredictedBandwidth predicted = predict(onHostMemory(1), Collective::all_reduce);
  expectBandwidth(predicted, "single", 0, 0);
  EXPECT_EQ(predicted.limit, "one rank: nothing is sent");
}

// 1 Gbit/s; of two ranks on each of two hosts, each exchanges half by it.
TEST(Prediction, HostMemoryOverEthernet) {
  Cluster cluster = onHostMemory(2);
  cluster.hosts.push_back({"other", 0, {2, 3}});
  expectBandwidth(predict(cluster, Collective::all_reduce), "hierarchical", 0.125, 0.125 * 1.5);
}

// Without a NIC that was seen, hosts are taken to be 10 Gbit/s apart.
TEST(Prediction, UnseenNicsAreGuessed) {
  test::HostBuilder host;
  host.gpu(host.numaNode("AuthenticAMD", 25, 1), test::kGen4x16, 80);
  const PredictedBandwidth predicted =
      predict(clusterOf(host.topology, TopologyKind::gpu, 2), Collective::all_reduce);
  expectBandwidth(predicted, "direct", 1.25, 1.25);
  EXPECT_EQ(predicted.limit, "node0: a NIC that was not seen, taken for 1.25 GB/s");
}

}  // namespace
}  // namespace tutti
