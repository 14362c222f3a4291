// What every medium offers: a way to make links between two ranks.
//
// A link is made by its receiver, who owns the slots, and joined by its sender:
//   receiver: offer(peer)  ──► Offer, a few bytes ──(bootstrap)──► sender: connect(peer, offer)
// Both get the LinkViews of all lanes. Calls may block up to the deadline and throw Error, which names the
// peer.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/link.h"
#include "runtime/core/peer.h"
#include "runtime/core/plan.h"

namespace tutti {

using Deadline = std::chrono::steady_clock::time_point;

/// Whether a medium connects two ranks, and if not, why: for the message when none does.
struct Reach {
  bool possible = false;
  int cost = 0;        ///< the cheapest possible transport is taken
  std::string reason;  ///< why not
};

/// What the receiver of a link tells its sender. Fixed size, so that an all-gather can carry it.
struct Offer {
  std::array<std::uint8_t, 16> token{};  ///< names the memory
};

/// The links of all lanes between two ranks in one direction; keeps their memory alive.
class LinkBundle {
 public:
  virtual ~LinkBundle() = default;
  /// One view per lane.
  virtual const std::vector<LinkView>& lanes() const = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual const char* name() const = 0;
  virtual Reach reach(const PeerInfo& self, const PeerInfo& peer) const = 0;

  /// As receiver: makes the memory of the links from `peer` and gives `peer` access to it.
  virtual std::unique_ptr<LinkBundle> offer(const PeerInfo& peer, const LinkShape& shape, Deadline deadline,
                                            Offer& offer) = 0;
  /// As sender: joins the links that `peer` offered.
  virtual std::unique_ptr<LinkBundle> connect(const PeerInfo& peer, const LinkShape& shape,
                                              const Offer& offer, Deadline deadline) = 0;
};

}  // namespace tutti
