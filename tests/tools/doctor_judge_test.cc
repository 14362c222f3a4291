// What the doctor makes of facts, which are invented here.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tools/doctor/host/gather.h"
#include "tools/doctor/host/judge.h"
#include "tools/findings/report.h"
#include "transports/socket_address.h"

namespace tutti::doctor {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

/// The finding about `check`; fails the test where there is not exactly one.
Finding about(const Findings& findings, const std::string& check) {
  const auto is_it = [&](const Finding& finding) { return finding.check == check; };
  EXPECT_EQ(std::ranges::count_if(findings, is_it), 1) << check;
  const auto found = std::ranges::find_if(findings, is_it);
  return found == findings.end() ? Finding{} : *found;
}

void expectSays(const std::string& text, const std::string& what) {
  EXPECT_NE(text.find(what), std::string::npos) << "\"" << what << "\" is not in: " << text;
}

Interface interfaceAt(const std::string& name, const std::string& address) {
  return {name, *parseNumericHost(address), true};
}

NetworkFacts goodNetwork() {
  return {.usable = {interfaceAt("eth0", "10.0.0.5"), interfaceAt("eth1", "10.1.0.5")},
          .devices = {{"eth0", {.mtu = 9000, .megabits = 100000}}, {"eth1", {.mtu = 1500, .megabits = 1000}}},
          .default_route = "eth0"};
}

RdmaFacts goodRdma() {
  RdmaFacts facts{.has_device_files = true};
  facts.ports = {{"mlx5_0:1", "ACTIVE", "100 Gb/sec (4X EDR)", true, "eth0", 9000}};
  facts.usable = {{"mlx5_0:1", 4096, 4, "10.0.0.5 (RoCE v2, index 3)"}};
  return facts;
}

LimitFacts goodLimits() {
  LimitFacts facts{.locked_need = 16 * kMiB, .open_files = 65536, .most_open_files = 65536};
  facts.free_bytes = facts.system_free_bytes = 64L * 1024 * kMiB;
  return facts;
}

IsolationFacts goodIsolation() { return {.maps_regions = true, .copies = true}; }

/// All that warns or fails has a remedy, or nobody is helped.
void expectRemedies(const Findings& findings) {
  for (const Finding& finding : findings) {
    EXPECT_TRUE(finding.level < Level::warning || !finding.todo.empty()) << finding.check << finding.seen;
  }
}

TEST(JudgeHost, AGoodOneHasNothingToDo) {
  HostFacts facts{.network = goodNetwork(), .rdma = goodRdma(), .limits = goodLimits()};
  facts.isolation = goodIsolation();
  const Findings findings = judge(facts);
  EXPECT_LE(worst(findings), Level::note) << toText("", findings);
  EXPECT_EQ(exitStatus(findings), 0);
}

TEST(JudgeHost, AVariableThatIsRefusedIsAFailure) {
  HostFacts facts{.settings_problems = {"TUTTI_SLOTS=\"x\": expected a number", "NCCL_IB_HCA: \"y\": no"}};
  const Findings findings = judgeSettings(facts);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(exitStatus(findings), 2);
  // What is to be done names the variable: it is all that the end of the report shows.
  expectSays(findings[0].todo, "correct TUTTI_SLOTS:");
  expectSays(findings[1].todo, "correct NCCL_IB_HCA:");
}

TEST(JudgeHost, FaultsForTestsAreNoSettingsOfAJob) {
  HostFacts facts;
  facts.settings.network.faults = "cut:at=1";
  const Finding finding = about(judgeSettings(facts), "TUTTI_FAULTS");
  EXPECT_EQ(finding.level, Level::warning);
  expectSays(finding.todo, "unset TUTTI_FAULTS");
}

TEST(JudgeNetwork, NothingUsableIsAFailureInTheLibrarysWords) {
  const Findings findings = judgeNetwork({.why_none = "eth7 is not there"}, {});
  EXPECT_EQ(about(findings, "interface").level, Level::failure);
  expectSays(about(findings, "interface").seen, "eth7 is not there");
  expectRemedies(findings);
}

TEST(JudgeNetwork, ACableThatIsOutIsAFailure) {
  NetworkFacts facts = goodNetwork();
  facts.devices["eth0"].has_carrier = false;
  EXPECT_EQ(about(judgeNetwork(facts, {}), "link of eth0").level, Level::failure);
}

TEST(JudgeNetwork, AFasterInterfaceThatIsNotChosenIsNamed) {
  NetworkFacts facts = goodNetwork();
  std::swap(facts.usable[0], facts.usable[1]);
  const Finding finding = about(judgeNetwork(facts, {}), "fastest interface");
  EXPECT_EQ(finding.level, Level::warning);
  expectSays(finding.todo, "NCCL_SOCKET_IFNAME=eth0");
}

TEST(JudgeNetwork, LoopbackAndLinkLocalAddressesAreNoWayToOthers) {
  NetworkFacts facts{.usable = {interfaceAt("lo", "127.0.0.1")}};
  EXPECT_EQ(about(judgeNetwork(facts, {}), "interface").level, Level::note);
  facts.usable = {interfaceAt("eth0", "fe80::5")};
  EXPECT_EQ(about(judgeNetwork(facts, {}), "interface").level, Level::warning);
}

TEST(JudgeNetwork, AFirewallIsMentionedWithThePortsToOpen) {
  NetworkFacts facts = goodNetwork();
  facts.may_have_firewall = true;
  expectSays(about(judgeNetwork(facts, {}), "TCP ports").todo, "TUTTI_PORT_RANGE=");
  NetworkSettings settings;
  settings.first_port = 20000;
  settings.last_port = 20100;
  expectSays(about(judgeNetwork(facts, settings), "TCP ports").seen, "20000-20100");
}

TEST(JudgeRdma, WhatHasNoDeviceIsNoteworthyAndAFailureWhereItIsDemanded) {
  Settings settings;
  EXPECT_EQ(about(judgeRdma({}, settings), "devices").level, Level::note);
  settings.network_choice = NetworkChoice::rdma;
  const Finding finding = about(judgeRdma({}, settings), "devices");
  EXPECT_EQ(finding.level, Level::failure);
  expectSays(finding.seen, "NCCL_NET=IB");
}

TEST(JudgeRdma, EachReasonForUsingNoneIsTold) {
  RdmaFacts facts = goodRdma();
  facts.usable.clear();
  facts.why_none = "libibverbs cannot be loaded";
  expectSays(about(judgeRdma(facts, {}), "devices").seen, "libibverbs cannot be loaded");
  facts.has_device_files = false;
  expectSays(about(judgeRdma(facts, {}), "devices").todo, "--device /dev/infiniband");
  facts.is_built = false;
  expectSays(about(judgeRdma(facts, {}), "devices").todo, "TUTTI_VERBS=ON");
  expectSays(about(judgeRdma(facts, {}), "devices").seen, "not built in");
}

TEST(JudgeRdma, ABuildWithoutItSaysSoAlsoWhereThereIsNoDevice) {
  const RdmaFacts facts{.is_built = false};
  const Finding finding = about(judgeRdma(facts, {}), "devices");
  EXPECT_EQ(finding.level, Level::note);
  expectSays(finding.seen, "RDMA is not built in: other hosts are reached over TCP");
  Settings settings;
  settings.network_choice = NetworkChoice::rdma;
  EXPECT_EQ(about(judgeRdma(facts, settings), "devices").level, Level::failure);
  expectSays(about(judgeRdma(facts, settings), "devices").todo, "TUTTI_VERBS=ON");
}

TEST(JudgeRdma, APortThatIsDownIsNamed) {
  RdmaFacts facts = goodRdma();
  facts.ports.push_back({"mlx5_1:1", "DOWN", "40 Gb/sec", true, "eth1", 1500});
  const Finding finding = about(judgeRdma(facts, {}), "port mlx5_1:1");
  EXPECT_EQ(finding.level, Level::warning);
  expectSays(finding.todo, "ip link set eth1 up");
}

TEST(JudgeRdma, GidsThatReachLittle) {
  RdmaFacts facts = goodRdma();
  facts.usable[0].is_link_local = true;
  EXPECT_EQ(about(judgeRdma(facts, {}), "GID of mlx5_0:1").level, Level::warning);
  facts.usable[0].is_roce_v1 = true;
  expectSays(about(judgeRdma(facts, {}), "GID of mlx5_0:1").seen, "RoCE v1");
  Settings settings;
  settings.rdma.gid_index = 0;
  expectSays(about(judgeRdma(facts, settings), "GID of mlx5_0:1").todo, "unset NCCL_IB_GID_INDEX");
}

TEST(JudgeRdma, WhereNoneIsUsedTheCauseIsToldOnceWithItsRemedy) {
  RdmaFacts facts = goodRdma();
  facts.usable.clear();
  facts.ports.push_back(facts.ports[0]);
  facts.ports[1].name = "mlx5_1:1";
  facts.why_none = "mlx5_0:1 has no GID; mlx5_1:1 has no GID";
  for (RdmaPort& port : facts.ports) port.why_not = port.name + " has no GID";
  const Findings by_port = judgeRdma(facts, {});
  expectSays(about(by_port, "devices").seen, "port by port");
  expectSays(about(by_port, "devices").todo, "NCCL_IB_GID_INDEX");
  expectSays(about(by_port, "port mlx5_1:1").seen, "mlx5_1:1 has no GID");
  EXPECT_EQ(about(by_port, "port mlx5_1:1").level, Level::note);
  for (RdmaPort& port : facts.ports) port.is_wanted = false;
  Settings settings;
  settings.rdma.hca = "mlx4";
  expectSays(about(judgeRdma(facts, settings), "devices").seen, "NCCL_IB_HCA=mlx4 leaves out all ports");
  expectRemedies(judgeRdma(facts, settings));
}

TEST(JudgeRdma, PortsThatAreNotUsedSayWhy) {
  RdmaFacts facts = goodRdma();
  facts.ports.push_back({"mlx5_1:1", "ACTIVE", "40 Gb/sec", true, "eth1", 1500});
  facts.ports[1].why_not = "mlx5_1:1 has no GID";
  EXPECT_EQ(about(judgeRdma(facts, {}), "port mlx5_1:1").level, Level::warning);
  expectSays(about(judgeRdma(facts, {}), "port mlx5_1:1").seen, "has no GID");
  facts.ports[1].is_wanted = false;
  facts.ports[1].state = "DOWN";
  EXPECT_EQ(about(judgeRdma(facts, {}), "port mlx5_1:1").level, Level::note);
}

TEST(JudgeRdma, SmallPacketsOfASmallInterface) {
  RdmaFacts facts = goodRdma();
  facts.ports[0].interface_mtu = 1500;
  facts.usable[0].mtu = 1024;
  const Finding finding = about(judgeRdma(facts, {}), "MTU of mlx5_0:1");
  EXPECT_EQ(finding.level, Level::warning);
  expectSays(finding.todo, "ip link set eth0 mtu 9000");
}

TEST(JudgeLimits, LockedMemoryThatIsTooLittleForRdmaNamesLimitAndNeed) {
  LimitFacts facts = goodLimits();
  facts.locked_bytes = 65536;
  const Finding finding = about(judgeLimits(facts, true), "locked memory");
  EXPECT_EQ(finding.level, Level::failure);
  expectSays(finding.seen, "64 KiB");
  expectSays(finding.seen, "16 MiB");
  expectSays(finding.todo, "--ulimit memlock=-1");
  EXPECT_EQ(about(judgeLimits(facts, false), "locked memory").level, Level::ok);
  facts.locked_bytes = 16 * kMiB;
  EXPECT_EQ(about(judgeLimits(facts, true), "locked memory").level, Level::warning);
}

TEST(JudgeLimits, TheNeedGrowsWithSlotsAndPeers) {
  const LinkShape shape{.lanes = 1, .slot_count = 4, .slot_bytes = 131072};
  const std::uint64_t one = lockedNeed(shape, 1);
  EXPECT_GE(one, 2 * 4 * 131072U);      // a link each way
  EXPECT_LT(one, 2 * 4 * 131072U * 2);  // headers and counters are small beside it
  EXPECT_EQ(lockedNeed(shape, 15), 15 * one);
  LinkShape twice = shape;
  twice.lanes = 2;
  EXPECT_EQ(lockedNeed(twice, 15), 30 * one);
}

TEST(JudgeLimits, FewFilesAndLittleMemory) {
  LimitFacts facts = goodLimits();
  facts.open_files = 512;
  EXPECT_EQ(about(judgeLimits(facts, false), "open files").level, Level::warning);
  facts.open_files = 100;
  EXPECT_EQ(about(judgeLimits(facts, false), "open files").level, Level::failure);
  facts.free_bytes = 512 * kMiB;
  expectSays(about(judgeLimits(facts, false), "free memory").seen, "control group");
  EXPECT_EQ(about(judgeLimits(facts, false), "free memory").level, Level::warning);
  facts.free_bytes = 8 * kMiB;
  EXPECT_EQ(about(judgeLimits(facts, false), "free memory").level, Level::failure);
  facts.memfd_problem = "memfd_create: Function not implemented";
  EXPECT_EQ(about(judgeLimits(facts, false), "anonymous files").level, Level::failure);
}

TEST(JudgeIsolation, TheCauseOfARefusalIsNamed) {
  IsolationFacts facts{.ptrace_scope = 1, .seccomp = 2, .maps_regions = true, .copies = false};
  EXPECT_EQ(about(judgeIsolation(facts), "other buffers").level, Level::note);
  expectSays(about(judgeIsolation(facts), "other buffers").todo, "ptrace_scope");
  facts.ptrace_scope = 0;
  facts.maps_regions = false;
  EXPECT_EQ(about(judgeIsolation(facts), "registered buffers").level, Level::warning);
  expectSays(about(judgeIsolation(facts), "registered buffers").todo, "seccomp");
  facts.segment_problem = "no answer";
  EXPECT_EQ(about(judgeIsolation(facts), "shared memory").level, Level::failure);
  facts.is_own_pid_namespace = true;
  expectSays(about(judgeIsolation(facts), "namespaces").todo, "--pid=host");
}

TEST(JudgeGpu, WhatIsMissingIsNamedFromTheBottomUp) {
  GpuFacts facts;
  EXPECT_EQ(about(judgeGpu(facts, DeviceChoice::automatic, false), "devices").level, Level::note);
  EXPECT_EQ(about(judgeGpu(facts, DeviceChoice::cuda, false), "devices").level, Level::failure);
  facts.pci_devices = 8;
  expectSays(about(judgeGpu(facts, DeviceChoice::automatic, false), "driver").todo, "modprobe nvidia");
  facts.driver = "580.95";
  expectSays(about(judgeGpu(facts, DeviceChoice::automatic, false), "driver").todo, "--gpus all");
  facts.has_device_files = true;
  facts.why_none = "no CUDA-capable device is detected";
  expectSays(about(judgeGpu(facts, DeviceChoice::automatic, false), "devices").seen, "no CUDA-capable");
  EXPECT_EQ(about(judgeGpu(facts, DeviceChoice::host, false), "devices").level, Level::note);
}

TEST(JudgeGpu, WorkingGpusWithObstacles) {
  GpuFacts facts{.pci_devices = 2, .driver = "580.95", .has_device_files = true, .gpus = {"a", "b"}};
  facts.driver_cuda = 12080;
  facts.runtime_cuda = 13000;
  facts.without_peers = {"0 and 1"};
  facts.ipc_problem = "invalid device context";
  const Findings findings = judgeGpu(facts, DeviceChoice::automatic, true);
  EXPECT_EQ(about(findings, "driver").level, Level::failure);
  expectSays(about(findings, "driver").seen, "CUDA 12.8, runtime 13.0");
  expectSays(about(findings, "peer access").seen, "0 and 1");
  EXPECT_EQ(about(findings, "CUDA IPC").level, Level::warning);
  EXPECT_EQ(about(findings, "GPUDirect RDMA").level, Level::note);
  facts.is_open_driver = true;
  EXPECT_EQ(about(judgeGpu(facts, DeviceChoice::automatic, true), "GPUDirect RDMA").level, Level::ok);
}

/// A bridge's configuration with ACS, behind another extended capability, and what it has set.
std::string bridge(unsigned control) {
  std::string bytes(4096, '\0');
  const auto put = [&](std::size_t at, unsigned value, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
  };
  put(0x100, 0x148U << 20 | 1U << 16 | 0x0001, 4);  // AER, then 0x148
  put(0x148, 1U << 16 | 0x000D, 4);                 // ACS, the last
  put(0x148 + 6, control, 2);
  return bytes;
}

TEST(JudgePci, AcsIsFoundInTheConfigurationOfABridge) {
  bool is_whole = false;
  EXPECT_TRUE(redirectsPeers(bridge(0x1d), &is_whole));  // as firmware sets it for virtual machines
  EXPECT_TRUE(is_whole);
  EXPECT_FALSE(redirectsPeers(bridge(0x01), &is_whole));  // source validation alone
  EXPECT_FALSE(redirectsPeers(bridge(0x1d).substr(0, 64), &is_whole));
  EXPECT_FALSE(is_whole);
  std::string endless = bridge(0x1d);
  endless[0x100 + 2] = 0x01;
  endless[0x100 + 3] = 0x10;  // next: itself
  EXPECT_FALSE(redirectsPeers(endless, &is_whole));
}

TEST(JudgePci, BridgesThatRedirectAreAWarningAndTranslationIsANote) {
  PciFacts facts{.has_iommu = true, .redirecting = {"0000:00:01.0"}};
  EXPECT_EQ(about(judgePci(facts, true), "ACS").level, Level::warning);
  expectSays(about(judgePci(facts, true), "ACS").todo, "setpci -s 0000:00:01.0");
  EXPECT_EQ(about(judgePci(facts, true), "IOMMU").level, Level::note);
  facts.is_passthrough = true;
  EXPECT_EQ(about(judgePci(facts, true), "IOMMU").level, Level::ok);
  EXPECT_TRUE(judgePci(facts, false).empty());
}

TEST(Report, TheWorstComesAgainAtTheEndAndDecidesTheStatus) {
  const Findings findings{{Level::failure, "A", "first", "is broken", "mend it"},
                          {Level::warning, "B", "second", "is slow", "hurry it"},
                          {Level::ok, "A", "third", "is well"}};
  EXPECT_EQ(exitStatus(findings), 2);
  const std::string text = toText("title", findings);
  expectSays(text, "1 failure, 1 warning, 0 notes, 1 ok.");
  const std::size_t summary = text.find("1 failure");
  EXPECT_LT(summary, text.find("first: mend it"));
  EXPECT_LT(text.find("first: mend it"), text.find("second: hurry it"));
  // Areas stand together.
  EXPECT_LT(text.find("third"), text.find("second"));
  EXPECT_EQ(exitStatus({findings[1]}), 1);
  EXPECT_EQ(exitStatus({findings[2]}), 0);
}

}  // namespace
}  // namespace tutti::doctor
