#include "tests/nccl_conformance/random_rank.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/nccl_conformance/memory.h"
#include "tests/nccl_conformance/ranks.h"

namespace conformance {
namespace {

class Player {
 public:
  Player(const RandomProgram& program, int rank, const std::vector<ncclUniqueId>& ids)
      : program_(program), rank_(rank), ids_(ids), arena_(kArenaBytes), comms_(program.members.size()) {
    copyIn(arena_.at(), initialArena(program.seed, rank).data(), kArenaBytes);
    join(0);
  }

  void step(const Step& step) {
    switch (step.kind) {
      case Step::Kind::operations:
        return carryOut(step);
      case Step::Kind::split:
        return split(step);
      case Step::Kind::join:
        return join(step.comm);
      case Step::Kind::destroy:
        return destroy(step.comm);
    }
  }

  /// Throws where the arena is not this.
  void compare(const Bytes& expected) const {
    stream_.synchronize();
    Bytes got(kArenaBytes);
    copyOut(got.data(), arena_.at(), kArenaBytes);
    const auto [wrong, right] = std::ranges::mismatch(got, expected);
    if (wrong == got.end()) return;
    throw std::runtime_error("byte " + std::to_string(wrong - got.begin()) + " is " +
                             std::to_string(static_cast<int>(*wrong)) + ", not " +
                             std::to_string(static_cast<int>(*right)));
  }

  void end() {
    for (std::size_t comm = comms_.size(); comm-- > 0;) destroy(static_cast<int>(comm));
  }

  void abort() noexcept {
    for (ncclComm_t& comm : comms_) ncclCommAbort(std::exchange(comm, nullptr));
  }

 private:
  const std::vector<int>& members(int comm) const { return program_.members[static_cast<std::size_t>(comm)]; }
  ncclComm_t& at(int comm) { return comms_[static_cast<std::size_t>(comm)]; }
  /// This rank in the communicator, or -1.
  int rankIn(int comm) const {
    const auto found = std::ranges::find(members(comm), rank_);
    return found == members(comm).end() ? -1 : static_cast<int>(found - members(comm).begin());
  }
  int sizeOf(int comm) const { return static_cast<int>(members(comm).size()); }

  void join(int comm) {
    const int rank = rankIn(comm);
    if (rank < 0) return;
    CHECK_NCCL(ncclCommInitRank(&at(comm), sizeOf(comm), ids_[static_cast<std::size_t>(comm)], rank));
  }

  void split(const Step& step) {
    const int rank = rankIn(step.comm);
    if (rank < 0) return;
    const int colour = step.colours[static_cast<std::size_t>(rank)];
    ncclComm_t child = nullptr;
    CHECK_NCCL(
        ncclCommSplit(at(step.comm), colour, step.keys[static_cast<std::size_t>(rank)], &child, nullptr));
    if (colour < 0) return;
    const int comm = step.children[static_cast<std::size_t>(colour)];
    at(comm) = child;
    int said = -1;
    CHECK_NCCL(ncclCommUserRank(child, &said));
    if (said != rankIn(comm)) throw std::runtime_error("is rank " + std::to_string(said) + " after a split");
  }

  void destroy(int comm) {
    if (at(comm) == nullptr) return;
    stream_.synchronize();
    CHECK_NCCL(ncclCommDestroy(std::exchange(at(comm), nullptr)));
  }

  void carryOut(const Step& step) {
    fill(step);
    for (int i = 0; i < step.depth; ++i) CHECK_NCCL(ncclGroupStart());
    for (const Part& part : partsOf(step)) post(part);
    for (int i = 0; i < step.depth; ++i) CHECK_NCCL(ncclGroupEnd());
  }

  void fill(const Step& step) {
    for (const Operation& operation : step.operations) {
      const int rank = rankIn(operation.comm);
      if (rank < 0) continue;
      const Bytes fresh = freshInput(operation, rank, sizeOf(operation.comm));
      if (fresh.empty()) continue;
      stream_.synchronize();  // what is queued may still need the bytes
      copyIn(arena_.at(inputOffset(operation, rank, sizeOf(operation.comm))), fresh.data(), fresh.size());
    }
  }

  /// A call of this rank.
  struct Part {
    const Operation* operation;
    bool is_send = false;
    std::size_t place = 0;  ///< in this rank's order
  };

  /// In an order of this rank's own: only collectives of one communicator, and sends or receives of one pair,
  /// stay in order.
  std::vector<Part> partsOf(const Step& step) const {
    std::vector<Part> parts;
    const auto add = [&](const Operation& operation, bool is_send, int peer) {
      const int key = operation.comm * 1000 + peer * 2 + (is_send ? 1 : 0);
      const std::size_t mixed =
          (static_cast<std::size_t>(key) + static_cast<std::size_t>(rank_) * 7919) * 0x9e3779b97f4a7c15ULL;
      parts.push_back({&operation, is_send, mixed >> 40});
    };
    for (const Operation& operation : step.operations) {
      const int rank = rankIn(operation.comm);
      if (rank < 0) continue;
      if (!operation.is_transfer) add(operation, false, 400);
      if (operation.is_transfer && rank == operation.from) add(operation, true, operation.to);
      if (operation.is_transfer && rank == operation.to) add(operation, false, operation.from);
    }
    std::ranges::stable_sort(parts, {}, &Part::place);
    return parts;
  }

  void post(const Part& part) {
    const Operation& operation = *part.operation;
    const Call& call = operation.call;
    const ncclComm_t comm = at(operation.comm);
    const int rank = rankIn(operation.comm);
    const int nranks = sizeOf(operation.comm);
    std::byte* const input = arena_.at(inputOffset(operation, rank, nranks));
    std::byte* const output = arena_.at(outputOffset(operation, rank, nranks));
    if (operation.is_transfer) {
      if (part.is_send) {
        CHECK_NCCL(ncclSend(input, call.count, call.type->type, operation.to, comm, stream_));
      } else {
        CHECK_NCCL(ncclRecv(output, call.count, call.type->type, operation.from, comm, stream_));
      }
      return;
    }
    auto op = static_cast<ncclRedOp_t>(call.op);
    const bool is_premul = call.reduces() && call.op == kPreMulSum;
    if (is_premul) {
      std::byte scalar[8];
      encode(*call.type, scalar, scalarOf(rank));
      CHECK_NCCL(ncclRedOpCreatePreMulSum(&op, scalar, call.type->type, ncclScalarHostImmediate, comm));
    }
    check(issue(call, op, input, output, comm, stream_), "the call");
    if (is_premul) CHECK_NCCL(ncclRedOpDestroy(op, comm));
  }

  const RandomProgram& program_;
  int rank_;
  const std::vector<ncclUniqueId>& ids_;
  Stream stream_;
  Buffer arena_;
  std::vector<ncclComm_t> comms_;
};

}  // namespace

std::vector<std::vector<Bytes>> expectedArenas(const RandomProgram& program) {
  std::vector<Bytes> arenas;
  arenas.reserve(static_cast<std::size_t>(program.nranks));
  for (int rank = 0; rank < program.nranks; ++rank) arenas.push_back(initialArena(program.seed, rank));
  std::vector<std::vector<Bytes>> result;
  for (const Step& step : program.steps) {
    for (const Operation& operation : step.operations)
      apply(operation, program.members[static_cast<std::size_t>(operation.comm)], arenas);
    result.push_back(step.is_checked ? arenas : std::vector<Bytes>{});
  }
  return result;
}

void takePart(const RandomProgram& program, const std::vector<std::vector<Bytes>>& expected, int rank,
              const std::vector<ncclUniqueId>& ids, const std::function<void()>& meet) {
  takeDevice(rank);
  Player player(program, rank, ids);
  std::string since;  // the steps that nobody has looked at
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    since += "\n  step " + std::to_string(i) + ": " + step.text();
    try {
      player.step(step);
      if (step.kind == Step::Kind::destroy) meet();
      if (!step.is_checked) continue;
      player.compare(expected[i][static_cast<std::size_t>(rank)]);
      since.clear();
    } catch (const std::exception& error) {
      player.abort();
      throw std::runtime_error(std::string(error.what()) + ", after" + since);
    }
  }
  player.end();
}

}  // namespace conformance
