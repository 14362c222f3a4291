// What the ranks of a test share, in memory that all of them map: in place of bootstrap and segment.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/core/accelerator.h"
#include "runtime/core/peer.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/region.h"

namespace tutti::test {

/// All zero at the start.
class Board {
 public:
  static constexpr int kMostRanks = 4;
  /// Links of one rank, for ranks that do not reach each other's GPU.
  static constexpr std::size_t kLinkBytes = 4 << 20;

  struct Rank {
    RankStatus status;
    GpuRegionTable regions;
    PeerInfo info;
    GpuOffer offer;
    std::array<bool, kMostRanks> reaches;
    std::atomic<std::uint64_t> note;  ///< for the test's own use
    alignas(4096) std::array<std::byte, kLinkBytes> links;
  };
  std::array<Rank, kMostRanks> ranks;

  /// Returns when all have come. Throws when one has failed, or after a minute.
  void barrier(int nranks) {
    const unsigned turn = turn_.load();
    if (arrived_.fetch_add(1) + 1 == static_cast<unsigned>(nranks)) {
      arrived_.store(0);
      turn_.fetch_add(1);
      return;
    }
    waitFor([&] { return turn_.load() != turn; });
  }

  template <class Ready>
  void waitFor(const Ready& ready) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!ready()) {
      if (has_failed_.load()) throw std::runtime_error("another rank has failed");
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("waited for a minute");
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  void fail() { has_failed_.store(true); }

 private:
  std::atomic<unsigned> arrived_;
  std::atomic<unsigned> turn_;
  std::atomic<bool> has_failed_;
};

/// A Board in a file, mapped.
class SharedBoard {
 public:
  explicit SharedBoard(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(Board)) != 0) throw std::runtime_error("cannot open " + path);
    void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (memory == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    board_ = static_cast<Board*>(memory);
  }
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard() { ::munmap(board_, sizeof(Board)); }
  Board& operator*() const { return *board_; }

 private:
  Board* board_;
};

}  // namespace tutti::test
