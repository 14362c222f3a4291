// What two doctors found out about the network between them. Both have the same, and so come to the same
// verdict. "caller" is the one that was given --peer, "listener" the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::doctor {

struct PeerSide {
  std::string host = {};
  std::string address = {};    ///< where it accepts data, as ranks would
  std::uint16_t port = 0;      ///< the same
  std::string interface = {};  ///< that has the address; empty: none has
  int mtu = 0;                 ///< of that
  bool has_rdma = false;
  std::string why_no_rdma = {};
};

/// How far a trial by TCP came, in this order.
enum class TcpOutcome : std::uint8_t {
  untried,
  no_route,
  no_answer,  ///< to the connection's first packet
  refused,
  failed,    ///< connecting, otherwise
  stranger,  ///< connected, but the peer's doctor is not there, or does not answer
  cut,       ///< the connection ended, or fell silent, in the midst
  stalls,    ///< small messages pass, large ones do not
  ok,
};

/// In one direction: who sends also connects.
struct TcpTrial {
  TcpOutcome outcome = TcpOutcome::untried;
  std::string words = {};    ///< the system's, for what failed
  std::string left_by = {};  ///< the sender's address, as its system chose it
  double round_trip_us = 0;  ///< median, 8 bytes and their answer
  double gbps = 0;           ///< gigabits per second of data
  std::uint64_t segments = 0;
  std::uint64_t sent_again = 0;  ///< of segments
};

/// In one direction. What arrived was seen by the receiver in its memory, whatever the sender learned.
struct RdmaTrial {
  std::string problem = {};  ///< before anything could be sent
  bool small_arrived = false;
  bool small_acknowledged = false;
  bool large_arrived = false;
  bool large_acknowledged = false;
  std::string status = {};  ///< of the write that failed, in words
  double round_trip_us = 0;
  double gbps = 0;
};

struct RdmaRail {
  std::string caller = {};    ///< port, "mlx5_0:1"
  std::string listener = {};  ///< port; empty: none goes with the caller's
  std::string path = {};      ///< addresses
  RdmaTrial to_listener = {};
  RdmaTrial to_caller = {};
};

struct PeerFacts {
  PeerSide caller = {};
  PeerSide listener = {};
  TcpTrial to_listener = {};
  TcpTrial to_caller = {};
  std::vector<RdmaRail> rails = {};
  std::string ended = {};  ///< why the doctors' conversation broke off; empty: it did not
};

}  // namespace tutti::doctor
