// The variables that something here acts on.
#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/core/fault_plan.h"
#include "runtime/core/hca_rule.h"
#include "runtime/core/host_and_port.h"
#include "runtime/core/interface_rules.h"
#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

DeviceChoice deviceChoice(const ActingRow& row, std::string_view value) {
  if (equalIgnoringCase(value, "auto")) return DeviceChoice::automatic;
  if (equalIgnoringCase(value, "cuda")) return DeviceChoice::cuda;
  if (equalIgnoringCase(value, "host")) return DeviceChoice::host;
  refuse(row, value, "auto, cuda or host");
}

/// FIRST-LAST.
void readPortRange(Settings& settings, const ActingRow& row, std::string_view value) {
  if (value.empty()) return;
  const std::size_t dash = std::min(value.find('-'), value.size());
  if (dash == value.size()) refuse(row, value, "two ports, such as 20000-20100");
  settings.network.first_port = static_cast<std::uint16_t>(wholeNumber(row, value.substr(0, dash), 1, 65535));
  settings.network.last_port = static_cast<std::uint16_t>(wholeNumber(row, value.substr(dash + 1), 1, 65535));
  if (settings.network.last_port < settings.network.first_port) {
    refuse(row, value, "the lower port first, such as 20000-20100");
  }
}

NetworkChoice networkChoice(const ActingRow& row, std::string_view value) {
  if (value.empty()) return NetworkChoice::automatic;
  if (equalIgnoringCase(value, "IB")) return NetworkChoice::rdma;
  if (equalIgnoringCase(value, "Socket")) return NetworkChoice::sockets;
  refuse(row, value,
         "IB (RDMA) or Socket (TCP), which are all networks that there are: NCCL's plugins are not loaded");
}

/// MAJOR.MINOR.PATCH, or the code that NCCL makes of it.
int ncclVersion(const ActingRow& row, std::string_view value) {
  if (value.empty()) return 0;
  constexpr std::string_view kAccepted = "a version of NCCL from 2.9.0 on, such as 2.27.5 or 22705";
  std::array<int, 3> parts{};
  std::size_t count = 0;
  const char* at = value.data();
  const char* const end = value.data() + value.size();
  for (; count < parts.size(); ++count) {
    const auto [next, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc{} || parts[count] < 0) refuse(row, value, kAccepted);
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  const bool is_code = at == end && count == 0;
  const bool is_version = at == end && count == 2 && parts[1] < 100 && parts[2] < 100 && parts[0] < 100;
  const int code = is_code ? parts[0] : parts[0] * 10000 + parts[1] * 100 + parts[2];
  if ((!is_code && !is_version) || code < 20900 || code > 999999) refuse(row, value, kAccepted);
  return code;
}

void readElsewhere(Settings&, const ActingRow&, std::string_view) {}

constexpr ActingRow kRows[] = {
    {{"TUTTI_INIT_TIMEOUT", "300",
      "seconds after the first rank by which all must have joined a communicator"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.init_timeout = seconds(r, v);
       if (s.init_timeout.count() == 0) refuse(r, v, "more than 0 seconds");
     }},
    {{"TUTTI_TIMEOUT", "1800",
      "seconds that a rank waits for a live peer that has not entered the operation; 0 waits for ever"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.timeout = seconds(r, v); }},
    {{"TUTTI_STALL_TIMEOUT", "60",
      "seconds without progress after which an operation fails once every rank has entered it; 0 waits for "
      "ever"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.stall_timeout = seconds(r, v); }},
    {{"TUTTI_SLOT_BYTES", "auto",
      "data bytes of one slot of a link, a multiple of 64; equal on all ranks; auto: 131072, and less where "
      "more than 8 ranks share links"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (v == "auto") return;
       s.links.slot_bytes = static_cast<std::uint32_t>(wholeNumber(r, v, 64, 1U << 28));
       if (s.links.slot_bytes % 64 != 0) refuse(r, v, "a multiple of 64");
     }},
    {{"TUTTI_SLOTS", "4", "slots of a link; equal on all ranks"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.links.slot_count = static_cast<std::uint32_t>(wholeNumber(r, v, 2, 64));
     }},
    {{"TUTTI_DEVICE", "auto",
      "memory that communicators work on: cuda, of the current GPU; host; auto: cuda where a GPU can be "
      "used"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.device = deviceChoice(r, v); }},
    {{"TUTTI_LANES", "auto",
      "lanes: parts of an operation with links of their own, on a GPU also blocks of its kernels; equal on "
      "all "
      "ranks; auto: 1 on host memory, on GPUs two for each ring that is found, of 16 at most"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.links.lanes = 0;
       if (v == "auto") return;
       s.links.lanes = static_cast<std::uint32_t>(wholeNumber(r, v, 1, 16));
     }},
    {{"NCCL_MIN_NCHANNELS", "",
      "on GPUs, where TUTTI_LANES is auto, at least so many lanes, of 16 at most; equal on all ranks"},
     readLeastChannels,
     ActsOn::gpu},
    {{"NCCL_MIN_CTAS", "", "the same"}, readLeastChannels, ActsOn::gpu},
    {{"NCCL_MAX_NCHANNELS", "",
      "on GPUs, where TUTTI_LANES is auto, at most so many lanes; equal on all ranks"},
     readMostChannels,
     ActsOn::gpu},
    {{"NCCL_MAX_CTAS", "", "the same"}, readMostChannels, ActsOn::gpu},
    {{"NCCL_BUFFSIZE", "",
      "where TUTTI_SLOT_BYTES is auto, at most so many data bytes in all slots of a link; equal on all "
      "ranks"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (v.empty()) return;
       const std::uint64_t bytes = wholeNumber(r, v, 1U << 12, 1U << 30) / s.links.slot_count;
       s.links.most_slot_bytes =
           static_cast<std::uint32_t>(std::max<std::uint64_t>(bytes / 1024 * 1024, 1024));
     }},
    {{"NCCL_ALGO", "",
      "algorithms that collectives may use: Ring; Tree, CollnetDirect, CollnetChain, NVLS, NVLSTree and PAT "
      "stand "
      "for all that is not a ring here; a list, with ^ before it all others, for one collective as in "
      "allreduce:Ring;broadcast:^Ring; equal on all ranks; default chosen by size"},
     readAlgorithms},
    {{"NCCL_PROTO", "",
      "Simple: slots with acknowledgement; LL and LL128: packets, where the operation can use them; lists as "
      "with "
      "NCCL_ALGO; equal on all ranks; default chosen by size"},
     readProtocols},
    {{"TUTTI_PLAN", "",
      "how all collectives are carried out: ring, direct, one_shot or hierarchical, then perhaps /slots or "
      "/packets; before NCCL_ALGO and NCCL_PROTO; equal on all ranks; default chosen by size"},
     readPlan},
    {{"TUTTI_LEND_BYTES", "auto",
      "operations on at least so many bytes let peers work on registered buffers in place; smaller ones pass "
      "through slots; auto: 16777216 on host memory, 262144 on GPUs"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.loans.least_bytes = LoanPolicy::kAutomatic;
       if (v != "auto") s.loans.least_bytes = wholeNumber(r, v, 0, std::uint64_t{1} << 62);
     }},
    {{"TUTTI_PROCESS_VM", "0",
      "1: ranks of other processes copy large unregistered buffers by process_vm_readv, where the system "
      "permits; "
      "0: such buffers pass through slots, which was faster wherever it was measured"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.loans.copies = flag(r, v); },
     ActsOn::host},
    {{"TUTTI_BOOTSTRAP_PORT", "0", "TCP port on which ncclGetUniqueId listens; 0 takes any free port"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.bootstrap_port = static_cast<std::uint16_t>(wholeNumber(r, v, 0, 65535));
     }},
    {{"NCCL_SOCKET_IFNAME", "",
      "network interfaces to use: names or prefixes, or =NAME for exactly that one, or networks such as "
      "10.0.0.0/8, separated by commas; ^ before them all excludes them; default: the one that leads to the "
      "rendezvous"},
     [](Settings& s, const ActingRow&, std::string_view v) {
       parseInterfaceRules(v);
       s.network.interfaces = v;
     }},
    {{"NCCL_SOCKET_FAMILY", "", "AF_INET or AF_INET6: IPv4 or IPv6 only; default either"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (!v.empty() && v != "AF_INET" && v != "AF_INET6") refuse(r, v, "AF_INET or AF_INET6");
       s.network.family = v;
     }},
    {{"TUTTI_PORT_RANGE", "", "FIRST-LAST: TCP ports that ranks listen on; default any free ones"},
     readPortRange},
    {{"NCCL_COMM_ID", "",
      "HOST:PORT or [IPv6]:PORT where rank 0 listens for the others, instead of an id that is handed around; "
      "needs TUTTI_SECRET_FILE"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (!v.empty()) parseHostAndPort(v, r.name);
       s.network.comm_id = v;
     }},
    {{"TUTTI_SECRET_FILE", "",
      "file that only the ranks can read, equal on all hosts, at least 16 bytes: who does not know it cannot "
      "join "
      "by NCCL_COMM_ID or MASTER_ADDR"},
     [](Settings& s, const ActingRow&, std::string_view v) { s.network.secret_file = v; }},
    {{"TUTTI_INSECURE", "0",
      "1: joining by NCCL_COMM_ID or MASTER_ADDR without TUTTI_SECRET_FILE is allowed, on networks where all "
      "are "
      "trusted"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.network.is_insecure = flag(r, v); }},
    {{"NCCL_HOSTID", "",
      "name of this host among all: ranks with different ones use the network between them; default: the "
      "kernel's "
      "boot id"},
     [](Settings& s, const ActingRow&, std::string_view v) { s.network.host_id = v; }},
    {{"TUTTI_NET_RECOVERY", "5",
      "seconds within which a broken connection between live ranks on different hosts must be replaced"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.network.recovery = seconds(r, v); }},
    {{"TUTTI_CHECKSUM", "0",
      "1: data on network links carries a checksum of its own; what was altered on its way is sent again; "
      "equal "
      "on all "
      "ranks"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.network.has_checksums = flag(r, v); }},
    {{"NCCL_NET", "",
      "network to other hosts: IB (RDMA; an error where it cannot be used) or Socket (TCP); default RDMA "
      "where "
      "every rank has a port"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.network_choice = networkChoice(r, v); }},
    {{"NCCL_IB_DISABLE", "0", "1: RDMA is not used"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (!flag(r, v)) return;
       if (s.network_choice == NetworkChoice::rdma) refuse(r, v, "0, since NCCL_NET=IB demands RDMA");
       s.network_choice = NetworkChoice::sockets;
     }},
    {{"NCCL_IB_HCA", "",
      "RDMA devices to use: names or prefixes, each perhaps with :PORT, separated by commas; = before them "
      "all: "
      "whole names; ^ before them all: all others; default all ports that are up"},
     [](Settings& s, const ActingRow&, std::string_view v) {
       s.rdma.hca = v;
       static_cast<void>(HcaRule(s.rdma.hca));
     }},
    {{"NCCL_IB_GID_INDEX", "-1",
      "entry of the port's GID table; -1: chosen for each pair of ranks, RoCE v2 first, then the same "
      "subnet"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.rdma.gid_index = v == "-1" ? -1 : static_cast<int>(wholeNumber(r, v, 0, 255));
     }},
    {{"NCCL_IB_ADDR_FAMILY", "", "AF_INET or AF_INET6: GIDs of that family only; default either"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (!v.empty() && v != "AF_INET" && v != "AF_INET6") refuse(r, v, "AF_INET or AF_INET6");
       s.rdma.address_family = v;
     }},
    {{"NCCL_IB_ADDR_RANGE", "", "network of the GIDs to use, such as 10.0.0.0/8; default any"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (v.empty()) return;
       s.rdma.address_range = parseAddressRange(v);
       if (!s.rdma.address_range) refuse(r, v, "a network such as 10.0.0.0/8 or fd00::/8");
     }},
    {{"NCCL_IB_TIMEOUT", "16",
      "how long a device waits for an acknowledgement before it sends again: 4.096 us * 2^N"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.rdma.timeout = static_cast<std::uint8_t>(wholeNumber(r, v, 1, 31));
     }},
    {{"NCCL_IB_RETRY_CNT", "7", "how often a device sends again; for some, 7 means for ever"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.rdma.retry_count = static_cast<std::uint8_t>(wholeNumber(r, v, 0, 7));
     }},
    {{"NCCL_IB_SL", "0", "InfiniBand service level"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.rdma.service_level = static_cast<std::uint8_t>(wholeNumber(r, v, 0, 15));
     }},
    {{"NCCL_IB_TC", "0", "traffic class of RDMA packets: the TOS byte of RoCE v2"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.rdma.traffic_class = static_cast<std::uint8_t>(wholeNumber(r, v, 0, 255));
     }},
    {{"NCCL_IB_PKEY", "0", "index of the partition key to use, in the port's table"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.rdma.pkey_index = static_cast<std::uint16_t>(wholeNumber(r, v, 0, 65535));
     }},
    {{"NCCL_IB_QPS_PER_CONNECTION", "1", "queue pairs of each link; its slots take turns on them"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.rdma.queue_pairs = static_cast<std::uint32_t>(wholeNumber(r, v, 1, 8));
     }},
    {{"NCCL_NET_GDR_LEVEL", "",
      "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS, or NCCL's numbers: RDMA devices farther than that "
      "from a rank's GPU do not reach into its memory, data goes through pinned host memory; equal on all "
      "ranks; default: where devices reach GPU memory, they use it"},
     readRdmaLevel,
     ActsOn::gpu},
    {{"NCCL_DMABUF_ENABLE", "1",
      "0: RDMA devices do not reach GPU memory by dma-buf, only by nvidia-peermem"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.rdma.dma_buf = flag(r, v); },
     ActsOn::gpu},
    {{"TUTTI_NCCL_VERSION", "",
      "version of NCCL that ncclGetVersion says, such as 2.27.5 or 22705, for programs that look at it; "
      "default "
      "2.28.9"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.nccl_version = ncclVersion(r, v); }},
    {{"TUTTI_FAULTS", "", "faults to inject into links to other hosts, for tests; see transports/README.md"},
     [](Settings& s, const ActingRow&, std::string_view v) {
       parseFaults(v);
       s.network.faults = v;
     }},
    {{"NCCL_P2P_DISABLE", "0",
      "1: GPUs do not reach into each other's memory; data goes through pinned host memory"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (flag(r, v)) s.uses_peer_access = false;
     },
     ActsOn::gpu},
    {{"NCCL_P2P_LEVEL", "",
      "levels as of NCCL_NET_GDR_LEVEL: GPUs farther apart do not reach into each other's memory, data goes "
      "through pinned host memory; LOC: as NCCL_P2P_DISABLE=1; equal on all ranks; default: where it works"},
     readPeerLevel,
     ActsOn::gpu},
    {{"NCCL_CROSS_NIC", "2",
      "0: a ring leaves a host by the NIC that it came in by (RDMA); 1: it may leave by another; 2: it does "
      "where "
      "that is faster; equal on all ranks"},
     readCrossNic},
    {{"NCCL_GRAPH_FILE", "",
      "file of rings and trees, as NCCL_GRAPH_DUMP_FILE leaves it, that is used instead of a search; equal "
      "on "
      "all ranks"},
     [](Settings& s, const ActingRow&, std::string_view v) { s.graphs.file = v; }},
    {{"NCCL_GRAPH_DUMP_FILE", "", "file that the rings and trees of a communicator are written to"},
     [](Settings& s, const ActingRow&, std::string_view v) { s.graphs.dump_file = v; }},
    {{"NCCL_GRAPH_DUMP_FILE_RANK", "0", "the rank that writes it"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.graphs.dump_rank = static_cast<int>(wholeNumber(r, v, 0, 1 << 20));
     }},
    {{"NCCL_IGNORE_CPU_AFFINITY", "0",
      "1: threads and memory of a rank are bound to CPUs near its GPU, or, in host memory, on the NUMA "
      "node that it was bound to, also to such as the process was not bound to; 0: only to those it was "
      "bound to"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.ignores_cpu_affinity = flag(r, v); }},
    {{"NCCL_SHM_DISABLE", "0", "1: on host memory, processes of one host use the network between them"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.uses_shared_memory = !flag(r, v); },
     ActsOn::host},
    {{"NCCL_TOPO_FILE", "",
      "file that tells of this host's CPUs, PCI switches, GPUs and cards, in NCCL's XML or hwloc's, instead "
      "of what "
      "the host shows; the same on all ranks of a host; default "
      "/var/run/nvidia-topologyd/virtualTopology.xml where it exists"},
     [](Settings& s, const ActingRow&, std::string_view v) { s.topology_files.file = v; }},
    {{"NCCL_TOPO_DUMP_FILE", "", "file to write what was found of this host to, in NCCL's XML"},
     [](Settings& s, const ActingRow&, std::string_view v) { s.topology_files.dump_file = v; }},
    {{"NCCL_TOPO_DUMP_FILE_RANK", "0", "the rank that does"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       s.topology_files.dump_rank = static_cast<int>(wholeNumber(r, v, 0, 1U << 30));
     }},
    {{"NCCL_COMM_BLOCKING", "",
      "1 or 0: communicators are blocking or non-blocking, whatever their configuration says; default: what "
      "that says"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (!v.empty()) s.blocks = flag(r, v);
     }},
    {{"NCCL_CHECK_POINTERS", "0",
      "1: before every operation, all of its buffers must be memory that can be read or written, and of the "
      "communicator's kind; for debugging: it asks the system at every call"},
     [](Settings& s, const ActingRow& r, std::string_view v) { s.checks_pointers = flag(r, v); }},
    {{"NCCL_CHECK_MODE", "DEFAULT", "DEBUG_LOCAL or DEBUG_GLOBAL: as NCCL_CHECK_POINTERS=1"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       constexpr std::string_view kModes[] = {"DEFAULT", "DEBUG_LOCAL", "DEBUG_GLOBAL"};
       if (oneOf(r, v, kModes) != 0) s.checks_pointers = true;
     }},
    {{"NCCL_DEBUG", "NONE", "what is logged: NONE, VERSION, WARN, INFO, ABORT (as INFO) or TRACE"},
     readLogLevel},
    {{"NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,ENV,NET,TUNING,REG",
      "what INFO lines are about: a list of NCCL's names, ALL, or ^ before it for all others; COLL adds a "
      "line for every call"},
     readLogSubsystems},
    {{"NCCL_DEBUG_FILE", "",
      "file that log lines are appended to, %h host name, %p process, %% a percent sign; default standard "
      "error"},
     [](Settings& s, const ActingRow&, std::string_view v) { s.log.file = v; }},
    {{"NCCL_DEBUG_TIMESTAMP_FORMAT", "[%F %T] ",
      "how the time is written before log lines: as strftime does, %1f to %9f for parts of a second, _ for a "
      "space"},
     [](Settings& s, const ActingRow& r, std::string_view v) {
       if (v.size() > 200) refuse(r, v, "at most 200 characters");
       s.log.timestamp_format = v;
     }},
    {{"NCCL_DEBUG_TIMESTAMP_LEVELS", "WARN",
      "which lines open with the time: a list of VERSION, WARN, INFO, ABORT, TRACE, ALL, or ^ before it for "
      "all others"},
     readTimestampLevels},
    {{"NCCL_CONF_FILE", "", "file of NAME=VALUE lines that is read instead of ~/.nccl.conf; see above"},
     readElsewhere},
    {{"TUTTI_RANK", "", "set by tutti-run: the rank of this process"}, readElsewhere},
    {{"TUTTI_WORLD_SIZE", "", "set by tutti-run: how many ranks there are"}, readElsewhere},
    {{"TUTTI_ID_FILE", "", "set by tutti-run: file with the unique id"}, readElsewhere},
};

}  // namespace

std::span<const ActingRow> actingRows() { return kRows; }

std::span<const SettingRow> actingSettings() {
  static const auto rows = [] {
    std::array<SettingRow, std::size(kRows)> result;
    std::ranges::copy(kRows, result.begin());
    return result;
  }();
  return rows;
}

}  // namespace tutti
