#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "tests/nccl_conformance/random_program.h"

namespace conformance {
namespace {

class Drawing {
 public:
  Drawing(std::uint64_t seed, int nranks, bool splits) : splits_(splits), random_(seed) {
    program_ = {.seed = seed, .nranks = nranks};
    std::vector<int> all(static_cast<std::size_t>(nranks));
    std::iota(all.begin(), all.end(), 0);
    program_.members.push_back(all);
    alive_.push_back(0);
  }

  RandomProgram program() {
    const auto steps = 5 + below(25);
    for (std::size_t i = 0; i < steps; ++i) drawStep();
    program_.steps.back().is_checked = true;
    return std::move(program_);
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  int rankBelow(int limit) { return static_cast<int>(below(static_cast<std::size_t>(limit))); }

  void drawStep() {
    const auto what = below(20);
    if (what == 0) return splits_ && below(2) == 0 ? split() : join();
    if (what == 1 && alive_.size() > 1) return destroy();
    Step step{.is_checked = below(4) == 0};
    used_ = 0;
    const auto count = what < 10 ? 1 : 1 + below(8);
    for (std::size_t i = 0; i < count; ++i) drawOperation(step);
    if (step.operations.empty()) return;
    const Operation& first = step.operations.front();
    const bool needs_group = step.operations.size() > 1 || (first.is_transfer && first.from == first.to);
    step.depth = needs_group ? 1 + rankBelow(3) : rankBelow(2);
    program_.steps.push_back(std::move(step));
  }

  void drawOperation(Step& step) {
    Operation operation{
        .comm = alive_[below(alive_.size())], .is_transfer = below(2) == 0, .seed = random_()};
    const int nranks = size(operation.comm);
    Call& call = operation.call;
    call.type = &kTypes[below(ncclNumTypes)];
    if (operation.is_transfer) {
      operation.from = rankBelow(nranks);
      operation.to = rankBelow(nranks);
    } else {
      call.collective = static_cast<Collective>(below(static_cast<std::size_t>(Collective::scatter) + 1));
      if (call.reduces()) call.op = rankBelow(kPreMulSum + 1);
      const bool rounds = call.type->isFloat() && (nranks & (nranks - 1)) != 0;
      if (call.op == ncclAvg && rounds) call.op = ncclSum;
      if (call.hasRoot()) call.root = rankBelow(nranks);
      call.in_place = call.collective != Collective::all_to_all && below(3) == 0;
      if (call.collective == Collective::bcast) call.in_place = true;
    }
    if (place(operation)) step.operations.push_back(operation);
  }

  /// Finds room for it; draws its size. The largest block of any rank is what it takes.
  bool place(Operation& operation) {
    Call& call = operation.call;
    const std::size_t bytes = call.type->bytes;
    used_ = (used_ + bytes - 1) / bytes * bytes;
    const auto nranks = static_cast<std::size_t>(size(operation.comm));
    const std::size_t blocks = operation.is_transfer ? 1 : nranks;
    const std::size_t room = (kArenaBytes - used_) / 2 / blocks / bytes;
    if (room < 2) return false;
    call.count = below(std::min(room, std::size_t{1} << below(13)) + 1);
    operation.input = used_;
    used_ += blocks * call.count * bytes;
    operation.output = call.in_place ? operation.input : used_;
    if (!call.in_place) used_ += blocks * call.count * bytes;
    return true;
  }

  int size(int comm) const {
    return static_cast<int>(program_.members[static_cast<std::size_t>(comm)].size());
  }

  int add(std::vector<int> members) {
    program_.members.push_back(std::move(members));
    const int comm = static_cast<int>(program_.members.size()) - 1;
    alive_.push_back(comm);
    return comm;
  }

  void split() {
    Step step{.kind = Step::Kind::split, .comm = alive_[below(alive_.size())]};
    const auto parent = program_.members[static_cast<std::size_t>(step.comm)];
    const int colours = 1 + rankBelow(3);
    std::map<int, std::vector<std::size_t>> parts;
    for (std::size_t i = 0; i < parent.size(); ++i) {
      step.colours.push_back(below(6) == 0 ? NCCL_SPLIT_NOCOLOR : rankBelow(colours));
      step.keys.push_back(rankBelow(5) - 2);
      if (step.colours.back() >= 0) parts[step.colours.back()].push_back(i);
    }
    step.children.assign(static_cast<std::size_t>(colours), -1);
    for (auto& [colour, part] : parts) {
      std::ranges::stable_sort(part, {}, [&](std::size_t i) { return step.keys[i]; });
      std::vector<int> members;
      for (const std::size_t i : part) members.push_back(parent[i]);
      step.children[static_cast<std::size_t>(colour)] = add(members);
    }
    program_.steps.push_back(std::move(step));
  }

  /// Some ranks, in any order.
  void join() {
    auto members = program_.members[0];
    std::ranges::shuffle(members, random_);
    members.resize(1 + below(members.size()));
    program_.steps.push_back({.kind = Step::Kind::join, .comm = add(members)});
  }

  void destroy() {
    const auto which = 1 + below(alive_.size() - 1);
    program_.steps.push_back({.kind = Step::Kind::destroy, .comm = alive_[which]});
    alive_.erase(alive_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  bool splits_;
  std::mt19937_64 random_;
  RandomProgram program_;
  std::vector<int> alive_;  ///< communicators that are not destroyed
  std::size_t used_ = 0;    ///< of the arenas, by the step
};

}  // namespace

std::string Operation::text() const {
  const std::string on = " on communicator " + std::to_string(comm);
  if (!is_transfer) return call.text() + on;
  return "transfer " + std::to_string(from) + " to " + std::to_string(to) + " " + call.type->name + " x" +
         std::to_string(call.count) + on;
}

std::string Step::text() const {
  const std::string on = " communicator " + std::to_string(comm);
  if (kind == Kind::split) return "split" + on;
  if (kind == Kind::join) return "join" + on;
  if (kind == Kind::destroy) return "destroy" + on;
  std::string result = depth == 0 ? "" : "group of depth " + std::to_string(depth) + ": ";
  for (const Operation& operation : operations) {
    result += operation.text();
    if (&operation != &operations.back()) result += "; ";
  }
  return result;
}

RandomProgram drawProgram(std::uint64_t seed, int nranks, bool splits) {
  return Drawing(seed, nranks, splits).program();
}

Bytes initialArena(std::uint64_t seed, int rank) {
  std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(rank));
  Bytes result(kArenaBytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random());
  return result;
}

}  // namespace conformance
