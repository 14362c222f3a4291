// One end of a trial by RDMA: a queue pair, and memory that the other end writes to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/peer/peer_facts.h"
#include "transports/verbs/memory.h"
#include "transports/verbs/queue_pairs.h"

namespace tutti::doctor {

/// How the other end is reached, and where it is written to. Fixed layout.
struct RdmaTarget {
  QueuePairAddress address = {};
  std::uint32_t key = 0;
  std::uint64_t at = 0;
};

class RdmaEnd {
 public:
  /// Throws Error.
  RdmaEnd(const VerbsPort& port, const Gid& gid, const RdmaSettings& settings);

  RdmaTarget target() const;
  /// Throws Error.
  void connect(const RdmaTarget& other);

  /// Writes to the other end and measures. At most some 10 s.
  void measure(RdmaTrial& trial);
  /// What the other end has written here by now.
  void noteArrived(RdmaTrial& trial) const;

 private:
  bool write(std::size_t bytes, std::size_t to_offset);
  /// Of one write; false at the deadline or with an error, told in `status`.
  bool awaitCompletion(std::string& status);
  bool measureRoundTrip(RdmaTrial& trial);
  bool measureBandwidth(RdmaTrial& trial);

  const RdmaSettings& settings_;
  Gid gid_;
  std::vector<std::byte> bytes_;  ///< first what is sent, then what is received
  RegisteredMemory memory_;
  QueuePairs pairs_;
  RdmaTarget other_;
};

}  // namespace tutti::doctor
