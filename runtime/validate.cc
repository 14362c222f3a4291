#include <fmt/format.h>

#include <cstdint>

#include "runtime/communicator.h"
#include "runtime/core/extent.h"
#include "tutti/error.h"

namespace tutti {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(ncclInvalidArgument, text); }

/// A buffer that an operation works on.
struct Buffer {
  const char* name;
  const void* at;
  std::uint64_t bytes;
};

void validateBuffer(const Task& task, const Buffer& buffer) {
  // Of a process at most, on x86-64 with five levels of page tables.
  constexpr std::uint64_t kAddressSpace = std::uint64_t{1} << 56;
  if (buffer.at == nullptr) refuse(fmt::format("{}: {} is NULL", task.function, buffer.name));
  const auto begin = reinterpret_cast<std::uintptr_t>(buffer.at);
  if (buffer.bytes <= kAddressSpace && buffer.bytes <= UINTPTR_MAX - begin) return;
  refuse(
      fmt::format("{}: {}: {} bytes at {} go beyond the end of the address space. Is the count one of "
                  "elements?",
                  task.function, buffer.name, buffer.bytes, buffer.at));
}

void validateRoot(const Task& task, int nranks) {
  const Descriptor& d = task.descriptor;
  if (hasRoot(d.collective) && (d.root < 0 || d.root >= nranks)) {
    refuse(fmt::format("{}: root {} is not one of ranks 0 to {}", task.function, d.root, nranks - 1));
  }
}

/// In place means equal addresses of a rank's own block; any other overlap would read what was overwritten.
void validateOverlap(const Task& task, const Extent& extent, int rank) {
  const std::uint64_t block = task.descriptor.count * sizeOf(task.descriptor.type);
  const auto send_at = reinterpret_cast<std::uintptr_t>(task.send);
  const auto recv_at = reinterpret_cast<std::uintptr_t>(task.recv);
  const std::uint64_t mine = static_cast<std::uint64_t>(rank) * block;
  const bool is_in_place =
      send_at + (extent.send_blocks > 1 ? mine : 0) == recv_at + (extent.recv_blocks > 1 ? mine : 0);
  const bool overlaps =
      send_at < recv_at + extent.recv_blocks * block && recv_at < send_at + extent.send_blocks * block;
  if (overlaps && !is_in_place) {
    refuse(fmt::format("{}: sendbuff and recvbuff overlap, but not as an in-place call ({})", task.function,
                       extent.send_blocks == extent.recv_blocks ? "sendbuff == recvbuff"
                       : extent.send_blocks > 1                 ? "recvbuff == sendbuff + rank * recvcount"
                                                                : "sendbuff == recvbuff + rank * sendcount"));
  }
}

void validateCollective(const Task& task, int nranks, int rank) {
  const Descriptor& d = task.descriptor;
  validateRoot(task, nranks);
  const Extent extent = extentOf(d.collective, nranks);
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(d.count, sizeOf(d.type) * static_cast<std::uint64_t>(nranks), &bytes)) {
    refuse(fmt::format("{}: count {} of {} on {} ranks exceeds what memory can hold", task.function, d.count,
                       name(d.type), nranks));
  }
  if (d.count == 0) return;
  const std::uint64_t block = d.count * sizeOf(d.type);
  const bool reads_input = readsInput(d.collective, rank == d.root);
  if (reads_input) validateBuffer(task, {task.send_name, task.send, extent.send_blocks * block});
  const bool writes_output = writesOutput(d.collective, rank == d.root);
  if (writes_output) validateBuffer(task, {task.recv_name, task.recv, extent.recv_blocks * block});
  if (reads_input && writes_output) validateOverlap(task, extent, rank);
}

void validateTransfer(const Task& task, int nranks) {
  if (task.peer < 0 || task.peer >= nranks) {
    refuse(fmt::format("{}: peer {} is not one of ranks 0 to {}", task.function, task.peer, nranks - 1));
  }
  if (task.descriptor.count == 0) return;
  const bool is_send = task.kind == Task::Kind::send;
  validateBuffer(task, {is_send ? task.send_name : task.recv_name, is_send ? task.send : task.recv,
                        task.descriptor.count});
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
