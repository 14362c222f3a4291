#include "transports/verbs/read_back.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <utility>

#include "transports/verbs/faults.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::chrono::seconds kLongest{2};

std::size_t pageBytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

/// A page for itself: libibverbs keeps registered pages from children of the process.
std::unique_ptr<std::byte, void (*)(void*)> makePage() {
  void* const page = std::aligned_alloc(pageBytes(), pageBytes());
  if (page == nullptr) throw Error(ncclSystemError, "no memory for a page");
  return {static_cast<std::byte*>(page), std::free};
}

}  // namespace

ReadBack::ReadBack(const VerbsPort& port, const RdmaSettings& settings, const Source& source)
    : source_(source),
      target_(makePage()),
      target_memory_(port.device, {target_.get(), pageBytes()}),
      pairs_(port, 1, {.sends = 2, .receives = 1, .reads = 1}, settings) {
  const auto gids = chooseGids(port.gids, port.gids);
  if (!gids) throw Error(ncclSystemError, fmt::format("{} has no GID to reach itself by", port.name()));
  pairs_.connect(gids->mine, pairs_.address(gids->mine), settings);
}

std::uint64_t ReadBack::request() {
  if (begun_ != done_) {
    wants_more_ = true;
    return begun_ + 1;
  }
  begin();
  return begun_;
}

void ReadBack::begin() {
  ++begun_;
  since_ = std::chrono::steady_clock::now();
  ibv_sge target =
      piece(std::bit_cast<std::uint64_t>(target_memory_.bytes().data()), 1, target_memory_.localKey());
  ibv_send_wr read{};
  read.sg_list = &target;
  read.num_sge = 1;
  read.opcode = IBV_WR_RDMA_READ;
  read.send_flags = IBV_SEND_SIGNALED;
  read.wr.rdma.remote_addr = source_.address;
  read.wr.rdma.rkey = source_.key;
  if (!pairs_.post(0, read) && problem_.empty())
    problem_ = "reading back GPU memory: the queue takes no more";
}

std::uint64_t ReadBack::done() {
  if (begun_ == done_ || !problem_.empty()) return done_;
  std::array<ibv_wc, 1> room;
  const auto some = pairs_.poll(room);
  if (some.empty()) {
    if (std::chrono::steady_clock::now() - since_ > kLongest)
      problem_ = fmt::format("reading back GPU memory: nothing came for {} s", kLongest.count());
    return done_;
  }
  if (some[0].status != IBV_WC_SUCCESS) {
    problem_ = "reading back GPU memory: " + explain(some[0].status);
    return done_;
  }
  done_ = begun_;
  if (std::exchange(wants_more_, false)) begin();
  return done_;
}

}  // namespace tutti
