#include "runtime/bootstrap/joining_errors.h"

#include <fmt/format.h>

#include <cerrno>

#include "transports/socket_address.h"

namespace tutti {
namespace {

BootstrapError hasEnded(const JoinNames& names, const std::string& words) {
  return {ncclRemoteError,
          fmt::format("connecting to the rendezvous at {}: {}. The rendezvous of this unique id has ended: "
                      "the process that called ncclGetUniqueId is gone, or the id was used before (an id "
                      "serves one communicator)",
                      names.rendezvous, words),
          true};
}

}  // namespace

BootstrapError rendezvousIsUnreachable(const JoinNames& names, const Dial& dial) {
  if (dial.error() == 0) {
    return {ncclRemoteError,
            fmt::format("{} lost the rendezvous at {} before it was let in: {}. Did the process that called "
                        "ncclGetUniqueId end, or is the secret of this rank another one?",
                        names.rank, names.rendezvous, dial.problem()),
            true};
  }
  if (names.is_agreed) {
    return {ncclSystemError,
            fmt::format("{} cannot reach rank 0 at {}: {}. Rank 0 listens there once it makes the "
                        "communicator (TUTTI_INIT_TIMEOUT); is it started, is that its address "
                        "(NCCL_COMM_ID or MASTER_ADDR), and is the port open?",
                        names.rank, names.rendezvous, dial.problem())};
  }
  if (dial.error() == ECONNREFUSED) return hasEnded(names, dial.problem());
  return {ncclSystemError,
          fmt::format("{} cannot reach the rendezvous at {}: {}. Check that this host has a way to that "
                      "address (NCCL_SOCKET_IFNAME where ncclGetUniqueId is called chooses another), "
                      "firewalls, and the limit of open files (ulimit -n)",
                      names.rank, names.rendezvous, dial.problem())};
}

BootstrapError rendezvousHasGone(const JoinNames& names, int parent, const NetAddress& here) {
  const std::string caller = parent == kRendezvous ? "it" : fmt::format("rank {}", parent);
  return {ncclRemoteError,
          fmt::format("{}: the rendezvous at {} has ended, and {} did not call this rank at {}. Another rank "
                      "failed or ended; its own output says why. Perhaps that it cannot reach this address: "
                      "then another interface (NCCL_SOCKET_IFNAME) or open ports (TUTTI_PORT_RANGE) help",
                      names.rank, names.rendezvous, caller, toText(here)),
          true};
}

BootstrapError childIsLost(const JoinNames& names, const std::string& child, const RankAddress& here,
                           const RankAddress& there, const Dial& dial) {
  const std::string connecting =
      fmt::format("{} connecting to {}: {}", names.rank, toText(there.address), dial.problem());
  if (dial.error() == EMFILE || dial.error() == ENFILE) {
    return {ncclSystemError, fmt::format("{}. Raise the limit of open files there (ulimit -n)", connecting)};
  }
  if (isLoopback(there.address) && there.host != here.host) {
    return {ncclSystemError,
            fmt::format("{} listens on the loopback interface, where other hosts do not reach it: {}. Set "
                        "NCCL_SOCKET_IFNAME there, or start the rendezvous on another address",
                        child, connecting)};
  }
  if (dial.error() == 0 || dial.error() == ECONNREFUSED) {
    return {ncclRemoteError,
            fmt::format("{} left while the communicator was being made ({}{})", child, connecting,
                        dial.error() == ECONNREFUSED ? hintAtFirewall(there.address) : ""),
            true};
  }
  return {ncclSystemError, fmt::format("{} cannot be reached: {}. Is there a way between these hosts on that "
                                       "interface (NCCL_SOCKET_IFNAME), and are the ports open in firewalls "
                                       "(TUTTI_PORT_RANGE)?",
                                       child, connecting)};
}

}  // namespace tutti
