// A rank's side of making a communicator: it joins, takes part in all-gathers over the tree, and leaves or
// keeps the tree.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/bootstrap/control_tree.h"
#include "runtime/bootstrap/joining.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/core/net_address.h"
#include "runtime/core/settings.h"
#include "runtime/core/unique_fd.h"
#include "transports/transport.h"

namespace tutti {

/// Used by one thread, during init only. Every wait ends at the deadline. Calls throw Error with the first
/// failure among all ranks; one that ends without a word is named by its neighbours to all others.
class Bootstrap {
 public:
  /// Returns when this rank, and every rank below it in the tree, is connected. `check`: see JoinTerms.
  Bootstrap(const UniqueId& id, int nranks, int rank, const NetworkSettings& network, Deadline deadline,
            const std::function<void()>& check = {});

  /// Every rank contributes a value, of at most about 900 KiB for all ranks together; returns them by rank.
  /// Also a barrier.
  template <class T>
  std::vector<T> allGather(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto all = allGatherBytes({reinterpret_cast<const std::uint8_t*>(&mine), sizeof(T)});
    std::vector<T> result(all.size());
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      requireSize(all[rank], sizeof(T), rank);
      std::memcpy(static_cast<void*>(&result[rank]), all[rank].data(), sizeof(T));
    }
    return result;
  }

  /// The same for values of any length, also none.
  std::vector<Bytes> allGatherBytes(std::span<const std::uint8_t> mine);

  /// Returns once all ranks have called it.
  void barrier() { allGatherBytes({}); }

  /// Where this rank's listener is, as others reach it.
  const NetAddress& address() const { return joined_.address; }

  /// Random, known to the ranks of this communicator only. Differs from the id's secret, which serves all
  /// communicators that are made by one NCCL_COMM_ID.
  const Secret& secret() const { return joined_.communicator_secret; }

  /// The listener, for data connections. After the last collective, which is not the first: after that one
  /// nobody is let in any more, so that whoever dials behind a later one, be it before this rank has got so
  /// far, waits in it. Strangers may, too.
  UniqueFd takeListener() { return joined_.reception.takeListener(); }

  /// The open channels to parent and children. After the last collective; nothing else may be called then
  /// but address(), secret() and takeListener().
  ControlTree takeTree() { return joined_.tree.release(rank_); }

  /// This rank failed: all others get the text as their error, unless another failure came first. Never
  /// throws.
  void fail(const std::string& text) noexcept;

  /// This rank needs nothing more: closes everything. After the last collective. Never throws.
  void leave() noexcept;

 private:
  std::vector<Bytes> gather(std::span<const std::uint8_t> mine);
  Bytes await(int neighbour, MessageType type);
  Bytes sorted(std::span<const std::uint8_t> entries) const;
  std::vector<Bytes> valuesOf(std::span<const std::uint8_t> all) const;
  void requireSize(const Bytes& value, std::size_t bytes, std::size_t rank);
  void requireTime(int neighbour) const;
  void hearNews();
  void flush();

  std::string endpoint_;
  int nranks_;
  int rank_;
  Deadline deadline_;
  Joined joined_;
  bool is_whole_ = false;  ///< the tree: every rank has taken part in a collective
};

}  // namespace tutti
