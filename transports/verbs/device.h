// RDMA devices and their ports, as this process may use them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/hca_rule.h"
#include "runtime/core/settings.h"
#include "transports/verbs/gids.h"
#include "transports/verbs/ibverbs.h"

namespace tutti {

/// An open device. Thread-safe: what is created on it belongs to whoever created it.
class VerbsDevice {
 public:
  /// Throws Error where it cannot be opened.
  VerbsDevice(const Ibverbs& verbs, ibv_device* device);
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;
  ~VerbsDevice();

  const Ibverbs& verbs() const { return verbs_; }
  const std::string& name() const { return name_; }
  /// Its folder of the system: /sys/class/infiniband/mlx5_0.
  std::string folder() const { return context_->device->ibdev_path; }
  ibv_context* context() const { return context_; }
  ibv_pd* domain() const { return domain_; }
  /// Whose descriptor, non-blocking, is readable when a completion queue that was armed has something.
  ibv_comp_channel* channel() const { return channel_; }
  /// Readable when a port went down or up, or has other addresses, or the device failed; non-blocking.
  int eventFd() const { return context_->async_fd; }

 private:
  void close();

  const Ibverbs& verbs_;
  std::string name_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
};

/// A port that is up, or was when it was found.
struct VerbsPort {
  std::shared_ptr<VerbsDevice> device;
  std::uint8_t number = 1;
  ibv_mtu mtu = IBV_MTU_1024;
  bool is_ethernet = false;          ///< RoCE; else InfiniBand
  std::uint16_t lid = 0;             ///< InfiniBand
  bool wants_global_header = false;  ///< also inside its subnet
  std::uint16_t partition = 0xffff;  ///< the key of NCCL_IB_PKEY
  std::vector<Gid> gids = {};        ///< that may be used, the best first

  /// "mlx5_0:1".
  std::string name() const;
  /// Why no connection can be made by it now; "" where one can. Asks the system.
  std::string whyNot() const;
  bool isUsable() const { return whyNot().empty(); }
};

/// Reads all of a port but its device and number. Returns what is wrong, or "".
std::string readPort(VerbsPort& port, const RdmaSettings& settings);

/// Reads what may change while a port is in use: LID, partition key, GIDs. Connections go on by what they
/// were made with, as long as they can; the next ones use the new. Returns what changed, in words; "" for
/// nothing.
std::string rereadPort(VerbsPort& port, const RdmaSettings& settings);

/// The ports to use, in the order of the system, with the GIDs to use: the rules are NCCL_IB_HCA's, and those
/// of path_rules.h. Nothing found: `why_not` says why, in words for whoever wanted RDMA.
struct VerbsPorts {
  std::vector<VerbsPort> ports;
  std::string why_not;
};
VerbsPorts findVerbsPorts(const RdmaSettings& settings);

}  // namespace tutti
