// Which ports a rank begins with, by a system that is made up.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"
#include "tests/transports/fake_verbs.h"
#include "transports/verbs/port_order.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Two NUMA nodes of two CPUs. On node 0 a switch with GPU 03:00.0 and the device "near", behind a further
/// bridge of it "deep"; "beside", at the root complex itself. On node 1 "far" and "farther". "virtual" has no
/// place.
class PortOrderTest : public testing::Test {
 protected:
  PortOrderTest() {
    addNode(0, "0,4-5");
    addNode(1, "1-3");
    const std::string a_switch = "pci0000:00/0000:00:01.0/0000:01:00.0";
    addPci(a_switch + "/0000:02:00.0/0000:03:00.0", 0, "");
    addPci(a_switch + "/0000:02:01.0/0000:04:00.0", 0, "near");
    addPci(a_switch + "/0000:02:02.0/0000:05:00.0/0000:06:00.0/0000:07:00.0", 0, "deep");
    addPci("pci0000:00/0000:00:02.0", 0, "beside");
    addPci("pci0000:80/0000:80:01.0/0000:81:00.0", 1, "far");
    addPci("pci0000:80/0000:80:02.0/0000:82:00.0", 1, "farther");
    addPci("pci0000:c0/0000:c0:01.0", 0, "");  // another root complex of node 0
  }

  void addNode(int node, const std::string& cpus) {
    const std::string folder = fmt::format("devices/system/node/node{}", node);
    fs::create_directories(system_.path() + "/" + folder);
    system_.write(folder + "/cpulist", cpus + "\n");
  }
  void addPci(const std::string& path, int node, const std::string& rdma) {
    const fs::path folder = system_.path() + "/devices/" + path;
    fs::create_directories(folder);
    system_.write("devices/" + path + "/numa_node", std::to_string(node) + "\n");
    fs::create_directories(system_.path() + "/bus/pci/devices");
    fs::create_symlink(folder, fs::path(system_.path()) / "bus/pci/devices" / folder.filename());
    if (rdma.empty()) return;
    fs::create_directories(system_.path() + "/class/infiniband/" + rdma);
    fs::create_symlink(folder, system_.path() + "/class/infiniband/" + rdma + "/device");
  }

  static cpu_set_t cpus(const std::vector<std::size_t>& numbers) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::size_t cpu : numbers) CPU_SET(cpu, &set);
    return set;
  }
  RankPlace rankOn(const std::vector<std::size_t>& numbers, int local_rank = 0) const {
    return {placeOfCpus(cpus(numbers), system_.path() + "/devices/system/node"), "CPUs", local_rank};
  }
  RankPlace rankWith(const std::string& gpu, int local_rank = 0) const {
    return placeOfRank(gpu, local_rank, system_.path());
  }

  /// Devices, in the order in which they are used; "|" behind those equally near.
  std::string order(const std::vector<std::string>& devices, const RankPlace& rank) {
    test::Fabric& fabric = test::Fabric::fresh();
    std::vector<VerbsPort> ports;
    for (const std::string& device : devices) {
      ports.push_back(fabric.makePort(device, "10.0.0.1"));
      const std::string folder = system_.path() + "/class/infiniband/" + device;
      auto& path = fabric[device].ibdev_path;
      path[folder.copy(path, sizeof(path) - 1)] = 0;
    }
    const PortOrder made = orderPorts(ports, rank, places_);
    text_ = made.text;
    class_ = made.path_class;
    std::string names;
    for (std::size_t i = 0; i < ports.size(); ++i)
      names += (i == made.nearest ? "| " : "") + ports[i].device->name() + " ";
    return names;
  }

  const test::ScratchDirectory system_;
  std::vector<RdmaPlace> places_;
  std::string text_;
  PathClass class_ = PathClass::dis;
};

/// What NCCL_NET_GDR_LEVEL is compared with.
TEST_F(PortOrderTest, TheNearestHasAClassOfNccl) {
  const RankPlace rank = rankWith("0000:03:00.0");
  const std::pair<const char*, PathClass> classes[] = {{"near", PathClass::pix},
                                                       {"beside", PathClass::phb},
                                                       {"far", PathClass::sys},
                                                       {"virtual", PathClass::sys}};
  for (const auto& [device, path_class] : classes) {
    order({device}, rank);
    EXPECT_EQ(class_, path_class) << device;
  }
  order({"far", "near"}, rank);
  EXPECT_EQ(class_, PathClass::pix);
  const auto apart = [](int bridges) {
    return pathClassOf(Distance{.level = Distance::Level::same_switch, .bridges = bridges});
  };
  EXPECT_EQ(apart(2), PathClass::pix);  // a port of the switch for each
  EXPECT_EQ(apart(3), PathClass::pxb);  // another switch between
}

TEST_F(PortOrderTest, TheNearestToTheGpuComeFirst) {
  EXPECT_EQ(order({"virtual", "far", "beside", "deep", "near"}, rankWith("0000:03:00.0")),
            "near | deep beside far virtual ");
  EXPECT_EQ(
      text_,
      "RDMA ports, those nearest to GPU 0000:03:00.0 first: near:1 (same PCI switch), deep:1 (same PCI "
      "switch), beside:1 (same PCI root complex), far:1 (another NUMA node), virtual:1 (distance unknown)");
  EXPECT_EQ(order({"far", "near", "beside"}, rankWith("0000:C0:01.0")), "near beside | far ");
}

/// NCCL_TOPO_FILE has the last word, by name or by card; ports that it does not know are where the system
/// shows them.
TEST_F(PortOrderTest, AFileOfTheTopologyDecides) {
  places_ = {{.device = "far", .path_class = PathClass::pix},
             {.device = "other", .bus_id = "0000:04:00.0", .path_class = PathClass::sys}};
  EXPECT_EQ(order({"near", "beside", "far"}, rankWith("0000:03:00.0")), "far | beside near ") << text_;
  EXPECT_EQ(
      text_,
      "RDMA ports, those nearest to GPU 0000:03:00.0 first, by NCCL_TOPO_FILE: far:1 (PIX), beside:1 (PHB), "
      "near:1 (SYS)");
  EXPECT_EQ(class_, PathClass::pix);
}

TEST_F(PortOrderTest, WithoutAGpuTheCpusDecide) {
  EXPECT_EQ(order({"near", "far", "beside"}, rankOn({1, 2})), "far | near beside ");
  EXPECT_NE(text_.find("far:1 (same NUMA node), near:1 (another NUMA node)"), std::string::npos) << text_;
  EXPECT_EQ(order({"far", "near", "beside"}, rankOn({5})), "near beside | far ");
  EXPECT_EQ(order({"far", "near", "beside"}, rankOn({0, 1})), "far near beside ")
      << "a rank that may run anywhere";
}

TEST_F(PortOrderTest, AGpuThatTheSystemDoesNotShowIsNoPlace) {
  const RankPlace rank = rankWith("0000:ff:00.0");
  EXPECT_TRUE(rank.place.path.empty());
  EXPECT_EQ(rank.name.find("GPU"), std::string::npos) << rank.name;
}

TEST_F(PortOrderTest, RanksOfAHostBeginWithDifferentPortsOfThoseEquallyNear) {
  EXPECT_EQ(order({"far", "near", "farther", "beside"}, rankOn({0}, 0)), "near beside | far farther ");
  EXPECT_EQ(order({"far", "near", "farther", "beside"}, rankOn({0}, 1)), "beside near | farther far ");
  EXPECT_NE(text_.find("; local rank 1 begins with beside:1"), std::string::npos) << text_;
  EXPECT_EQ(order({"far", "near", "farther", "beside"}, rankOn({0}, 2)), "near beside | far farther ");
  EXPECT_EQ(order({"virtual", "other"}, rankOn({0}, 1)), "other virtual ");
}

}  // namespace
}  // namespace tutti
