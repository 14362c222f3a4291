// The TCP links of one rank of one communicator: with every rank on another host, in both directions, on
// every lane.
//
// A link is one connection, made when there is first something to send. Each side keeps the link's ring in
// memory of its own, which executors use as they use a ring in shared memory; Progress moves slots one way,
// credits and results the other. README.md says how a broken connection heals.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/net_address.h"
#include "runtime/core/unique_fd.h"
#include "transports/network.h"
#include "transports/network_driver.h"
#include "transports/secure_channel.h"
#include "transports/tcp/door.h"
#include "transports/tcp/link_context.h"
#include "transports/tcp/receiving_link.h"
#include "transports/tcp/sending_link.h"
#include "transports/wire.h"

namespace tutti {

/// What a rank listens on. Family none: there are no links with it.
struct TcpPeer {
  NetAddress address;
  std::string name;  ///< for messages: "rank 2 (pid 71 on node7)"
};

class TcpNetwork final : public NetworkDriver<Network, SendingLink, ReceivingLink> {
 public:
  /// `listener` listens at the address that the peers know; the secret is the communicator's. `peers` is by
  /// rank. sodium_init() must have been called. Throws Error.
  TcpNetwork(UniqueFd listener, const Secret& secret, int rank, std::vector<TcpPeer> peers,
             const NetworkOptions& options);
  /// Closes all connections as they are; drain() before, for a good end.
  ~TcpNetwork() override { endLinks(); }

  void poll(int peer) override;
  void halt() override;

 private:
  /// How poll() goes on after the awaited peer's own sockets.
  enum class Manner { patient, many_lanes, by_events };

  Manner pollPeer(int peer);
  ReceivingLink* find(const Hello& hello);
  void takeEvents() override;
  void handle(std::uint64_t token);
  bool hasMore() const override;
  void acknowledge() override;
  bool isBusy() const override { return door_->isBusy(); }
  void sayBye() override;

  Secret secret_;
  std::unique_ptr<Wire> wire_;
  LinkContext context_;
  std::uint64_t polls_ = 0;
  std::uint64_t idle_polls_ = 0;         ///< since an awaited link had something
  std::vector<std::uint32_t> hot_lane_;  ///< by peer: where it sent last
  std::unique_ptr<Door> door_;
};

}  // namespace tutti
