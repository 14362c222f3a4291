// What a communicator writes to the log of its own accord.
#include <fmt/format.h>

#include "collectives/planner.h"
#include "runtime/communicator.h"

namespace tutti {

void Communicator::say(LogLevel level, std::string_view text, LogSubsystem subsystem,
                       SourcePlace place) const {
  process_.log().write(level, {rank_, device_}, text, subsystem, place);
}

void Communicator::sayJoined() const {
  if (rank_ == 0) {
    const int version = process_.ncclVersion();
    say(LogLevel::version, fmt::format("NCCL version {}.{}.{} (Tutti " TUTTI_VERSION ")", version / 10000,
                                       version / 100 % 100, version % 100));
  }
  if (!process_.log().shows(LogLevel::info)) return;
  const auto way = [this](std::uint64_t bytes) {
    const Descriptor descriptor{.count = bytes / sizeOf(DataType::float32)};
    const Plan plan = makePlan(descriptor, wiring_.layout, wiring_.shape, settings_.plans[0]);
    return fmt::format("{} over {}", name(plan.algorithm), name(plan.slots));
  };
  say(LogLevel::info,
      fmt::format(
          "joined a communicator of {}{} on {} host(s): {}; AllReduce of 8 bytes {}, of 64 MiB {}; {} "
          "lane(s) of {} slots of {} bytes - Init COMPLETE",
          nranks_, gpus_ != nullptr ? fmt::format(", on GPU {}", device_) : "", wiring_.layout.hosts,
          wiring_.summary.empty() ? "alone" : wiring_.summary, way(8), way(64 << 20), wiring_.shape.lanes,
          wiring_.shape.slot_count, wiring_.shape.slot_bytes));
}

/// Each way of carrying out a collective is told once.
void Communicator::sayPlan(const PlannedOperation& planned) {
  const Plan& plan = planned.plan;
  const auto way = static_cast<unsigned>(plan.algorithm) * 2 + static_cast<unsigned>(plan.slots);
  const std::size_t bit = static_cast<std::size_t>(plan.descriptor.collective) * kWays + way;
  if (told_plans_[bit]) return;
  told_plans_.set(bit);
  say(LogLevel::info,
      fmt::format("{}: {} over {} of {} elements, {} lane(s) ({})", describe(plan.descriptor),
                  name(plan.algorithm), name(plan.slots), plan.slot_elements, plan.lanes, planned.reason),
      LogSubsystem::tuning);
}

/// The words of NCCL's line, which tools look for.
void Communicator::sayCall(const char* function, const Task& task, const void* handle, const void* stream) {
  if (!says_calls_) return;
  const Descriptor& d = task.descriptor;
  const bool is_transfer = task.kind != Task::Kind::collective;
  const void* buffer = task.kind == Task::Kind::send ? task.send : task.recv;
  say(LogLevel::info,
      fmt::format("{}: opCount {:x} sendbuff {} recvbuff {} count {} datatype {} op {} root {} comm {} "
                  "[nranks={}] stream {}",
                  std::string_view(function).substr(std::string_view("nccl").size()), calls_++,
                  is_transfer ? buffer : task.send, is_transfer ? buffer : task.recv, d.count,
                  static_cast<int>(d.type), static_cast<int>(d.op), is_transfer ? task.peer : d.root, handle,
                  nranks_, stream),
      LogSubsystem::coll);
}

}  // namespace tutti
