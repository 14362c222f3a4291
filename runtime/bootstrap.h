// A rank's side of the rendezvous: it joins, takes part in all-gathers, and leaves.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/unique_id.h"
#include "transports/secure_channel.h"
#include "transports/transport.h"

namespace tutti {

/// Used by one thread, during init only. Every wait ends at the deadline. Calls throw Error with the first
/// failure among all ranks, as the rendezvous tells it.
class Bootstrap {
 public:
  /// Connects, proves knowledge of the secret, and joins.
  Bootstrap(const UniqueId& id, int nranks, int rank, Deadline deadline);

  /// Every rank contributes a value; returns them by rank. Also a barrier.
  template <class T>
  std::vector<T> allGather(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    const Bytes all = gatherBytes({reinterpret_cast<const std::uint8_t*>(&mine), sizeof(T)});
    std::vector<T> result(static_cast<std::size_t>(nranks_));
    requireSize(all, result.size() * sizeof(T));
    std::memcpy(result.data(), all.data(), all.size());
    return result;
  }

  /// Tells the other ranks that this one failed, and why; they get the text as their error. Never throws.
  void fail(const std::string& text) noexcept;

  /// This rank needs nothing more. Never throws.
  void leave() noexcept;

 private:
  Bytes gatherBytes(std::span<const std::uint8_t> mine);
  void requireSize(const Bytes& all, std::size_t expected) const;
  void pumpOnce();
  void requireOpen() const;
  void deliver() noexcept;

  std::string endpoint_;
  int nranks_;
  Deadline deadline_;
  SecureChannel channel_;
  bool ended_ = false;
};

}  // namespace tutti
