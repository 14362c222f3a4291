// What is known of a host, without any judgement: gather.h finds it out, judge.h makes findings of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/settings.h"
#include "transports/interfaces.h"

namespace tutti::doctor {

struct NetworkDevice {
  int mtu = 0;
  int megabits = -1;  ///< per second; -1: the device does not say
  bool has_carrier = true;
};

struct NetworkFacts {
  std::vector<Interface> usable = {};  ///< the first is the one to take
  std::string why_none = {};           ///< where that is empty
  std::map<std::string, NetworkDevice> devices = {};
  std::string default_route = {};  ///< interface; empty: there is none
  bool may_have_firewall = false;  ///< its module is loaded
};

/// A port as the system shows it (/sys/class/infiniband).
struct RdmaPort {
  std::string name = {};   ///< "mlx5_0:1"
  std::string state = {};  ///< "ACTIVE", "DOWN", ...
  std::string rate = {};   ///< "100 Gb/sec (4X EDR)"
  bool is_ethernet = false;
  std::string interface = {};  ///< RoCE: the network device below
  int interface_mtu = 0;
  bool is_wanted = true;     ///< NCCL_IB_HCA does not leave it out
  std::string why_not = {};  ///< it is not used, though wanted
};

/// A port that Tutti would use.
struct UsableRdmaPort {
  std::string name = {};
  int mtu = 0;           ///< of RDMA packets, in bytes
  int gid_count = 0;     ///< entries of its table that the rules leave; at least one
  std::string gid = {};  ///< that would be chosen, in words
  bool is_link_local = false;
  bool is_roce_v1 = false;
};

struct RdmaFacts {
  bool is_built = true;  ///< this Tutti has RDMA
  std::vector<RdmaPort> ports = {};
  std::vector<UsableRdmaPort> usable = {};
  std::string why_none = {};      ///< of usable
  bool has_device_files = false;  ///< /dev/infiniband/uverbs*
};

struct LimitFacts {
  std::optional<std::uint64_t> locked_bytes = {};  ///< nothing: no limit, or this process is exempt
  std::uint64_t locked_need = 0;                   ///< of a communicator with kTypicalPeers
  std::uint64_t open_files = 0;
  std::uint64_t most_open_files = 0;  ///< that this user may ask for
  std::uint64_t free_bytes = 0;       ///< of system and control group
  std::uint64_t system_free_bytes = 0;
  std::string memfd_problem = {};
};

/// Ranks on other hosts, for estimates.
inline constexpr int kTypicalPeers = 15;

struct IsolationFacts {
  bool is_own_pid_namespace = false;  ///< not that of the system's first process
  bool is_own_user_namespace = false;
  std::string container = {};  ///< what says that this is one; empty: nothing does
  int ptrace_scope = 0;        ///< Yama's
  int seccomp = 0;             ///< mode; 2: a filter
  /// What a second process of this user could do; empty: it worked.
  std::string segment_problem = {};  ///< take shared memory that was handed to it
  bool maps_regions = false;         ///< open memory by /proc/PID/fd
  bool copies = false;               ///< process_vm_readv
};

struct GpuFacts {
  int pci_devices = 0;      ///< NVIDIA's, by their class
  std::string driver = {};  ///< version; empty: its module is not loaded
  bool is_open_driver = false;
  bool has_device_files = false;
  bool has_peermem = false;
  bool is_emulated = false;
  std::vector<std::string> gpus = {};  ///< that can be used: "0000:3b:00.0 NVIDIA H100"
  std::string why_none = {};
  int driver_cuda = 0;                          ///< 13000: CUDA 13.0; 0: unknown
  int runtime_cuda = 0;                         ///< the same
  std::vector<std::string> without_peers = {};  ///< pairs without peer access: "0 and 1"
  std::string ipc_problem = {};                 ///< empty: another process opened memory of the first GPU
};

struct PciFacts {
  bool has_iommu = false;                     ///< groups exist
  bool is_passthrough = false;                ///< iommu=pt
  bool could_read = true;                     ///< the extended configuration of the bridges
  std::vector<std::string> redirecting = {};  ///< bridges by which ACS sends traffic of peers to the root
};

struct HostFacts {
  std::string host = {};
  Settings settings = {};
  std::vector<std::string> settings_warnings = {};  ///< on names close to known ones, and lines of files
  std::vector<std::string> settings_problems = {};  ///< one per variable, whose default is in `settings`
  std::string joining_problem = {};                 ///< of NCCL_COMM_ID or TUTTI_SECRET_FILE
  NetworkFacts network = {};
  RdmaFacts rdma = {};
  LimitFacts limits = {};
  IsolationFacts isolation = {};
  GpuFacts gpu = {};
  PciFacts pci = {};
};

}  // namespace tutti::doctor
