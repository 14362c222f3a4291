// Connections for data between two doctors: one side answers, the other measures.
//
// After the key, which the doctors have told each other, the dialer sends frames: 8 bytes that say how long
// the rest is, and that. Each is answered by 8 bytes once all of it has come.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "runtime/core/net_address.h"
#include "runtime/core/unique_fd.h"
#include "tools/doctor/peer/peer_facts.h"

namespace tutti::doctor {

using DataKey = std::array<std::uint8_t, 16>;
DataKey makeDataKey();

/// Answers at a listening socket, in a thread of its own, one connection at a time, until it is destroyed.
/// Who does not send the key within 2 s, or then nothing for 5 s, is dropped.
class DataServer {
 public:
  DataServer(UniqueFd listener, const DataKey& key);
  DataServer(const DataServer&) = delete;
  DataServer& operator=(const DataServer&) = delete;
  ~DataServer();

 private:
  void run();
  void serve(int socket) const;

  UniqueFd listener_;
  DataKey key_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

/// Takes about a second where all is well, and some 10 s at most.
TcpTrial tryTcp(const NetAddress& to, const DataKey& key);

}  // namespace tutti::doctor
