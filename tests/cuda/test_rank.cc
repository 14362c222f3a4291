#include "tests/cuda/test_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <numeric>

#include "transports/cuda_ipc/cuda_rank_memory.h"

namespace tutti::test {
namespace {

std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

PeerInfo infoOf(int rank) {
  PeerInfo info;
  info.rank = rank;
  info.pid = ::getpid();
  std::memcpy(info.process_token.data(), &info.pid, sizeof(info.pid));
  return info;
}

std::vector<int> allRanks(int nranks) {
  std::vector<int> ranks(at(nranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// A rank's links in host memory.
CudaRankMemory hostLinks(Board& board, int owner, int nranks) {
  return {board.ranks[at(owner)].links.data(), TestRank::kShape, nranks, owner};
}

LinkView withPeer(LinkView view, int peer) {
  view.peer = peer;
  return view;
}

}  // namespace

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

TestRank::TestRank(Accelerator& accelerator, Board& board, int rank, int nranks,
                   std::chrono::milliseconds wait_limit)
    : accelerator_(accelerator), board_(board), rank_(rank), nranks_(nranks) {
  std::string reason;
  const int devices = accelerator.deviceCount(&reason);
  require(devices > 0, reason);
  accelerator.setDevice(rank % devices);
  pinned_.emplace(accelerator, board);
  stream_ = makeStream();
  Board::Rank& mine = board.ranks[at(rank)];
  mine.info = infoOf(rank);
  GpuRankOptions options{
      .self = mine.info,
      .nranks = nranks,
      .locals = allRanks(nranks),
      .shape = kShape,
      .status = &mine.status,
      .regions = {},
      .wait_limit_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(wait_limit).count()),
      .wake = [this] { wakes_.fetch_add(1); }};
  for (int peer = 0; peer < nranks; ++peer) options.regions.push_back(&board.ranks[at(peer)].regions);
  gpu_ = accelerator.makeRank(options);
  mine.offer = gpu_->offer();
  barrier();
  connect();
  start();
}

void TestRank::connect() {
  auto& reaches = board_.ranks[at(rank_)].reaches;
  for (int peer = 0; peer < nranks_; ++peer) {
    if (peer == rank_) continue;
    const Board::Rank& other = board_.ranks[at(peer)];
    std::string reason;
    reaches[at(peer)] = gpu_->connect(peer, other.info, other.offer, &reason);
    if (!reaches[at(peer)]) std::puts(fmt::format("rank {}: {}", rank_, reason).c_str());
  }
  barrier();
  for (int peer = 0; peer < nranks_; ++peer) {
    const bool is_mutual = reaches[at(peer)] && board_.ranks[at(peer)].reaches[at(rank_)];
    if (is_mutual) require(gpu_->confirm(peer), fmt::format("no mark of rank {} has arrived", peer));
  }
  barrier();
}

void TestRank::start() {
  std::vector<LinkRow> lanes(kShape.lanes);
  LinkRow packets;
  const CudaRankMemory own = hostLinks(board_, rank_, nranks_);
  for (LinkRow& lane : lanes) {
    lane.inbound.resize(at(nranks_));
    lane.outbound.resize(at(nranks_));
  }
  packets.inbound.resize(at(nranks_));
  packets.outbound.resize(at(nranks_));
  for (int peer = 0; peer < nranks_; ++peer) {
    if (peer == rank_) continue;
    const auto& reaches = board_.ranks[at(rank_)].reaches;
    const bool by_gpu = reaches[at(peer)] && board_.ranks[at(peer)].reaches[at(rank_)];
    if (!by_gpu) gpu_->disconnect(peer);
    const CudaRankMemory other = hostLinks(board_, peer, nranks_);
    for (std::uint32_t lane = 0; lane < kShape.lanes; ++lane) {
      lanes[lane].inbound[at(peer)] =
          by_gpu ? gpu_->inbound(lane, peer) : withPeer(CudaRankMemory::link(own, other, lane), peer);
      lanes[lane].outbound[at(peer)] =
          by_gpu ? gpu_->outbound(lane, peer) : withPeer(CudaRankMemory::link(other, own, lane), peer);
    }
    packets.inbound[at(peer)] =
        by_gpu ? gpu_->packetsFrom(peer) : withPeer(CudaRankMemory::packets(own, other), peer);
    packets.outbound[at(peer)] =
        by_gpu ? gpu_->packetsTo(peer) : withPeer(CudaRankMemory::packets(other, own), peer);
  }
  gpu_->start(lanes, packets, RingTables());
}

void TestRank::finish() {
  require(gpu_->finish(std::chrono::seconds(30)), "kernels still run");
  gpu_->close();
  barrier();
}

GpuTask TestRank::task(const Descriptor& descriptor, const void* send, void* recv,
                       const PlanOverride& override) const {
  GpuTask task;
  task.plan = makePlan(descriptor, Layout::oneHost(nranks_), kShape, override);
  task.send = send;
  task.recv = recv;
  task.scale = unitScale(descriptor.type);
  return task;
}

GpuTask TestRank::transfer(GpuTask::Kind kind, int peer, void* buffer, std::uint64_t bytes) const {
  GpuTask task;
  task.kind = kind;
  task.plan = makePointToPointPlan(transferDescriptor(bytes), nranks_, kShape);
  if (kind == GpuTask::Kind::send) task.send = buffer;
  if (kind == GpuTask::Kind::receive) task.recv = buffer;
  task.peer = peer;
  return task;
}

void TestRank::write(const DeviceBuffer& to, const void* from, std::size_t bytes) const {
  checkCuda(cudaMemcpyAsync(to.data(), from, bytes, cudaMemcpyHostToDevice, stream()), "cudaMemcpyAsync");
  checkCuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
}

void TestRank::read(void* to, const DeviceBuffer& from, std::size_t bytes) const {
  checkCuda(cudaMemcpyAsync(to, from.data(), bytes, cudaMemcpyDeviceToHost, stream()), "cudaMemcpyAsync");
  checkCuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
}

void TestRank::synchronize() {
  checkCuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  const GpuReport report = gpu_->report();
  if (report.fault) {
    throw std::runtime_error(fmt::format("rank {}: fault of kind {}, peer {}: {}", rank_,
                                         static_cast<int>(report.fault->kind), report.fault->peer,
                                         report.fault->text));
  }
}

}  // namespace tutti::test
