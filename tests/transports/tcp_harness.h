// Ranks of a TCP network as threads of one process, driven by hand: what executors do, without programs.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transports/tcp/tcp_network.h"

namespace tutti::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr seconds kPatience{60};

/// What heals may take as long on a machine that is busy with others, unless a test gives it less.
inline milliseconds recoveryFor(const NetworkOptions& options) {
  return options.recovery == NetworkOptions{}.recovery ? kPatience : options.recovery;
}

struct Listener {
  UniqueFd fd;
  NetAddress address;
};

inline Listener listenOnLoopback() {
  Listener result{.fd = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                  .address = {}};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(result.fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(result.fd.get(), 512) != 0 ||
      ::getsockname(result.fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::runtime_error("no listener");
  }
  result.address.family = NetAddress::Family::ipv4;
  result.address.port = ntohs(address.sin_port);
  std::memcpy(result.address.bytes.data(), &address.sin_addr, 4);
  return result;
}

inline Secret secretOf(std::uint8_t fill) {
  Secret secret;
  secret.fill(fill);
  return secret;
}

/// What a rank's links reported as failed.
class Failures {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(text);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

/// `nranks` networks that know each other.
struct Cluster {
  std::vector<NetAddress> addresses;
  std::vector<std::unique_ptr<Failures>> failures;
  std::vector<std::unique_ptr<TcpNetwork>> networks;

  TcpNetwork& operator[](int rank) const { return *networks[static_cast<std::size_t>(rank)]; }
  std::vector<std::string> failed() const {
    std::vector<std::string> all;
    for (const auto& of_rank : failures) {
      for (const std::string& text : of_rank->all()) all.push_back(text);
    }
    return all;
  }
};

/// `options` by rank; the harness fills in `fail`.
inline Cluster makeCluster(const std::vector<NetworkOptions>& options) {
  if (::sodium_init() < 0) throw std::runtime_error("sodium_init");
  Cluster cluster;
  std::vector<Listener> listeners;
  for (std::size_t rank = 0; rank < options.size(); ++rank) {
    listeners.push_back(listenOnLoopback());
    cluster.addresses.push_back(listeners.back().address);
    cluster.failures.push_back(std::make_unique<Failures>());
  }
  for (std::size_t rank = 0; rank < options.size(); ++rank) {
    std::vector<TcpPeer> peers(options.size());
    for (std::size_t peer = 0; peer < options.size(); ++peer) {
      if (peer != rank) peers[peer] = {cluster.addresses[peer], "rank " + std::to_string(peer) + " (here)"};
    }
    NetworkOptions own = options[rank];
    own.recovery = recoveryFor(own);
    own.fail = [failures = cluster.failures[rank].get()](ncclResult_t code, const std::string& text) {
      failures->add(code == ncclRemoteError ? text : "wrong code: " + text);
    };
    cluster.networks.push_back(std::make_unique<TcpNetwork>(std::move(listeners[rank].fd), secretOf(7),
                                                            static_cast<int>(rank), std::move(peers), own));
  }
  return cluster;
}

/// As long as it lives, its thread is the caller inside.
class Inside {
 public:
  explicit Inside(Network& network) : network_(network) { network_.enter(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { network_.leave(); }

 private:
  Network& network_;
};

/// Waits as an executor does. Throws once kPatience is over.
template <class Ready>
void waitFor(Network& network, int peer, Ready ready) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int step = 0; !ready(); ++step) {
    network.poll(peer);
    if (step % 64 == 63) network.nap(std::chrono::microseconds(100));
    if (step % 64 == 63 && std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("waited too long for rank " + std::to_string(peer));
    }
  }
}

/// Byte i of message number `sequence` from `from`: everybody can tell what belongs where.
inline std::byte patternAt(int from, std::uint64_t sequence, std::size_t i) {
  std::uint64_t x = (static_cast<std::uint64_t>(from) << 48) ^ (sequence << 20) ^ i;
  x *= 0x9e3779b97f4a7c15U;
  return static_cast<std::byte>(x >> 56);
}

inline void fillPattern(std::span<std::byte> to, int from, std::uint64_t sequence) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = patternAt(from, sequence, i);
}

inline bool hasPattern(std::span<const std::byte> bytes, int from, std::uint64_t sequence) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != patternAt(from, sequence, i)) return false;
  }
  return true;
}

/// What a result is made of data.
inline std::byte resultOf(std::byte data) { return data ^ std::byte{0xff}; }

inline std::uint64_t postedOn(const LinkView& link) {
  return link.posted->value.load(std::memory_order_acquire);
}
inline std::uint64_t releasedOn(const LinkView& link) {
  return link.released->value.load(std::memory_order_acquire);
}

inline bool hasRoom(const LinkView& link) { return postedOn(link) - releasedOn(link) < link.slot_count; }

inline void publish(const LinkView& link, SlotHeader header) {
  header.sequence = postedOn(link);
  link.header(header.sequence) = header;
  link.posted->value.store(header.sequence + 1, std::memory_order_release);
}

inline void releaseOne(const LinkView& link) {
  link.released->value.store(releasedOn(link) + 1, std::memory_order_release);
}

/// Runs one function per rank, each in a thread; returns what they threw.
inline std::vector<std::string> together(const std::vector<std::function<void()>>& ranks) {
  std::vector<std::string> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        ranks[i]();
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::erase(errors, "");
  return errors;
}

inline std::vector<std::string> none() { return {}; }

}  // namespace tutti::test
