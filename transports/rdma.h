// RDMA between hosts, for whoever makes communicators. verbs/ is what is behind it; builds without
// rdma-core's headers have verbs/absent.cc in its place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/accelerator.h"
#include "runtime/core/path_class.h"
#include "runtime/core/settings.h"
#include "transports/network.h"

namespace tutti {

/// Ports that this process may use; verbs/device.h has what it is.
struct VerbsPorts;

struct RdmaPorts {
  std::shared_ptr<VerbsPorts> ports;  ///< nullptr: none
  std::string names;                  ///< "mlx5_0:1, mlx5_1:1"
  std::string why_not;                ///< where there is none
};
RdmaPorts findRdmaPorts(const RdmaSettings& settings);

/// A port as the communicator's topology knows it.
struct RdmaPlace {
  std::string device;  ///< "mlx5_0"
  int port = 1;
  std::string bus_id = {};                ///< "0000:3b:00.0"; empty: unknown
  PathClass path_class = PathClass::sys;  ///< from this rank
};

/// What carries a ring between hosts: the port that a link begins with.
struct RingPort {
  int peer = -1;
  std::uint32_t channel = 0;  ///< lanes take turns on these
  bool sends = false;         ///< to the peer, or from it
  RdmaPlace place;
};

struct RdmaOptions : NetworkOptions {
  int rank = 0;
  int local_rank = 0;  ///< among the ranks of its host, which begin with different ports
  /// By rank, for messages: "rank 2 (pid 71 on node7)". Empty: there are no links with it.
  std::vector<std::string> peers = {};
  std::vector<RdmaPlace> places = {};     ///< by NCCL_TOPO_FILE; empty: as far as the system shows
  std::vector<RingPort> ring_ports = {};  ///< other links begin with the nearest, lanes in turn
  std::uint32_t channels = 1;             ///< of rings
  RdmaSettings settings = {};
  /// Slots are to lie in the memory of the current GPU where devices reach it; nullptr: in host memory.
  Accelerator* gpus = nullptr;
  std::function<void(const std::string&)> tell_path = {};  ///< how a connection goes
};

/// Network links by RDMA. Beside what their devices carry, ranks send letters to each other over the control
/// plane.
class RdmaNetwork : public Network {
 public:
  using Letter = std::vector<std::uint8_t>;

  /// How letters reach a peer. Before the first enter().
  virtual void tellBy(std::function<void(int peer, Letter letter)> tell) = 0;
  /// A letter of a peer has come. Any thread.
  virtual void hear(int peer, std::span<const std::uint8_t> letter) = 0;

  /// Where slots lie, and why, for people: "GPU memory, by dma-buf", "pinned host memory: ..."; empty without
  /// GPUs.
  virtual const std::string& slotPlace() const = 0;
};

/// Throws Error.
std::unique_ptr<RdmaNetwork> makeRdmaNetwork(const RdmaPorts& ports, RdmaOptions options);

}  // namespace tutti
