#include "kernels/host/combine.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/host/combine_paths.h"
#include "kernels/host/cpu.h"

namespace tutti {
namespace {

bool isStreamed(const CombineArgs& args, std::uint32_t d) { return (args.stream >> d & 1) != 0; }

void copyTo(const CombineArgs& args, std::uint32_t d, const std::byte* from, std::size_t offset,
            std::size_t bytes) {
  if (isStreamed(args, d)) {
    streamingCopy(args.dsts[d] + offset, from, bytes);
  } else {
    std::memcpy(args.dsts[d] + offset, from, bytes);
  }
}

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

void combineByBlocks(const CombineArgs& args, const BlockwiseCombine& how) {
  // Small enough to stay in the first cache beside the sources.
  constexpr std::size_t kBlockBytes = 8 << 10;
  alignas(64) std::array<std::byte, kBlockBytes> block;
  std::array<const std::byte*, kMaxCombineOperands> srcs;
  std::byte* to = block.data();
  CombineArgs part = args;
  part.dsts = &to;
  part.srcs = srcs.data();
  part.dst_count = 1;
  part.stream = 0;
  const std::uint64_t most = kBlockBytes / how.element_bytes;
  for (std::uint64_t done = 0; done < args.n; done += part.n) {
    part.n = std::min(most, args.n - done);
    const std::size_t offset = done * how.element_bytes;
    for (std::uint32_t s = 0; s < args.src_count; ++s) srcs[s] = args.srcs[s] + offset;
    how.combine(part);
    if (how.divide != nullptr) how.divide(to, part.n, args.nranks);
    for (std::uint32_t d = 0; d < args.dst_count; ++d) {
      copyTo(args, d, to, offset, part.n * how.element_bytes);
    }
  }
}

}  // namespace tutti
