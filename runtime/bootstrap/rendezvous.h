// Where the ranks of one communicator meet: a listener and a thread of one process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nccl.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/core/settings.h"

namespace tutti {

struct RendezvousTerms {
  std::chrono::milliseconds init_timeout;
  std::uint16_t port = 0;            ///< 0: any free one, of the range in `network` if there is one
  NetworkSettings network = {};      ///< chooses the interface
  bool is_for_this_process = false;  ///< all ranks are threads of it: loopback
  std::optional<NetAddress> address = std::nullopt;  ///< where this host is reached; else chosen
  /// Of ranks that meet for another purpose than ncclCommInitRank: the words for those that did not come.
  /// Called by another thread, at any time.
  std::function<std::string(const std::vector<int>& missing)> missing_text = nullptr;
};

/// Opens a rendezvous and starts its thread, which serves one communicator: collects every rank, gives rank 0
/// the addresses of all, and ends when all are connected. It tells all ranks the first failure, of which the
/// deadline, `init_timeout` after the first rank came, is one. Strangers are dropped and delay nobody.
/// `reasons`, if given: how the interface was chosen, line by line. Throws Error(ncclSystemError) naming the
/// port when it is in use, Error(ncclInvalidUsage) when no interface is left by the settings.
ncclUniqueId openRendezvous(const RendezvousTerms& terms, std::vector<std::string>* reasons = nullptr);

/// The same at the address of an agreed id: rank 0's part. A port that another communicator just used is
/// waited for, briefly.
void openRendezvousAt(const UniqueId& id, std::chrono::milliseconds init_timeout);

}  // namespace tutti
