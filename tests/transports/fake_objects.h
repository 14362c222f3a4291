// What libibverbs' handles are on invented devices. All of it is guarded by State's mutex.
#pragma once

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/transports/fake_verbs.h"

namespace tutti::test {

/// A descriptor that is readable while a queue has something.
template <class T>
class Events {
 public:
  Events() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { ::close(fd_); }
  int fd() const { return fd_; }
  void push(const T& event) {
    queue_.push_back(event);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof(one));
  }
  bool pop(T& event) {
    std::uint64_t count = 0;
    if (queue_.empty()) {
      [[maybe_unused]] const auto got = ::read(fd_, &count, sizeof(count));
      errno = EAGAIN;
      return false;
    }
    event = queue_.front();
    queue_.pop_front();
    return true;
  }
  template <class Gone>
  void drop(const Gone& gone) {
    std::erase_if(queue_, gone);
  }

 private:
  int fd_;
  std::deque<T> queue_;
};

struct FakeContext : ibv_context {
  std::shared_ptr<FakeDevice> own;  ///< a thread that connects may outlive the test
  Events<ibv_async_event> events;
};
struct FakeChannel : ibv_comp_channel {
  Events<ibv_cq*> events;
};
struct FakeCompletions : ibv_cq {
  std::deque<ibv_wc> queue;
  bool is_armed = false;
};
struct FakeRegion : ibv_mr {
  bool is_gpu = false;
};

/// A request with what it points to.
struct FakeRequest {
  ibv_send_wr wr;
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inlined;

  explicit FakeRequest(const ibv_send_wr& from)
      : wr(from), pieces(from.sg_list, from.sg_list + from.num_sge) {
    if ((from.send_flags & IBV_SEND_INLINE) == 0) return;
    for (const ibv_sge& piece : pieces) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(piece.addr);
      inlined.insert(inlined.end(), bytes, bytes + piece.length);
    }
  }
  const ibv_send_wr& get() {
    if (!inlined.empty()) {
      const auto bytes = static_cast<std::uint32_t>(inlined.size());
      pieces.assign(1, {.addr = reinterpret_cast<std::uint64_t>(inlined.data()), .length = bytes, .lkey = 0});
    }
    wr.sg_list = pieces.data();
    wr.num_sge = static_cast<int>(pieces.size());
    return wr;
  }
};

struct FakePair : ibv_qp {
  struct Arriving {
    std::byte* target;
    std::vector<std::byte> data;
  };
  using GidBytes = std::array<std::uint8_t, 16>;

  std::uint32_t peer = 0;
  std::optional<std::pair<GidBytes, GidBytes>> gids = {};  ///< this side's, the peer's: what packets go by
  std::uint16_t peer_lid = 0;                              ///< likewise, where there are none
  std::uint32_t sends = 0;                                 ///< room
  std::uint32_t receives = 0;                              ///< room
  std::uint32_t pieces = 0;                                ///< of a request, at most
  std::uint32_t inlined = 0;                               ///< bytes inside a request, at most
  std::uint32_t posted_receives = 0;
  std::uint32_t unsignalled = 0;                  ///< posted since the last that is to be acknowledged
  std::map<std::uint64_t, std::uint32_t> covers;  ///< by wr_id: requests that its completion gives room for
  std::uint32_t outstanding = 0;
  bool is_stuck = false;            ///< something was lost: all behind it is, too
  std::deque<FakeRequest> waiting;  ///< until the peer is ready, as cards try again
  std::vector<ibv_wc> held_reads;
  std::vector<Arriving> arriving;  ///< on the way to GPU memory
};

struct State {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<FakeDevice>> devices;
  std::set<FakeContext*> contexts;
  std::map<std::uint32_t, FakePair*> pairs;  ///< by number: the last was made last
  std::map<std::uint32_t, FakeRegion*> regions;
  std::vector<std::span<const std::byte>> gpu_memory;
  std::uint32_t next_number = 1;
  std::uint64_t writes = 0;
  std::multimap<std::uint64_t, std::function<void()>> breaks;
  std::vector<std::string> violations;
  int refused_pairs = 0;
  int refused_connections = 0;
  int refusal = 0;
  std::function<void()> on_connect;
};

State& state();
inline FakeDevice& deviceOf(const ibv_context* context) {
  return *static_cast<const FakeContext*>(context)->own;
}

// Of fake_traffic.cc; the caller has the mutex.
void complete(ibv_cq* cq, const ibv_wc& completion);
ibv_wc completionOf(const FakePair& pair, std::uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode);
/// As cards do: receives are flushed, and their completions may come before the one that tells why.
void breakPair(FakePair& pair, std::optional<ibv_wc> cause);
/// What is on its way to GPU memory has arrived.
void land(FakePair& pair);
void landAll(const FakeDevice& device);
/// The peer of this one is ready now, perhaps: what its other side sent is delivered.
void resumePeerOf(const FakePair& pair);

/// The calls that libibverbs' headers define inline.
void setTrafficCalls(ibv_context_ops& calls);

}  // namespace tutti::test
