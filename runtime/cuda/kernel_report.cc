#include "runtime/cuda/kernel_report.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

namespace tutti {
namespace {

/// What of a wait lies behind its serial, as words: kernels may write them meanwhile.
constexpr std::size_t kWaitWords = sizeof(CudaWait) / sizeof(std::uint64_t);
using WaitWords = std::array<std::uint64_t, kWaitWords>;
static_assert(offsetof(CudaWait, serial) == 0 && offsetof(CudaWait, operation) == 8);
static_assert(offsetof(CudaWait, descriptor) == 16 && offsetof(CudaWait, peer) == 32);

/// False if there is none, or it changed meanwhile.
bool readWait(const CudaWait& from, GpuReport::Wait& wait) {
  wait.serial = from.serial.load(std::memory_order_acquire);
  if (wait.serial == 0) return false;
  auto* words = const_cast<std::uint64_t*>(reinterpret_cast<const std::uint64_t*>(&from));
  WaitWords copy{};
  // Acquire, so that the last look at the serial stays behind them.
  for (std::size_t i = 1; i < kWaitWords; ++i) {
    copy[i] = std::atomic_ref(words[i]).load(std::memory_order_acquire);
  }
  if (from.serial.load(std::memory_order_relaxed) != wait.serial) return false;
  wait.operation = copy[1];
  wait.descriptor = std::bit_cast<Descriptor>(std::array{copy[2], copy[3]});
  const auto [peer, is_send] = std::bit_cast<std::array<std::uint32_t, 2>>(copy[4]);
  wait.peer = static_cast<std::int32_t>(peer);
  wait.is_send = is_send != 0;
  return true;
}

std::string inWords(const CudaFault& fault, CudaFaultKind kind, const CudaControl& control) {
  switch (kind) {
    case CudaFaultKind::damaged:
      return fmt::format(
          "the link from rank {} holds slot {} of {} bytes where slot {} was expected: its memory "
          "was damaged",
          fault.peer, fault.sequence, fault.bytes, fault.expected);
    case CudaFaultKind::unreachable:
      return fmt::format(
          "rank {} lent its region {} for {}, which this rank has not mapped: was the buffer freed "
          "or deregistered during the operation?",
          fault.peer, fault.sequence, describe(fault.ours));
    case CudaFaultKind::deadline:
      return fmt::format("waited longer than {:.3g} s for rank {}",
                         1e-9 * static_cast<double>(control.wait_limit_ns.load(std::memory_order_relaxed)),
                         fault.peer);
    case CudaFaultKind::none:
    case CudaFaultKind::differs:
      break;
  }
  return {};
}

GpuReport::Fault::Kind kindOf(CudaFaultKind kind) {
  switch (kind) {
    case CudaFaultKind::differs:
      return GpuReport::Fault::Kind::differs;
    case CudaFaultKind::damaged:
      return GpuReport::Fault::Kind::damaged;
    case CudaFaultKind::unreachable:
      return GpuReport::Fault::Kind::unreachable;
    case CudaFaultKind::deadline:
      return GpuReport::Fault::Kind::deadline;
    case CudaFaultKind::none:
      break;
  }
  return GpuReport::Fault::Kind::failed;
}

}  // namespace

GpuReport readReport(const CudaControl& control) {
  GpuReport report;
  // Finished first: it never is ahead of started.
  report.finished = control.finished.load(std::memory_order_acquire);
  report.started = control.started.load(std::memory_order_acquire);
  for (const CudaWait& from : control.waits) {
    GpuReport::Wait wait;
    if (readWait(from, wait)) report.waits.push_back(wait);
  }
  const CudaFault& fault = control.fault;
  const auto kind = static_cast<CudaFaultKind>(fault.kind.load(std::memory_order_acquire));
  if (kind != CudaFaultKind::none) {
    report.fault = {.kind = kindOf(kind),
                    .peer = fault.peer,
                    .operation = fault.operation,
                    .ours = fault.ours,
                    .theirs = fault.theirs,
                    .text = inWords(fault, kind, control)};
  }
  return report;
}

GpuMoved readMoved(const CudaControl& control) {
  const auto value = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {.operations = value(control.operations),
          .slots = value(control.slots),
          .slot_bytes = value(control.slot_bytes),
          .read_bytes = value(control.read_bytes),
          .written_bytes = value(control.written_bytes),
          .network_bytes = value(control.network_bytes)};
}

}  // namespace tutti
