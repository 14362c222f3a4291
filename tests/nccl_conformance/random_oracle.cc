#include <cstring>

#include "tests/nccl_conformance/random_program.h"

namespace conformance {
namespace {

/// The types that operations on whole numbers need: products and sums wrap in the unsigned one.
template <class Use>
void withInteger(const Type& type, const Use& use) {
  switch (type.type) {
    case ncclInt8:
      return use(std::int8_t{}, std::uint8_t{});
    case ncclUint8:
      return use(std::uint8_t{}, std::uint8_t{});
    case ncclInt32:
      return use(std::int32_t{}, std::uint32_t{});
    case ncclUint32:
      return use(std::uint32_t{}, std::uint32_t{});
    case ncclInt64:
      return use(std::int64_t{}, std::uint64_t{});
    default:
      return use(std::uint64_t{}, std::uint64_t{});
  }
}

template <class T, class U>
T combine(int op, T a, T b) {
  if (op == ncclMax) return a > b ? a : b;
  if (op == ncclMin) return a < b ? a : b;
  const auto x = static_cast<std::uint64_t>(static_cast<U>(a));
  const auto y = static_cast<std::uint64_t>(static_cast<U>(b));
  return static_cast<T>(static_cast<U>(op == ncclProd ? x * y : x + y));
}

/// Element `at` of all inputs, reduced.
void reduceIntegers(const Call& call, const std::vector<Bytes>& inputs, std::size_t at, std::byte* to) {
  withInteger(*call.type, [&]<class T, class U>(T, U) {
    T result{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      T value;
      std::memcpy(&value, inputs[rank].data() + at * sizeof(T), sizeof(T));
      if (call.op == kPreMulSum)
        value = combine<T, U>(ncclProd, value, static_cast<T>(scalarOf(static_cast<int>(rank))));
      result = rank == 0 ? value : combine<T, U>(call.op, result, value);
    }
    if (call.op == ncclAvg) result = static_cast<T>(result / static_cast<T>(inputs.size()));
    std::memcpy(to, &result, sizeof(T));
  });
}

/// What `rank` ends with.
Bytes outputOf(const Operation& operation, const std::vector<Bytes>& inputs, int rank, int nranks) {
  const Call& call = operation.call;
  const std::size_t bytes = call.type->bytes;
  const std::size_t block = call.count * bytes;
  const auto mine = static_cast<std::size_t>(rank);
  if (operation.is_transfer)
    return rank == operation.to ? inputs[static_cast<std::size_t>(operation.from)] : Bytes{};
  Bytes result(call.received(rank, nranks) * bytes);
  const auto part = [&](std::size_t from, std::size_t offset, std::size_t to) {
    if (block != 0) std::memcpy(result.data() + to, inputs[from].data() + offset, block);
  };
  if (call.reduces()) {
    const std::size_t first = call.collective == Collective::reduce_scatter ? mine * call.count : 0;
    for (std::size_t i = 0; i * bytes < result.size(); ++i) {
      if (call.type->isFloat())
        encode(*call.type, result.data() + i * bytes, reducedValue(call, operation.seed, nranks, first + i));
      else
        reduceIntegers(call, inputs, first + i, result.data() + i * bytes);
    }
  } else if (call.collective == Collective::scatter) {
    part(static_cast<std::size_t>(call.root), mine * block, 0);
  } else if (call.collective == Collective::broadcast || call.collective == Collective::bcast) {
    part(static_cast<std::size_t>(call.root), 0, 0);
  } else {
    const bool is_exchange = call.collective == Collective::all_to_all;
    for (std::size_t from = 0; from * block < result.size(); ++from)
      part(from, is_exchange ? mine * block : 0, from * block);
  }
  return result;
}

}  // namespace

std::size_t inputOffset(const Operation& operation, int rank, int nranks) {
  const Call& call = operation.call;
  if (operation.is_transfer || !call.in_place) return operation.input;
  const bool is_part = call.sent(rank, nranks) < call.received(rank, nranks);
  return operation.input + (is_part ? static_cast<std::size_t>(rank) * call.count * call.type->bytes : 0);
}

std::size_t outputOffset(const Operation& operation, int rank, int nranks) {
  const Call& call = operation.call;
  if (operation.is_transfer || !call.in_place) return operation.output;
  const bool is_part = call.received(rank, nranks) < call.sent(rank, nranks);
  return operation.output + (is_part ? static_cast<std::size_t>(rank) * call.count * call.type->bytes : 0);
}

std::size_t inputBytes(const Operation& operation, int rank, int nranks) {
  if (operation.is_transfer)
    return rank == operation.from ? operation.call.count * operation.call.type->bytes : 0;
  return operation.call.sent(rank, nranks) * operation.call.type->bytes;
}

Bytes freshInput(const Operation& operation, int rank, int nranks) {
  const Call& call = operation.call;
  if (operation.is_transfer || !call.reduces() || !call.type->isFloat()) return {};
  Bytes result(inputBytes(operation, rank, nranks));
  for (std::size_t i = 0; i * call.type->bytes < result.size(); ++i)
    encode(*call.type, result.data() + i * call.type->bytes, inputValue(call, operation.seed, rank, i));
  return result;
}

void apply(const Operation& operation, const std::vector<int>& members, std::vector<Bytes>& arenas) {
  const int nranks = static_cast<int>(members.size());
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < nranks; ++rank) {
    Bytes& arena = arenas[static_cast<std::size_t>(members[static_cast<std::size_t>(rank)])];
    const auto begin = arena.begin() + static_cast<std::ptrdiff_t>(inputOffset(operation, rank, nranks));
    const Bytes fresh = freshInput(operation, rank, nranks);
    std::copy(fresh.begin(), fresh.end(), begin);
    inputs.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(inputBytes(operation, rank, nranks)));
  }
  for (int rank = 0; rank < nranks; ++rank) {
    Bytes& arena = arenas[static_cast<std::size_t>(members[static_cast<std::size_t>(rank)])];
    const Bytes output = outputOf(operation, inputs, rank, nranks);
    std::copy(output.begin(), output.end(),
              arena.begin() + static_cast<std::ptrdiff_t>(outputOffset(operation, rank, nranks)));
  }
}

}  // namespace conformance
