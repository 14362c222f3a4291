// The words of a rank that cannot join: what happened, where, and what to look at.
#pragma once

#include <string>

#include "runtime/bootstrap/dial.h"
#include "runtime/bootstrap/messages.h"
#include "tutti/error.h"

namespace tutti {

/// Who speaks, and the rendezvous that it joins at.
struct JoinNames {
  std::string rank;
  std::string rendezvous;
  bool is_agreed = false;  ///< rank 0 opens it, at an address that all ranks were given
};

/// `dial` has failed, or was not let in.
BootstrapError rendezvousIsUnreachable(const JoinNames& names, const Dial& dial);

/// The rendezvous has gone, and `parent` did not call at `here`: who knows why may have tried to.
BootstrapError rendezvousHasGone(const JoinNames& names, int parent, const NetAddress& here);

/// `dial`, to `child` at `there`, has failed.
BootstrapError childIsLost(const JoinNames& names, const std::string& child, const RankAddress& here,
                           const RankAddress& there, const Dial& dial);

}  // namespace tutti
