// Every environment variable that Tutti reads, in one table.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/address_range.h"
#include "runtime/core/log_settings.h"
#include "runtime/core/plan.h"
#include "runtime/core/topology_rules.h"

namespace tutti {

/// Whose memory communicators work on.
enum class DeviceChoice : std::uint8_t {
  automatic,  ///< a GPU's, where there is one that can be used
  cuda,
  host,
};

/// How ranks of several hosts find and reach each other.
struct NetworkSettings {
  std::string interfaces;                    ///< which interfaces to use, as written; empty: chosen
  std::string family;                        ///< "AF_INET", "AF_INET6"; empty: either
  std::uint16_t first_port = 0;              ///< of the ports that ranks listen on; 0: any free one
  std::uint16_t last_port = 0;               ///< included
  std::string comm_id;                       ///< HOST:PORT where rank 0 listens; empty: the id tells
  std::string secret_file;                   ///< whose contents ranks prove to know
  bool is_insecure = false;                  ///< joining by comm_id without a secret is allowed
  std::string host_id;                       ///< what distinguishes this host; empty: the kernel's boot id
  std::chrono::milliseconds recovery{5000};  ///< a broken connection must be replaced within
  bool has_checksums = false;                ///< data on network links carries a checksum; equal on all ranks
  std::string faults;  ///< injected into network links, for tests; see transports/faulty
};

/// Which network carries what goes to other hosts.
enum class NetworkChoice : std::uint8_t {
  automatic,  ///< RDMA, where every rank has a port
  rdma,       ///< or an error
  sockets,
};

/// How links by RDMA are made. The names are NCCL's.
struct RdmaSettings {
  std::string hca;             ///< which devices and ports, as written; empty: all that are up
  int gid_index = -1;          ///< -1: chosen for each pair
  std::string address_family;  ///< "AF_INET", "AF_INET6"; empty: either
  std::optional<AddressRange> address_range = std::nullopt;  ///< that GIDs are to lie in
  std::uint8_t timeout = 16;       ///< 4.096 us * 2^timeout, for one acknowledgement
  std::uint8_t retry_count = 7;    ///< of a device; 7 may mean for ever
  std::uint8_t service_level = 0;  ///< InfiniBand
  std::uint8_t traffic_class = 0;  ///< RoCE: the TOS byte
  std::uint16_t pkey_index = 0;    ///< into the port's table
  std::uint32_t queue_pairs = 1;   ///< of each link
  /// Slots lie in the memory of a GPU where devices reach it, and are no farther from it than that.
  std::optional<PathClass> gpu_level;
  bool dma_buf = true;  ///< devices may reach it by dma-buf

  /// Whether somebody said which ports to use: then there should be some.
  bool namesPorts() const {
    return !hca.empty() || gid_index >= 0 || !address_family.empty() || address_range.has_value() ||
           pkey_index > 0;
  }
};

/// Files that tell of hosts (runtime/topology/nccl_xml.h), or of rings and trees (graph_xml.h); empty: none.
struct TopologyFiles {
  std::string file;       ///< used instead of what this host shows, or of a search
  std::string dump_file;  ///< written
  int dump_rank = 0;      ///< by this rank
};

/// The settings of a process, read once from the environment. Texts with a grammar of their own are
/// well-formed.
struct Settings {
  std::chrono::milliseconds init_timeout;   ///< all ranks must have joined by then
  std::chrono::milliseconds timeout;        ///< a live peer must have entered an operation by then; 0 = never
  std::chrono::milliseconds stall_timeout;  ///< progress must be seen within this once all have entered
  DeviceChoice device = DeviceChoice::automatic;
  LinkShape links;
  TopologyRules topology;
  TopologyFiles topology_files;
  TopologyFiles graphs;
  bool ignores_cpu_affinity = false;  ///< of the process, where a rank is bound to the CPUs near it
  PlanOverrides plans;
  LoanPolicy loans;
  std::optional<bool> blocks;        ///< instead of what ncclConfig_t says
  bool checks_pointers = false;      ///< every buffer is looked at before an operation
  bool uses_shared_memory = true;    ///< between the processes of a host, on host memory
  bool uses_peer_access = true;      ///< between the GPUs of a host
  std::uint16_t bootstrap_port = 0;  ///< 0: any free port
  NetworkSettings network;
  NetworkChoice network_choice = NetworkChoice::automatic;
  RdmaSettings rdma;
  int nccl_version = 0;  ///< that ncclGetVersion says; 0: that of nccl.h
  LogSettings log;
  std::vector<std::string> ignored;          ///< variables that change nothing here
  std::vector<std::string> ignored_on_host;  ///< nothing for communicators on host memory
  std::vector<std::string> ignored_on_gpus;  ///< nothing for those on GPUs
};

/// One row of the table, from which docs/environment.md and `tutti-doctor --env` come.
struct SettingRow {
  std::string_view name;
  std::string_view default_value = {};
  std::string_view meaning = {};  ///< of NCCL's variables without effect here: why they have none
};

/// The variables that something here acts on.
std::span<const SettingRow> actingSettings();
/// NCCL's others: their form is checked, and the log says that they are ignored.
std::span<const SettingRow> idleSettings();

/// Reads all settings. `get` returns a variable's value or nullptr.
/// Throws Error(ncclInvalidUsage) that names the variable, its value and what is accepted.
Settings readSettings(const std::function<const char*(const char*)>& get);

/// Whether `value` of a known variable is accepted, and has an effect.
struct SettingEffect {
  bool acts = true;
  std::string problem;  ///< why it is refused; empty: it is not
};
SettingEffect effectOf(std::string_view name, std::string_view value);

}  // namespace tutti
