// One collective of one rank: its buffers between guard bytes, in place or not, and the comparison.
#pragma once

#include <nccl.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/nccl_conformance/calls.h"
#include "tests/nccl_conformance/memory.h"
#include "tests/nccl_conformance/ranks.h"

namespace conformance {

/// Made, issued, then checked once the stream has been synchronized. Several may be issued in one group.
class CheckedCall {
 public:
  static constexpr std::size_t kGuardBytes = 64;
  static constexpr std::byte kGuard{0xa5};

  CheckedCall(const Call& call, std::uint64_t seed, int rank, int nranks)
      : call_(call),
        seed_(seed),
        rank_(rank),
        nranks_(nranks),
        sent_(call.sent(rank, nranks)),
        received_(call.received(rank, nranks)),
        in_place_(call.collective == Collective::bcast || (call.in_place && sent_ != 0 && received_ != 0)),
        send_(kGuardBytes * 2 + sent_ * call.type->bytes),
        recv_(kGuardBytes * 2 + std::max(received_, in_place_ ? sent_ : 0) * call.type->bytes) {
    fill();
  }

  void issue(ncclComm_t comm, cudaStream_t stream) {
    auto op = static_cast<ncclRedOp_t>(call_.op);
    const bool is_premul = call_.op == kPreMulSum && call_.reduces();
    std::vector<std::byte> scalar(call_.type->bytes);
    if (is_premul) {
      encode(*call_.type, scalar.data(), scalarOf(rank_));
      check(ncclRedOpCreatePreMulSum(&op, scalar.data(), call_.type->type, ncclScalarHostImmediate, comm),
            "ncclRedOpCreatePreMulSum");
      std::fill(scalar.begin(), scalar.end(), kGuard);  // it was copied
    }
    const std::string text = call_.text();
    check(conformance::issue(call_, op, input(), output(), comm, stream), text.c_str());
    if (is_premul) check(ncclRedOpDestroy(op, comm), "ncclRedOpDestroy");
  }

  /// Throws unless every byte is as it must be.
  void verify() const {
    const auto out = contents(recv_, recvBytes());
    const std::size_t bytes = call_.type->bytes;
    const std::size_t from = kGuardBytes + outputOffset();
    for (std::size_t i = 0; i < received_; ++i) {
      const double got = decode(*call_.type, out.data() + from + i * bytes);
      const double want = expectedValue(call_, seed_, rank_, nranks_, i);
      if (!(std::fabs(got - want) <= tolerance(call_, nranks_))) {
        fail("element " + std::to_string(i) + " is " + std::to_string(got) + ", not " + std::to_string(want));
      }
    }
    requireGuards(out, "recvbuff");
    if (in_place_ || sent_ == 0) return;
    const auto in = contents(send_, sent_ * bytes);
    requireGuards(in, "sendbuff");
    for (std::size_t i = 0; i < sent_; ++i) {
      if (decode(*call_.type, in.data() + kGuardBytes + i * bytes) != inputValue(call_, seed_, rank_, i))
        fail("element " + std::to_string(i) + " of sendbuff was changed");
    }
  }

  /// Throws unless the output is still as it was before the call.
  void verifyUntouched() const {
    const auto out = contents(recv_, recvBytes());
    for (const std::byte byte : out) {
      if (byte != kGuard) fail("recvbuff was written to");
    }
  }

 private:
  std::size_t recvBytes() const { return std::max(received_, in_place_ ? sent_ : 0) * call_.type->bytes; }

  /// In place the smaller block lies within the larger one, at this rank's.
  std::size_t blockOffset(std::size_t mine, std::size_t other) const {
    return in_place_ && mine < other ? static_cast<std::size_t>(rank_) * mine * call_.type->bytes : 0;
  }
  std::size_t inputOffset() const { return blockOffset(sent_, received_); }
  std::size_t outputOffset() const { return blockOffset(received_, sent_); }
  /// A rank that contributes nothing, or gets nothing, has no buffer.
  const void* input() const {
    if (sent_ == 0) return nullptr;
    return in_place_ ? recv_.at(kGuardBytes + inputOffset()) : send_.at(kGuardBytes);
  }
  void* output() const { return received_ == 0 ? nullptr : recv_.at(kGuardBytes + outputOffset()); }

  void fill() const {
    const std::size_t bytes = call_.type->bytes;
    std::vector<std::byte> in(kGuardBytes * 2 + sent_ * bytes, kGuard);
    for (std::size_t i = 0; i < sent_; ++i)
      encode(*call_.type, in.data() + kGuardBytes + i * bytes, inputValue(call_, seed_, rank_, i));
    const std::vector<std::byte> out(kGuardBytes * 2 + recvBytes(), kGuard);
    copyIn(recv_.at(), out.data(), out.size());
    if (in_place_) {
      copyIn(recv_.at(kGuardBytes + inputOffset()), in.data() + kGuardBytes, sent_ * bytes);
    } else {
      copyIn(send_.at(), in.data(), in.size());
    }
  }

  static std::vector<std::byte> contents(const Buffer& buffer, std::size_t bytes) {
    std::vector<std::byte> result(kGuardBytes * 2 + bytes);
    copyOut(result.data(), buffer.at(), result.size());
    return result;
  }

  void requireGuards(const std::vector<std::byte>& bytes, const char* name) const {
    for (std::size_t i = 0; i < kGuardBytes; ++i) {
      if (bytes[i] != kGuard || bytes[bytes.size() - 1 - i] != kGuard)
        fail(std::string("bytes beside ") + name + " were written to");
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(call_.text() + ", rank " + std::to_string(rank_) + " of " +
                             std::to_string(nranks_) + ", seed " + std::to_string(seed_) + ": " + what);
  }

  Call call_;
  std::uint64_t seed_;
  int rank_;
  int nranks_;
  std::size_t sent_;
  std::size_t received_;
  bool in_place_;
  Buffer send_;
  Buffer recv_;
};

/// Issues the call alone, waits and checks.
inline void checkCall(const Rank& rank, const Call& call, std::uint64_t seed = 1) {
  CheckedCall checked(call, seed, rank.rank, rank.nranks);
  checked.issue(rank.comm, rank.stream);
  rank.stream.synchronize();
  checked.verify();
}

/// What shows that a communicator works.
inline void checkUsable(const Rank& rank, std::uint64_t seed = 1) {
  checkCall(rank, {.collective = Collective::all_reduce, .type = &kTypes[2], .count = 100}, seed);
}

}  // namespace conformance
