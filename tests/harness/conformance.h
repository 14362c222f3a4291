// The conformance run: collectives of random shape against the oracle. Every transport and rank arrangement
// runs it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/core/descriptor.h"
#include "tests/harness/oracle.h"
#include "tutti/tutti.h"

namespace tutti::test {

/// Memory that operations work on where that is a GPU's: how a test allocates it and copies between it and
/// the host. copy() waits until it is done, and for all work before it.
struct GpuMemory {
  void* (*allocate)(std::size_t bytes);
  void (*free)(void* memory);
  void (*copy)(void* to, const void* from, std::size_t bytes);
};
/// Set by a program that tests communicators on GPUs; nullptr: operations work on the host's memory.
inline const GpuMemory* gpu_memory = nullptr;

/// Memory for one buffer of an operation: of the heap or the GPU, or of ncclMemAlloc and registered. Which
/// one is this rank's own business. On a GPU, data() is the host's copy of it.
class TestMemory {
 public:
  TestMemory(Comm& comm, std::size_t bytes, bool is_registered) : comm_(comm), bytes_(bytes) {
    if (is_registered) {
      check(ncclMemAlloc(&allocated_, bytes));
      check(ncclCommRegister(comm.handle(), allocated_, bytes, &registration_));
    } else if (gpu_memory != nullptr) {
      allocated_ = gpu_memory->allocate(bytes);
    }
    if (gpu_memory != nullptr || !is_registered) heap_.resize(bytes);
    data_ = heap_.empty() ? static_cast<std::byte*>(allocated_) : heap_.data();
  }
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;
  ~TestMemory() {
    if (registration_ != nullptr) ncclCommDeregister(comm_.handle(), registration_);
    if (registration_ != nullptr || gpu_memory == nullptr) {
      ncclMemFree(allocated_);
    } else {
      gpu_memory->free(allocated_);
    }
  }

  std::byte* data() const { return data_; }
  std::byte* end() const { return data_ + bytes_; }

  /// What an operation is given for an address in data().
  std::byte* place(const std::byte* at) const {
    return (gpu_memory != nullptr ? static_cast<std::byte*>(allocated_) : data_) + (at - data_);
  }
  void upload() const {
    if (gpu_memory != nullptr) gpu_memory->copy(allocated_, data_, bytes_);
  }
  void download() const {
    if (gpu_memory != nullptr) gpu_memory->copy(data_, allocated_, bytes_);
  }

 private:
  Comm& comm_;
  std::size_t bytes_;
  std::vector<std::byte> heap_;
  void* allocated_ = nullptr;
  void* registration_ = nullptr;
  std::byte* data_;
};

/// Whose memory an operation uses on one rank, and how it lies.
struct Placement {
  bool in_place = false;
  std::size_t shift = 0;  ///< bytes, below 16: no alignment is promised
  bool input_registered = false;
  bool output_registered = false;

  std::string text() const {
    return std::string(in_place ? " in place" : "") + " shift " + std::to_string(shift) +
           (input_registered ? " input registered" : "") + (output_registered ? " output registered" : "");
  }
};

/// An operation of the library: premul_sum with this rank's scalar is made for it.
class TestOp {
 public:
  TestOp(Comm& comm, const Descriptor& d) : comm_(comm), op_(static_cast<ncclRedOp_t>(d.op)) {
    if (d.op != RedOp::premul_sum) return;
    std::byte scalar[8] = {};
    encode(d.type, scalar, premulScalar(comm.rank()));
    check(ncclRedOpCreatePreMulSum(&op_, scalar, static_cast<ncclDataType_t>(d.type), ncclScalarHostImmediate,
                                   comm.handle()));
    is_own_ = true;
  }
  TestOp(const TestOp&) = delete;
  TestOp& operator=(const TestOp&) = delete;
  ~TestOp() {
    if (is_own_) ncclRedOpDestroy(op_, comm_.handle());
  }
  ncclRedOp_t get() const { return op_; }

 private:
  Comm& comm_;
  ncclRedOp_t op_;
  bool is_own_ = false;
};

inline void call(Comm& comm, const Descriptor& d, const std::byte* send, std::byte* recv) {
  const auto type = static_cast<ncclDataType_t>(d.type);
  const TestOp op(comm, d);
  switch (d.collective) {
    case Collective::all_reduce:
      return comm.allReduce(send, recv, d.count, type, op.get());
    case Collective::reduce_scatter:
      return comm.reduceScatter(send, recv, d.count, type, op.get());
    case Collective::all_gather:
      return comm.allGather(send, recv, d.count, type);
    case Collective::broadcast:
      return comm.broadcast(send, recv, d.count, type, d.root);
    case Collective::reduce:
      return comm.reduce(send, recv, d.count, type, op.get(), d.root);
    case Collective::all_to_all:
      return comm.allToAll(send, recv, d.count, type);
    case Collective::gather:
      return comm.gather(send, recv, d.count, type, d.root);
    case Collective::scatter:
      return comm.scatter(send, recv, d.count, type, d.root);
  }
}

/// One operation on buffers with guard bytes around them. Returns the bytes of this rank's result.
inline std::vector<std::byte> checkOperation(Comm& comm, const Descriptor& d, std::uint64_t seed,
                                             const Placement& place) {
  const int nranks = comm.size();
  const int rank = comm.rank();
  const std::size_t size = sizeOf(d.type);
  const std::uint64_t inputs = inputCount(d.collective, nranks, d.count);
  const bool has_result = rank == d.root || !onlyRootReceives(d.collective);
  const bool has_input = rank == d.root || !onlyRootSends(d.collective);
  const std::uint64_t outputs = has_result ? outputCount(d.collective, nranks, d.count) : 0;
  constexpr std::byte kGuard{0x5a};
  constexpr std::size_t kGuardBytes = 64;
  const TestMemory in(comm, inputs * size + 2 * kGuardBytes, place.input_registered);
  const TestMemory out(comm, outputs * size + 2 * kGuardBytes, place.output_registered);
  std::fill(in.data(), in.end(), kGuard);
  std::fill(out.data(), out.end(), kGuard);
  std::byte* send = in.data() + kGuardBytes / 2 + place.shift;
  std::byte* recv = out.data() + kGuardBytes / 2 + place.shift;
  const std::size_t own_block = inPlaceOffset(d.collective, rank, d.count) * size;
  if (place.in_place && has_result) {
    if (inputs > outputs) {
      recv = send + own_block;
    } else {
      send = recv + own_block;
    }
  }
  for (std::uint64_t i = 0; i < inputs; ++i) {
    encode(d.type, send + i * size, inputValue(seed, rank, i, d.type, d.op));
  }
  const bool sends_from_out = send >= out.data() && send < out.end();
  const bool receives_in_in = recv >= in.data() && recv < in.end();
  in.upload();
  out.upload();
  // What matters on the root only may be anything on other ranks.
  const bool passes_all = place.shift % 2 == 0;
  call(comm, d, has_input || passes_all ? (sends_from_out ? out : in).place(send) : nullptr,
       has_result || passes_all ? (receives_in_in ? in : out).place(recv) : nullptr);
  in.download();
  out.download();

  const auto fail = [&](const std::string& what) {
    throw std::runtime_error("rank " + std::to_string(rank) + " of " + std::to_string(nranks) + ": " +
                             describe(d) + place.text() + " seed " + std::to_string(seed) + ": " + what);
  };
  for (std::uint64_t i = 0; i < outputs; ++i) {
    const double want = expectedValue(seed, nranks, rank, d, i);
    const double got = decode(d.type, recv + i * size);
    if (!(std::abs(got - want) <= tolerance(d.type, d.op, nranks))) {
      fail("element " + std::to_string(i) + ": expected " + std::to_string(want) + ", got " +
           std::to_string(got));
    }
  }
  std::vector<std::byte> result(recv, recv + outputs * size);
  if (place.in_place && has_result)
    return result;  // where there is no result, there is no place for it either
  const auto isGuard = [](std::byte b) { return b == kGuard; };
  if (!std::all_of(out.data(), recv, isGuard) || !std::all_of(recv + outputs * size, out.end(), isGuard)) {
    fail("memory around the output was written");
  }
  for (std::uint64_t i = 0; i < inputs; ++i) {
    if (decode(d.type, send + i * size) != inputValue(seed, rank, i, d.type, d.op))
      fail("the input was changed");
  }
  return result;
}

/// `rounds` operations drawn from the seed, the same on all ranks, on up to `most` elements of each.
inline void conform(Comm& comm, std::uint64_t seed, int rounds, std::uint64_t most) {
  std::mt19937_64 random(seed);                                                 // what all ranks agree on
  std::mt19937_64 own(seed ^ (static_cast<std::uint64_t>(comm.rank()) << 32));  // what is each rank's own
  for (int round = 0; round < rounds; ++round) {
    Descriptor d;
    d.collective = static_cast<Collective>(random() % kCollectiveCount);
    d.type = static_cast<DataType>(random() % kDataTypeCount);
    d.op = isReduction(d.collective) ? static_cast<RedOp>(random() % kAllRedOpCount) : RedOp::sum;
    d.root = hasRoot(d.collective) ? static_cast<int>(random() % static_cast<std::uint64_t>(comm.size())) : 0;
    const bool has_blocks = hasInputBlocks(d.collective) || hasOutputBlocks(d.collective);
    const std::uint64_t most_count = has_blocks ? most / static_cast<std::uint64_t>(comm.size()) + 1 : most;
    d.count = random() % 3 == 0 ? random() % 20 : random() % most_count;
    const Placement place{.in_place = random() % 2 == 0,
                          .shift = own() % 16,
                          .input_registered = own() % 3 == 0,
                          .output_registered = own() % 3 == 0};
    checkOperation(comm, d, seed + static_cast<std::uint64_t>(round), place);
  }
}

}  // namespace tutti::test
