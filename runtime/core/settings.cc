#include "runtime/core/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::uint64_t kMaxSeconds = 10ULL * 365 * 24 * 3600;

struct Row : SettingRow {
  void (*apply)(Settings&, const Row&, std::string_view value);
};

[[noreturn]] void refuse(const Row& row, std::string_view value, std::string_view accepted) {
  throw Error(ncclInvalidUsage,
              fmt::format("{}=\"{}\": expected {}. Unset it for the default{}{}.", row.name, value, accepted,
                          row.default_value.empty() ? "" : ", ", row.default_value));
}

std::uint64_t wholeNumber(const Row& row, std::string_view value, std::uint64_t low, std::uint64_t high) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < low || number > high) {
    refuse(row, value, fmt::format("a whole number from {} to {}", low, high));
  }
  return number;
}

std::chrono::milliseconds seconds(const Row& row, std::string_view value) {
  // std::from_chars for double would also take "inf" and "nan"; the comparison below refuses both.
  double number = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || !(number >= 0) ||
      number > static_cast<double>(kMaxSeconds)) {
    refuse(row, value, "a number of seconds, 0 or more");
  }
  return std::chrono::milliseconds(static_cast<std::int64_t>(number * 1000));
}

LogLevel logLevel(const Row& row, std::string_view value) {
  constexpr std::array<std::pair<std::string_view, LogLevel>, 5> kLevels{{{"NONE", LogLevel::none},
                                                                          {"VERSION", LogLevel::version},
                                                                          {"WARN", LogLevel::warn},
                                                                          {"INFO", LogLevel::info},
                                                                          {"TRACE", LogLevel::trace}}};
  for (const auto& [text, level] : kLevels) {
    if (std::ranges::equal(text, value, [](char a, char b) { return a == (b & ~0x20); })) return level;
  }
  refuse(row, value, "NONE, VERSION, WARN, INFO or TRACE");
}

bool equalIgnoringCase(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

DeviceChoice deviceChoice(const Row& row, std::string_view value) {
  if (equalIgnoringCase(value, "auto")) return DeviceChoice::automatic;
  if (equalIgnoringCase(value, "cuda")) return DeviceChoice::cuda;
  if (equalIgnoringCase(value, "host")) return DeviceChoice::host;
  refuse(row, value, "auto, cuda or host");
}

using Pick = PlanOverride::Pick;
using Form = PlanOverride::Form;

bool readAlgorithm(std::string_view text, Pick& pick) {
  constexpr std::pair<std::string_view, Pick> kNames[] = {{"ring", Pick::ring},
                                                          {"direct", Pick::direct},
                                                          {"one_shot", Pick::one_shot},
                                                          {"hierarchical", Pick::hierarchical}};
  for (const auto& [name, value] : kNames) {
    if (!equalIgnoringCase(text, name)) continue;
    pick = value;
    return true;
  }
  return false;
}

/// ALGORITHM, or ALGORITHM/FORM, or /FORM.
void readPlan(Settings& settings, const Row& row, std::string_view value) {
  constexpr std::string_view kAccepted =
      "ring, direct, one_shot or hierarchical, and perhaps /slots or /packets after it, such as direct/slots";
  if (value.empty()) return;
  const std::size_t slash = std::min(value.find('/'), value.size());
  const std::string_view algorithm = value.substr(0, slash);
  if (!algorithm.empty() && !readAlgorithm(algorithm, settings.plan.algorithm)) refuse(row, value, kAccepted);
  if (slash == value.size()) return;
  const std::string_view form = value.substr(slash + 1);
  if (!equalIgnoringCase(form, "slots") && !equalIgnoringCase(form, "packets")) refuse(row, value, kAccepted);
  settings.plan.slots = equalIgnoringCase(form, "slots") ? Form::plain : Form::packets;
}

/// FIRST-LAST.
void readPortRange(Settings& settings, const Row& row, std::string_view value) {
  if (value.empty()) return;
  const std::size_t dash = std::min(value.find('-'), value.size());
  if (dash == value.size()) refuse(row, value, "two ports, such as 20000-20100");
  settings.network.first_port = static_cast<std::uint16_t>(wholeNumber(row, value.substr(0, dash), 1, 65535));
  settings.network.last_port = static_cast<std::uint16_t>(wholeNumber(row, value.substr(dash + 1), 1, 65535));
  if (settings.network.last_port < settings.network.first_port) {
    refuse(row, value, "the lower port first, such as 20000-20100");
  }
}

NetworkChoice networkChoice(const Row& row, std::string_view value, std::vector<std::string>& ignored) {
  if (value.empty()) return NetworkChoice::automatic;
  if (equalIgnoringCase(value, "IB")) return NetworkChoice::rdma;
  if (equalIgnoringCase(value, "Socket")) return NetworkChoice::sockets;
  ignored.emplace_back(row.name);  // a plugin of NCCL's
  return NetworkChoice::automatic;
}

/// MAJOR.MINOR.PATCH, or the code that NCCL makes of it.
int ncclVersion(const Row& row, std::string_view value) {
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

constexpr Row kRows[] = {
    {{"TUTTI_INIT_TIMEOUT", "300",
      "seconds after the first rank by which all must have joined a communicator"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.init_timeout = seconds(r, v);
       if (s.init_timeout.count() == 0) refuse(r, v, "more than 0 seconds");
     }},
    {{"TUTTI_TIMEOUT", "1800",
      "seconds that a rank waits for a live peer that has not entered the operation; 0 waits for ever"},
     [](Settings& s, const Row& r, std::string_view v) { s.timeout = seconds(r, v); }},
    {{"TUTTI_STALL_TIMEOUT", "60",
      "seconds without progress after which an operation fails once every rank has entered it; 0 waits for "
      "ever"},
     [](Settings& s, const Row& r, std::string_view v) { s.stall_timeout = seconds(r, v); }},
    {{"TUTTI_SLOT_BYTES", "auto",
      "data bytes of one slot of a link, a multiple of 64; equal on all ranks; auto: 131072, and less where "
      "more than 8 ranks share links"},
     [](Settings& s, const Row& r, std::string_view v) {
       if (v == "auto") return;
       s.links.slot_bytes = static_cast<std::uint32_t>(wholeNumber(r, v, 64, 1U << 28));
       if (s.links.slot_bytes % 64 != 0) refuse(r, v, "a multiple of 64");
     }},
    {{"TUTTI_SLOTS", "4", "slots of a link; equal on all ranks"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.links.slot_count = static_cast<std::uint32_t>(wholeNumber(r, v, 2, 64));
     }},
    {{"TUTTI_DEVICE", "auto",
      "memory that communicators work on: cuda, of the current GPU; host; auto: cuda where a GPU can be "
      "used"},
     [](Settings& s, const Row& r, std::string_view v) { s.device = deviceChoice(r, v); }},
    {{"TUTTI_LANES", "auto",
      "lanes: parts of an operation with links of their own, on a GPU also blocks of its kernels; equal on "
      "all "
      "ranks; auto: 1 on host memory, 8 on GPUs"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.links.lanes = 0;
       if (v == "auto") return;
       s.links.lanes = static_cast<std::uint32_t>(wholeNumber(r, v, 1, 16));
     }},
    {{"NCCL_ALGO", "",
      "algorithm of collectives: Ring; other names of NCCL have no counterpart here and are ignored; equal "
      "on "
      "all ranks; default chosen by size"},
     [](Settings& s, const Row&, std::string_view v) {
       if (!readAlgorithm(v, s.plan.algorithm) && !v.empty()) s.ignored.emplace_back("NCCL_ALGO");
     }},
    {{"NCCL_PROTO", "",
      "Simple: slots with acknowledgement; LL and LL128: packets, where the operation can use them; equal on "
      "all "
      "ranks; default chosen by size"},
     [](Settings& s, const Row&, std::string_view v) {
       if (equalIgnoringCase(v, "Simple"))
         s.plan.slots = Form::plain;
       else if (equalIgnoringCase(v, "LL") || equalIgnoringCase(v, "LL128"))
         s.plan.slots = Form::packets;
       else if (!v.empty())
         s.ignored.emplace_back("NCCL_PROTO");
     }},
    {{"TUTTI_PLAN", "",
      "how collectives are carried out: ring, direct, one_shot or hierarchical, then perhaps /slots or "
      "/packets; before "
      "NCCL_ALGO and NCCL_PROTO; equal on all ranks; default chosen by size"},
     readPlan},
    {{"TUTTI_LEND_BYTES", "auto",
      "operations on at least so many bytes let peers work on registered buffers in place; smaller ones pass "
      "through slots; auto: 16777216 on host memory, 262144 on GPUs"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.loans.least_bytes = LoanPolicy::kAutomatic;
       if (v != "auto") s.loans.least_bytes = wholeNumber(r, v, 0, std::uint64_t{1} << 62);
     }},
    {{"TUTTI_PROCESS_VM", "0",
      "1: ranks of other processes copy large unregistered buffers by process_vm_readv, where the system "
      "permits; "
      "0: such buffers pass through slots, which was faster wherever it was measured"},
     [](Settings& s, const Row& r, std::string_view v) { s.loans.copies = wholeNumber(r, v, 0, 1) == 1; }},
    {{"TUTTI_BOOTSTRAP_PORT", "0", "TCP port on which ncclGetUniqueId listens; 0 takes any free port"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.bootstrap_port = static_cast<std::uint16_t>(wholeNumber(r, v, 0, 65535));
     }},
    {{"NCCL_SOCKET_IFNAME", "",
      "network interfaces to use: names or prefixes, or =NAME for exactly that one, or networks such as "
      "10.0.0.0/8, separated by commas; ^ before them all excludes them; default: the one that leads to the "
      "rendezvous"},
     [](Settings& s, const Row&, std::string_view v) { s.network.interfaces = v; }},
    {{"NCCL_SOCKET_FAMILY", "", "AF_INET or AF_INET6: IPv4 or IPv6 only; default either"},
     [](Settings& s, const Row& r, std::string_view v) {
       if (!v.empty() && v != "AF_INET" && v != "AF_INET6") refuse(r, v, "AF_INET or AF_INET6");
       s.network.family = v;
     }},
    {{"TUTTI_PORT_RANGE", "", "FIRST-LAST: TCP ports that ranks listen on; default any free ones"},
     readPortRange},
    {{"NCCL_COMM_ID", "",
      "HOST:PORT or [IPv6]:PORT where rank 0 listens for the others, instead of an id that is handed around; "
      "needs TUTTI_SECRET_FILE"},
     [](Settings& s, const Row&, std::string_view v) { s.network.comm_id = v; }},
    {{"TUTTI_SECRET_FILE", "",
      "file that only the ranks can read, equal on all hosts, at least 16 bytes: who does not know it cannot "
      "join "
      "by NCCL_COMM_ID or MASTER_ADDR"},
     [](Settings& s, const Row&, std::string_view v) { s.network.secret_file = v; }},
    {{"TUTTI_INSECURE", "0",
      "1: joining by NCCL_COMM_ID or MASTER_ADDR without TUTTI_SECRET_FILE is allowed, on networks where all "
      "are "
      "trusted"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.network.is_insecure = wholeNumber(r, v, 0, 1) == 1;
     }},
    {{"NCCL_HOSTID", "",
      "name of this host among all: ranks with different ones use the network between them; default: the "
      "kernel's "
      "boot id"},
     [](Settings& s, const Row&, std::string_view v) { s.network.host_id = v; }},
    {{"TUTTI_NET_RECOVERY", "5",
      "seconds within which a broken connection between live ranks on different hosts must be replaced"},
     [](Settings& s, const Row& r, std::string_view v) { s.network.recovery = seconds(r, v); }},
    {{"TUTTI_CHECKSUM", "0",
      "1: data on network links carries a checksum of its own; what was altered on its way is sent again; "
      "equal "
      "on all "
      "ranks"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.network.has_checksums = wholeNumber(r, v, 0, 1) == 1;
     }},
    {{"NCCL_NET", "",
      "network to other hosts: IB (RDMA; an error where it cannot be used) or Socket (TCP); default RDMA "
      "where "
      "every rank has a port"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.network_choice = networkChoice(r, v, s.ignored);
     }},
    {{"NCCL_IB_DISABLE", "0", "1: RDMA is not used"},
     [](Settings& s, const Row& r, std::string_view v) {
       if (wholeNumber(r, v, 0, 1) == 0) return;
       if (s.network_choice == NetworkChoice::rdma) refuse(r, v, "0, since NCCL_NET=IB demands RDMA");
       s.network_choice = NetworkChoice::sockets;
     }},
    {{"NCCL_IB_HCA", "",
      "RDMA devices to use: names or prefixes, each perhaps with :PORT, separated by commas; = before them "
      "all: "
      "whole names; ^ before them all: all others; default all ports that are up"},
     [](Settings& s, const Row&, std::string_view v) { s.rdma.hca = v; }},
    {{"NCCL_IB_GID_INDEX", "-1",
      "entry of the port's GID table; -1: chosen for each pair of ranks, RoCE v2 first, then the same "
      "subnet"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.gid_index = v == "-1" ? -1 : static_cast<int>(wholeNumber(r, v, 0, 255));
     }},
    {{"NCCL_IB_ADDR_FAMILY", "", "AF_INET or AF_INET6: GIDs of that family only; default either"},
     [](Settings& s, const Row& r, std::string_view v) {
       if (!v.empty() && v != "AF_INET" && v != "AF_INET6") refuse(r, v, "AF_INET or AF_INET6");
       s.rdma.address_family = v;
     }},
    {{"NCCL_IB_ADDR_RANGE", "", "network of the GIDs to use, such as 10.0.0.0/8; default any"},
     [](Settings& s, const Row&, std::string_view v) { s.rdma.address_range = v; }},
    {{"NCCL_IB_TIMEOUT", "16",
      "how long a device waits for an acknowledgement before it sends again: 4.096 us * 2^N"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.timeout = static_cast<std::uint8_t>(wholeNumber(r, v, 1, 31));
     }},
    {{"NCCL_IB_RETRY_CNT", "7", "how often a device sends again; for some, 7 means for ever"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.retry_count = static_cast<std::uint8_t>(wholeNumber(r, v, 0, 7));
     }},
    {{"NCCL_IB_SL", "0", "InfiniBand service level"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.service_level = static_cast<std::uint8_t>(wholeNumber(r, v, 0, 15));
     }},
    {{"NCCL_IB_TC", "0", "traffic class of RDMA packets: the TOS byte of RoCE v2"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.traffic_class = static_cast<std::uint8_t>(wholeNumber(r, v, 0, 255));
     }},
    {{"NCCL_IB_PKEY", "0", "index of the partition key to use, in the port's table"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.pkey_index = static_cast<std::uint16_t>(wholeNumber(r, v, 0, 65535));
     }},
    {{"NCCL_IB_QPS_PER_CONNECTION", "1", "queue pairs of each link; its slots take turns on them"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.queue_pairs = static_cast<std::uint32_t>(wholeNumber(r, v, 1, 8));
     }},
    {{"NCCL_NET_GDR_LEVEL", "",
      "LOC or 0: RDMA devices do not reach into GPU memory, data goes through pinned host memory; other "
      "levels "
      "of NCCL are ignored; default: where devices reach GPU memory, they use it"},
     [](Settings& s, const Row& r, std::string_view v) {
       s.rdma.gpu_slots = v != "LOC" && v != "0";
       if (s.rdma.gpu_slots && !v.empty()) s.ignored.emplace_back(r.name);
     }},
    {{"NCCL_DMABUF_ENABLE", "1",
      "0: RDMA devices do not reach GPU memory by dma-buf, only by nvidia-peermem"},
     [](Settings& s, const Row& r, std::string_view v) { s.rdma.dma_buf = wholeNumber(r, v, 0, 1) == 1; }},
    {{"NCCL_COMM_BLOCKING", "",
      "1 or 0: communicators are blocking or non-blocking, whatever their configuration says; default: what "
      "that "
      "says"},
     [](Settings& s, const Row& r, std::string_view v) {
       if (!v.empty()) s.blocks = wholeNumber(r, v, 0, 1) == 1;
     }},
    {{"TUTTI_NCCL_VERSION", "",
      "version of NCCL that ncclGetVersion says, such as 2.27.5 or 22705, for programs that look at it; "
      "default "
      "2.28.9"},
     [](Settings& s, const Row& r, std::string_view v) { s.nccl_version = ncclVersion(r, v); }},
    {{"TUTTI_FAULTS", "", "faults to inject into links to other hosts, for tests; see transports/README.md"},
     [](Settings& s, const Row&, std::string_view v) { s.network.faults = v; }},
    {{"NCCL_DEBUG", "NONE", "what is logged: NONE, VERSION, WARN, INFO or TRACE"},
     [](Settings& s, const Row& r, std::string_view v) { s.log_level = logLevel(r, v); }},
    {{"NCCL_DEBUG_FILE", "",
      "file that log lines are appended to, %h host name, %p process; default standard error"},
     [](Settings& s, const Row&, std::string_view v) { s.log_file = v; }},
};

}  // namespace

std::span<const SettingRow> settingRows() {
  static const auto rows = [] {
    std::array<SettingRow, std::size(kRows)> result;
    std::ranges::copy(kRows, result.begin());
    return result;
  }();
  return rows;
}

std::vector<std::string> unreadVariables(const char* const* environment) {
  // Read elsewhere: by launchers, programs, emulation and tests.
  constexpr std::array<std::string_view, 9> kOthers{"TUTTI_RANK",   "TUTTI_WORLD_SIZE", "TUTTI_ID_FILE",
                                                    "TUTTI_EMULAT", "TUTTI_TEST_",      "TUTTI_CHAOS_",
                                                    "TUTTI_SIM_",   "TUTTI_GUEST_",     "NCCL_TESTS_"};
  std::vector<std::string> names;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with("NCCL_") && !name.starts_with("TUTTI_")) continue;
    if (std::ranges::find(kRows, name, &Row::name) != std::end(kRows)) continue;
    if (std::ranges::any_of(kOthers, [&](std::string_view other) { return name.starts_with(other); }))
      continue;
    names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Settings readSettings(const std::function<const char*(const char*)>& get) {
  Settings settings{};
  for (const Row& row : kRows) {
    const char* value = get(std::string(row.name).c_str());
    row.apply(settings, row,
              value != nullptr && *value != '\0' ? std::string_view(value) : row.default_value);
  }
  return settings;
}

}  // namespace tutti
