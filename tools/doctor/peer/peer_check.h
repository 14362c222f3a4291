// Two doctors, on two hosts, try the network between them.
//
//   caller ─► listener   connects, proves the token; both say who they are and where they accept data
//   caller ─► listener   trial by TCP, then listener ─► caller
//   both                 trials by RDMA, where both have ports, each pair in each direction
//
// Everything that one finds out it tells the other, so that both come to the same verdict.
#pragma once

#include "runtime/core/net_address.h"
#include "tools/doctor/options.h"
#include "tools/doctor/peer/conversation.h"
#include "tools/doctor/peer/peer_facts.h"
#include "tools/findings/finding.h"

namespace tutti::doctor {

/// How it came out: findings, and, where the doctors met, the facts behind them.
struct PeerResult {
  Findings findings = {};
  bool have_met = false;
  PeerFacts facts = {};
};

/// The listener's side. `announce` gets the line for the other host. Both sides throw Error where this host
/// cannot take part: wrong settings, no interface, no port.
PeerResult listenForPeer(const Options& options, const std::function<void(const std::string&)>& announce);

/// The caller's side.
PeerResult callPeer(const Options& options);

}  // namespace tutti::doctor
