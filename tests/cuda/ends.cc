// Operations that do not end well.
#include <fmt/format.h>

#include <bit>

#include "tests/cuda/scenarios.h"

namespace tutti::test {
namespace {

constexpr std::uint64_t kCount = 5000;

void launch(TestRank& rank, const DeviceBuffer& buffer, std::uint64_t count) {
  const Descriptor descriptor{
      .collective = Collective::all_reduce, .type = DataType::float32, .count = count};
  rank.gpu().launchCollective(rank.task(descriptor, buffer.data(), buffer.data()), rank.stream());
}

GpuReport::Fault waitForFault(TestRank& rank) {
  GpuReport report;
  rank.board().waitFor([&] {
    report = rank.gpu().report();
    return report.fault.has_value();
  });
  return *report.fault;
}

}  // namespace

void stopped(TestRank& rank) {
  const DeviceBuffer buffer(kCount * sizeof(float));
  if (rank.rank() == 0) {
    launch(rank, buffer, kCount);
    GpuReport report;
    rank.board().waitFor([&] {
      report = rank.gpu().report();
      return !report.waits.empty();
    });
    require(report.waits[0].descriptor.count == kCount, "a wait in another operation");
    require(report.waits[0].operation == 1, fmt::format("operation {}", report.waits[0].operation));
    require(report.waits[0].peer > 0, fmt::format("waits for rank {}", report.waits[0].peer));
    require(!rank.gpu().finish(std::chrono::milliseconds(20)), "ended by itself");
    require(report.started == 1 && report.finished == 0, "counts of kernels");
    rank.gpu().stop();
    require(rank.gpu().finish(std::chrono::seconds(10)), "still runs");
  }
  rank.barrier();
}

void mismatch(TestRank& rank) {
  const DeviceBuffer buffer(2 * kCount * sizeof(float));
  const auto count = kCount + static_cast<std::uint64_t>(rank.rank());
  launch(rank, buffer, count);
  // One of them finds out; as the runtime would, it tells the others to stop.
  auto& note = rank.board().ranks[0].note;
  rank.board().waitFor([&] {
    const GpuReport report = rank.gpu().report();
    if (report.fault) {
      require(report.fault->kind == GpuReport::Fault::Kind::differs, report.fault->text);
      require(report.fault->ours.count == count && report.fault->theirs.count != count, "whose is which");
      note.store(1);
    }
    return note.load() == 1;
  });
  rank.gpu().stop();
}

void unreceived(TestRank& rank) {
  constexpr std::uint64_t kBytes = 300;
  const DeviceBuffer buffer(kBytes);
  if (rank.rank() == 0) {
    const std::vector<std::vector<GpuTask>> queues{
        {rank.transfer(GpuTask::Kind::send, 1, buffer.data(), kBytes)}};
    rank.gpu().launchTransfers(queues, rank.stream());
    rank.synchronize();
  }
  rank.barrier();
  rank.finish();
  const auto found = rank.gpu().unreceived();
  require(found.has_value() == (rank.rank() == 1), "whether a slot was left");
  if (found) {
    require(found->first == 0, fmt::format("from rank {}", found->first));
    require(found->second == transferDescriptor(kBytes), describe(found->second));
  }
}

void deadline(TestRank& rank) {
  const DeviceBuffer buffer(kCount * sizeof(float));
  if (rank.rank() == 0) {
    launch(rank, buffer, kCount);
    const GpuReport::Fault fault = waitForFault(rank);
    require(fault.kind == GpuReport::Fault::Kind::deadline, fault.text);
    require(fault.text.find("rank 1") != std::string::npos, fault.text);
  }
  rank.barrier();
}

void broken(TestRank& rank) {
  const DeviceBuffer buffer(kCount * sizeof(float));
  const Descriptor descriptor{
      .collective = Collective::all_reduce, .type = DataType::float32, .count = kCount};
  // The output is nowhere.
  auto* nowhere = std::bit_cast<void*>(std::uintptr_t{4096});
  rank.gpu().launchCollective(rank.task(descriptor, buffer.data(), nowhere), rank.stream());
  require(rank.gpu().finish(std::chrono::seconds(30)), "still runs");
  const auto fault = rank.gpu().report().fault;
  require(fault && fault->kind == GpuReport::Fault::Kind::failed, "no fault");
  require(fault->text.find("cudaError") != std::string::npos, fault->text);
  require(!rank.gpu().unreceived(), "nobody sends");
}

}  // namespace tutti::test
