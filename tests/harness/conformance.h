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

/// One operation on buffers with guard bytes around them, at any alignment.
inline void checkOperation(Comm& comm, const Descriptor& d, std::uint64_t seed, bool in_place,
                           std::size_t shift) {
  const int nranks = comm.size();
  const int rank = comm.rank();
  const std::size_t size = sizeOf(d.type);
  const std::uint64_t inputs = inputCount(d.collective, nranks, d.count);
  const std::uint64_t outputs = outputCount(d.collective, nranks, d.count);
  constexpr std::byte kGuard{0x5a};
  constexpr std::size_t kGuardBytes = 64;
  std::vector<std::byte> in(inputs * size + 2 * kGuardBytes, kGuard);
  std::vector<std::byte> out(outputs * size + 2 * kGuardBytes, kGuard);
  std::byte* send = in.data() + kGuardBytes / 2 + shift;
  std::byte* recv = out.data() + kGuardBytes / 2 + shift;
  const std::size_t block = static_cast<std::size_t>(rank) * d.count * size;
  if (in_place && d.collective == Collective::all_gather) send = recv + block;
  if (in_place && d.collective == Collective::reduce_scatter) recv = send + block;
  const bool is_simple = d.collective == Collective::all_reduce || d.collective == Collective::broadcast;
  if (in_place && is_simple) send = recv;
  for (std::uint64_t i = 0; i < inputs; ++i) {
    encode(d.type, send + i * size, inputValue(seed, rank, i, d.type, d.op));
  }

  const auto type = static_cast<ncclDataType_t>(d.type);
  const auto op = static_cast<ncclRedOp_t>(d.op);
  switch (d.collective) {
    case Collective::all_reduce:
      comm.allReduce(send, recv, d.count, type, op);
      break;
    case Collective::reduce_scatter:
      comm.reduceScatter(send, recv, d.count, type, op);
      break;
    case Collective::all_gather:
      comm.allGather(send, recv, d.count, type);
      break;
    case Collective::broadcast:
      comm.broadcast(send, recv, d.count, type, d.root);
      break;
  }

  const auto fail = [&](const std::string& what) {
    throw std::runtime_error("rank " + std::to_string(rank) + " of " + std::to_string(nranks) + ": " +
                             describe(d) + (in_place ? " in place" : "") + " shift " + std::to_string(shift) +
                             " seed " + std::to_string(seed) + ": " + what);
  };
  for (std::uint64_t i = 0; i < outputs; ++i) {
    const double want = expectedValue(seed, nranks, rank, d, i);
    const double got = decode(d.type, recv + i * size);
    if (!(std::abs(got - want) <= tolerance(d.type, d.op, nranks))) {
      fail("element " + std::to_string(i) + ": expected " + std::to_string(want) + ", got " +
           std::to_string(got));
    }
  }
  if (in_place) return;
  const auto isGuard = [](std::byte b) { return b == kGuard; };
  if (!std::all_of(out.data(), recv, isGuard) ||
      !std::all_of(recv + outputs * size, out.data() + out.size(), isGuard)) {
    fail("memory around the output was written");
  }
  for (std::uint64_t i = 0; i < inputs; ++i) {
    if (decode(d.type, send + i * size) != inputValue(seed, rank, i, d.type, d.op)) {
      fail("the input was changed");
    }
  }
}

/// `rounds` operations drawn from the seed, the same on all ranks; up to `most` elements each.
inline void conform(Comm& comm, std::uint64_t seed, int rounds, std::uint64_t most) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds; ++round) {
    Descriptor d;
    d.collective = static_cast<Collective>(random() % kCollectiveCount);
    d.type = static_cast<DataType>(random() % kDataTypeCount);
    d.op = isReduction(d.collective) ? static_cast<RedOp>(random() % kRedOpCount) : RedOp::sum;
    d.root = d.collective == Collective::broadcast
                 ? static_cast<int>(random() % static_cast<std::uint64_t>(comm.size()))
                 : 0;
    d.count = random() % 3 == 0 ? random() % 20 : random() % most;
    const bool in_place = random() % 2 == 0;
    checkOperation(comm, d, seed + static_cast<std::uint64_t>(round), in_place, random() % 16);
  }
}

}  // namespace tutti::test
