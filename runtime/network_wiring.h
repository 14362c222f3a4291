// Connects the ranks of different hosts: by RDMA where all of them can, else by TCP.
#pragma once

#include <functional>
#include <string>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/core/peer.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/settings.h"
#include "runtime/process.h"
#include "runtime/wiring.h"
#include "transports/rdma.h"

namespace tutti {

class NetworkWiring {
 public:
  /// All outlive this.
  NetworkWiring(Process& process, const Settings& settings, const WiringRequest& request, Wiring& wiring);

  /// Says in `self` what all ranks must know of this rank to choose the network.
  void describe(PeerInfo& self) const;

  /// Makes the network, whose links are connected when they are first used, and the control plane, which
  /// shows the others what is on this rank's `line`. `wiring` has peers, locals, layout and shape. After the
  /// bootstrap's last collective.
  void connect(Bootstrap& bootstrap, RankStatus& line);

  /// As tutti/transport.h names it.
  const char* name() const { return has_rdma_ ? "verbs" : "tcp"; }
  /// Of RDMA links of GPUs, for the log; may be empty.
  const std::string& slotPlace() const { return slot_place_; }

 private:
  const PeerInfo* rankWithoutRdma() const;
  void warnOfTcp() const;
  RdmaNetwork* connectByRdma();
  void connectByTcp(Bootstrap& bootstrap);
  NetworkOptions options() const;
  std::function<void(const std::string&)> logAt(LogLevel level) const;
  bool isLocal(int rank) const;
  std::size_t rankCount() const { return wiring_.peers.size(); }

  Process& process_;
  const Settings& settings_;
  const WiringRequest& request_;
  Wiring& wiring_;
  RdmaPorts ports_;
  bool has_rdma_ = false;
  std::string slot_place_;
};

}  // namespace tutti
