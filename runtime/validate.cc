#include <fmt/format.h>

#include <cstdint>

#include "runtime/communicator.h"
#include "runtime/core/extent.h"
#include "tutti/error.h"

namespace tutti {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(ncclInvalidArgument, text); }

void validateEnumerators(const Descriptor& d, int nranks) {
  const auto call = name(d.collective);
  if (static_cast<int>(d.type) >= kDataTypeCount) {
    refuse(fmt::format("{}: datatype {} is not an ncclDataType_t", call, static_cast<int>(d.type)));
  }
  if (isReduction(d.collective)) {
    if (static_cast<int>(d.op) >= kAllRedOpCount) {
      refuse(fmt::format("{}: op {} is not an ncclRedOp_t", call, static_cast<int>(d.op)));
    }
  }
  if (hasRoot(d.collective) && (d.root < 0 || d.root >= nranks)) {
    refuse(fmt::format("{}: root {} is not one of ranks 0 to {}", call, d.root, nranks - 1));
  }
}

/// In place means equal addresses of a rank's own block; any other overlap would read what was overwritten.
void validateOverlap(const Descriptor& d, const Extent& extent, int rank, const void* send,
                     const void* recv) {
  const std::uint64_t block = d.count * sizeOf(d.type);
  const auto send_at = reinterpret_cast<std::uintptr_t>(send);
  const auto recv_at = reinterpret_cast<std::uintptr_t>(recv);
  const std::uint64_t mine = static_cast<std::uint64_t>(rank) * block;
  const bool is_in_place =
      send_at + (extent.send_blocks > 1 ? mine : 0) == recv_at + (extent.recv_blocks > 1 ? mine : 0);
  const bool overlaps =
      send_at < recv_at + extent.recv_blocks * block && recv_at < send_at + extent.send_blocks * block;
  if (overlaps && !is_in_place) {
    refuse(fmt::format("{}: sendbuff and recvbuff overlap, but not as an in-place call ({})",
                       name(d.collective),
                       extent.send_blocks == extent.recv_blocks ? "sendbuff == recvbuff"
                       : extent.send_blocks > 1                 ? "recvbuff == sendbuff + rank * recvcount"
                                                                : "sendbuff == recvbuff + rank * sendcount"));
  }
}

void validateCollective(const Task& task, int nranks, int rank) {
  const Descriptor& d = task.descriptor;
  validateEnumerators(d, nranks);
  const Extent extent = extentOf(d.collective, nranks);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(d.count, sizeOf(d.type) * static_cast<std::uint64_t>(nranks), &bytes)) {
    refuse(fmt::format("{}: count {} of {} on {} ranks exceeds what memory can hold", name(d.collective),
                       d.count, name(d.type), nranks));
  }
  if (d.count == 0) return;
  const bool reads_input = readsInput(d.collective, rank == d.root);
  if (reads_input && task.send == nullptr) refuse(fmt::format("{}: sendbuff is NULL", name(d.collective)));
  const bool writes_output = writesOutput(d.collective, rank == d.root);
  if (writes_output && task.recv == nullptr) {
    refuse(fmt::format("{}: recvbuff is NULL", name(d.collective)));
  }
  if (reads_input && writes_output) validateOverlap(d, extent, rank, task.send, task.recv);
}

void validateTransfer(const Task& task, int nranks) {
  const char* call = task.kind == Task::Kind::send ? "Send" : "Recv";
  if (task.peer < 0 || task.peer >= nranks) {
    refuse(fmt::format("{}: peer {} is not one of ranks 0 to {}", call, task.peer, nranks - 1));
  }
  if (task.descriptor.count == 0) return;
  if (task.kind == Task::Kind::send && task.send == nullptr) refuse("Send: sendbuff is NULL");
  if (task.kind == Task::Kind::receive && task.recv == nullptr) refuse("Recv: recvbuff is NULL");
}

}  // namespace

void validateTask(const Task& task, int nranks, int rank) {
  if (task.kind == Task::Kind::collective) {
    validateCollective(task, nranks, rank);
  } else {
    validateTransfer(task, nranks);
  }
}

}  // namespace tutti
