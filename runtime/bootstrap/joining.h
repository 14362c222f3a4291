// From a unique id to a place in the tree: a rank's way into its communicator.
#pragma once

#include <functional>

#include "runtime/bootstrap/control_tree.h"
#include "runtime/bootstrap/reception.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/core/settings.h"
#include "transports/transport.h"

namespace tutti {

struct JoinTerms {
  const UniqueId& id;
  int nranks;
  int rank;
  const NetworkSettings& network;
  Deadline deadline;
  /// Asked about every 100 ms while ranks are missing: what it throws ends the joining. May be empty.
  const std::function<void()>& check;
};

/// What a rank has once it, and every rank below it, is connected.
struct Joined {
  NetAddress address;  ///< where its listener is
  Reception reception;
  TreeChannels tree;
  Secret communicator_secret{};
};

/// Opens a listener, joins at the rendezvous, waits there for the parent's call, and calls the children.
/// Throws Error with the first failure among all ranks; the others are told.
Joined joinTree(const JoinTerms& terms);

}  // namespace tutti
