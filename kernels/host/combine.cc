#include "kernels/host/combine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "kernels/host/combine_paths.h"
#include "kernels/host/cpu.h"
#include "kernels/host/streaming.h"

namespace tutti {
namespace {

constexpr std::size_t kLineBytes = 64;

bool isStreamed(const CombineArgs& args, std::uint32_t d) { return (args.stream >> d & 1) != 0; }

void copyTo(const CombineArgs& args, std::uint32_t d, const std::byte* from, std::size_t offset,
            std::size_t bytes) {
  if (isStreamed(args, d)) {
    streamingCopy(args.dsts[d] + offset, from, bytes);
  } else {
    std::memcpy(args.dsts[d] + offset, from, bytes);
  }
}

/// A range of a call's elements as a call of its own.
class Part {
 public:
  CombineArgs args;

  Part(const CombineArgs& whole, std::size_t element_bytes)
      : args(whole), whole_(whole), element_bytes_(element_bytes) {}

  const CombineArgs& at(std::uint64_t first, std::uint64_t n) {
    const std::size_t offset = first * element_bytes_;
    for (std::uint32_t s = 0; s < whole_.src_count; ++s) srcs_[s] = whole_.srcs[s] + offset;
    for (std::uint32_t d = 0; d < whole_.dst_count; ++d) dsts_[d] = whole_.dsts[d] + offset;
    args.srcs = srcs_.data();
    args.dsts = dsts_.data();
    args.n = n;
    return args;
  }

 private:
  const CombineArgs& whole_;
  std::size_t element_bytes_;
  std::array<const std::byte*, kMaxCombineOperands> srcs_;
  std::array<std::byte*, kMaxCombineOperands> dsts_;
};

}  // namespace

CombineFn combineFunction(DataType type, RedOp op) {
  static const CombineTable& best = *combinePaths().front().table;
  return best.functions[static_cast<int>(type)][static_cast<int>(op)];
}

bool isCopy(const CombineArgs& args, RedOp op) {
  if (args.src_count != 1) return false;
  if (op == RedOp::premul_sum) return (args.own & 1) == 0;
  return op != RedOp::avg || ((args.own & 1) == 0 && !args.last);
}

void copyCombine(const CombineArgs& args, std::size_t element_bytes) {
  for (std::uint32_t d = 0; d < args.dst_count; ++d) {
    if (args.dsts[d] != args.srcs[0]) copyTo(args, d, args.srcs[0], 0, args.n * element_bytes);
  }
}

void resolveScales(const CombineArgs& args, DataType type, Scale* scales) {
  const Scale unit = unitScale(type);
  const Scale average = args.scales == nullptr ? averageScale(type, args.nranks) : unit;
  for (std::uint32_t s = 0; s < args.src_count; ++s) {
    const bool is_own = (args.own >> s & 1) != 0;
    scales[s] = !is_own ? unit : (args.scales != nullptr ? args.scales[s] : average);
  }
}

void combineStreaming(const CombineArgs& args, std::size_t element_bytes, CombineFn combine) {
  // Elements in front of the first whole line of the first streamed destination are combined on their own.
  const auto addressOf = [&](int d) { return reinterpret_cast<std::uintptr_t>(args.dsts[d]); };
  const std::size_t front_bytes = -addressOf(std::countr_zero(args.stream)) % kLineBytes;
  const std::uint64_t front = std::min<std::uint64_t>(front_bytes / element_bytes, args.n);
  Part part(args, element_bytes);
  part.args.stream = 0;
  if (front != 0) combine(part.at(0, front));
  if (front == args.n) return;
  for (std::uint32_t d = 0; d < args.dst_count; ++d) {
    const bool is_aligned = (addressOf(static_cast<int>(d)) + front * element_bytes) % kStreamAlignment == 0;
    if (isStreamed(args, d) && is_aligned) part.args.stream |= std::uint64_t{1} << d;
  }
  combine(part.at(front, args.n - front));
}

void combineDividing(const CombineArgs& args, const DividingCombine& how) {
  // Small enough to stay in the first cache beside the sources.
  constexpr std::size_t kBlockBytes = 4 << 10;
  alignas(kLineBytes) std::array<std::byte, kBlockBytes> block;
  std::byte* to = block.data();
  Part part(args, how.element_bytes);
  part.args.dst_count = 1;
  part.args.stream = 0;
  const std::uint64_t most = kBlockBytes / how.element_bytes;
  for (std::uint64_t done = 0; done < args.n; done += most) {
    const std::uint64_t n = std::min(most, args.n - done);
    part.at(done, n);
    part.args.dsts = &to;
    how.sum(part.args);
    how.divide(to, n, args.nranks);
    for (std::uint32_t d = 0; d < args.dst_count; ++d) {
      copyTo(args, d, to, done * how.element_bytes, n * how.element_bytes);
    }
  }
}

}  // namespace tutti
