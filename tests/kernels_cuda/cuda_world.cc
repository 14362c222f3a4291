#include "tests/kernels_cuda/cuda_world.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "kernels/cuda/cuda_kernels.h"

namespace tutti::test {
namespace {

/// The last resort of every wait: a test that hangs fails by it.
constexpr std::uint64_t kWaitLimitNs = 60'000'000'000;

}  // namespace

void checkCuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

PinnedMemory::PinnedMemory(std::size_t bytes) {
  void* memory = nullptr;
  checkCuda(cudaMallocHost(&memory, bytes == 0 ? 1 : bytes), "pinned memory");
  data_ = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) data_[i] = std::byte{0};
}

PinnedMemory::~PinnedMemory() { cudaFreeHost(data_); }

CudaWorld::CudaWorld(int nranks, const LinkShape& shape) : nranks_(nranks), shape_(shape) {
  checkCuda(loadCudaKernels(), "loading the kernels");
  for (int r = 0; r < nranks; ++r) makeRank(r);
  for (int from = 0; from < nranks; ++from) {
    for (int to = 0; to < nranks; ++to) {
      if (from != to) connect(from, to);
    }
  }
}

CudaWorld::~CudaWorld() {
  for (const Rank& rank : ranks_) cudaStreamDestroy(rank.stream);
}

void CudaWorld::makeRank(int r) {
  const std::size_t ends = index(nranks_) * (shape_.lanes + 1);  // packets come last
  Rank& made = ranks_.emplace_back();
  made.rank = std::make_unique<PinnedMemory>(sizeof(CudaRank));
  made.ends = std::make_unique<PinnedMemory>(2 * ends * sizeof(CudaLinkEnd));
  made.regions = std::make_unique<PinnedMemory>(index(nranks_) * sizeof(CudaRegions));
  made.control = std::make_unique<PinnedMemory>(sizeof(CudaControl));
  made.status = std::make_unique<PinnedMemory>(sizeof(RankStatus));
  checkCuda(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking), "a stream");
  auto* all = made.ends->as<CudaLinkEnd>();
  const std::size_t plain = index(nranks_) * shape_.lanes;
  new (made.rank->data()) CudaRank{.rank = r,
                                   .nranks = nranks_,
                                   .inbound = all,
                                   .outbound = all + ends,
                                   .packets_in = all + plain,
                                   .packets_out = all + ends + plain,
                                   .regions = made.regions->as<CudaRegions>(),
                                   .control = made.control->as<CudaControl>(),
                                   .status = made.status->as<RankStatus>()};
  control(r).wait_limit_ns.store(kWaitLimitNs);
}

LinkView CudaWorld::makeLink(std::uint32_t slot_count, std::uint32_t slot_bytes, bool has_headers) {
  const auto add = [this](std::size_t bytes) {
    return memory_.emplace_back(std::make_unique<PinnedMemory>(bytes))->data();
  };
  auto* counters = reinterpret_cast<Counter*>(add(2 * sizeof(Counter)));
  return {
      .posted = counters,
      .released = counters + 1,
      .headers = has_headers ? reinterpret_cast<SlotHeader*>(add(slot_count * sizeof(SlotHeader))) : nullptr,
      .data = add(std::size_t{slot_count} * slot_bytes),
      .slot_count = slot_count,
      .slot_bytes = slot_bytes};
}

void CudaWorld::connect(int from, int to) {
  for (std::uint32_t lane = 0; lane <= shape_.lanes; ++lane) {
    const bool is_packets = lane == shape_.lanes;
    LinkView link = is_packets ? makeLink(kPacketSlots, kPacketLines * kPacketLineBytes, false)
                               : makeLink(shape_.slot_count, shape_.slot_bytes, true);
    const std::size_t row = lane * index(nranks_);
    link.peer = to;
    rank(from)->outbound[row + index(to)].view = link;
    link.peer = from;
    rank(to)->inbound[row + index(from)].view = link;
  }
}

CudaRegions& CudaWorld::regions(int owner, int peer) const {
  return ranks_[index(owner)].regions->as<CudaRegions>()[peer];
}

const LinkView& CudaWorld::link(int from, int to, std::uint32_t lane) const {
  return rank(from)->outbound[lane * index(nranks_) + index(to)].view;
}

void CudaWorld::setRings(const RingTables& rings) {
  const auto tables = rings.tables();
  rings_ = std::make_unique<PinnedMemory>(tables.size_bytes());
  std::ranges::copy(tables, rings_->as<std::uint16_t>());
  for (int r = 0; r < nranks_; ++r) rank(r)->rings = rings.viewAt(rings_->as<std::uint16_t>());
}

void CudaWorld::launch(int r, const CudaTask& task) {
  checkCuda(launchCollective({rank(r), task}, stream(r)), "a launch");
}

void CudaWorld::wait(int r) { checkCuda(cudaStreamSynchronize(stream(r)), "a kernel"); }

void CudaWorld::run(std::span<const CudaTask> tasks) {
  for (int r = 0; r < nranks_; ++r) launch(r, tasks[index(r)]);
  for (int r = 0; r < nranks_; ++r) wait(r);
}

CudaTask collectiveTask(const Plan& plan, const std::byte* input, std::byte* output) {
  CudaTask task{.plan = plan};
  task.input = input;
  task.output = output;
  return task;
}

}  // namespace tutti::test
