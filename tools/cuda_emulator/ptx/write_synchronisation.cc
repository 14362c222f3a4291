#include <fmt/format.h>

#include <map>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

std::string barrierCall(InstructionWriter& w, std::string_view operation, std::size_t id, bool count,
                        const std::string& predicate) {
  return fmt::format("t.machine->barrier(t, BarrierOp::{}, {}, {}, {})", operation, w.in(id, "u32"),
                     count ? w.in(id + 1, "u32") : "0", predicate);
}

/// bar.red: operands d, id[, count], predicate.
void writeBarrierReduction(InstructionWriter& w) {
  const std::string_view operation = w.takeOneOf({"and", "or", "popc"});
  if (operation.empty()) w.fail("a reduction expected");
  w.takeType();
  w.expectOperands(3, 4);
  const char* name = operation == "and" ? "ReduceAnd" : operation == "or" ? "ReduceOr" : "ReducePopulation";
  w.out(0, barrierCall(w, name, 1, w.count() == 4, w.in(w.count() - 1, "pred")));
}

/// The result and predicate of a warp operation into d, d|p or, for a vote, only a predicate.
void writeWarp(InstructionWriter& w, std::string_view operation, const std::string& mask,
               const std::string& operands, bool predicate_only = false) {
  const std::string call = fmt::format("t.machine->warp(t, WarpOp::{}, {}, {})", operation, mask, operands);
  const Operand& result = w.operands()[0];
  if (result.kind != Operand::Kind::Either)
    return w.out(0, call + (predicate_only ? ".predicate" : ".value"));
  w.line("{");
  w.line(fmt::format("const WarpResult together = {};", call));
  w.assign(result.elements[0], "together.value");
  w.assign(result.elements[1], "together.predicate");
  w.line("}");
}

void writeBarrier(InstructionWriter& w) {
  w.take("aligned");
  if (w.take("warp")) {
    w.expectOperands(1, 1);
    if (!w.take("sync")) w.fail(".sync expected");
    return w.line(fmt::format("t.machine->warp(t, WarpOp::Sync, {}, 0, 0, 0);", w.in(0, "u32")));
  }
  w.take("cta");
  if (w.take("red")) return writeBarrierReduction(w);
  const std::string_view operation = w.takeOneOf({"sync", "arrive"});
  if (operation.empty()) w.fail(".sync, .arrive or .red expected");
  w.expectOperands(1, 2);
  w.line(barrierCall(w, operation == "sync" ? "Sync" : "Arrive", 0, w.count() == 2, "false") + ";");
}

void writeShuffle(InstructionWriter& w) {
  static const std::map<std::string_view, std::string_view> known{
      {"up", "ShuffleUp"}, {"down", "ShuffleDown"}, {"bfly", "ShuffleXor"}, {"idx", "ShuffleIndex"}};
  if (!w.take("sync")) w.fail(".sync expected");
  w.expectOperands(5, 5);
  const std::string_view mode = w.takeOneOf({"up", "down", "bfly", "idx"});
  if (mode.empty() || w.takeType() != "b32") w.fail("a shuffle of this kind is not known");
  writeWarp(w, known.at(mode), w.in(4, "u32"),
            fmt::format("{}, {}, {}", w.in(1, "b32"), w.in(2, "b32"), w.in(3, "b32")));
}

void writeVote(InstructionWriter& w) {
  static const std::map<std::string_view, std::string_view> known{
      {"any", "VoteAny"}, {"all", "VoteAll"}, {"uni", "VoteUniform"}, {"ballot", "VoteBallot"}};
  if (!w.take("sync")) w.fail(".sync expected");
  w.expectOperands(3, 3);
  const std::string_view mode = w.takeOneOf({"any", "all", "uni", "ballot"});
  if (mode.empty()) w.fail("a vote of this kind is not known");
  w.takeType();
  writeWarp(w, known.at(mode), w.in(2, "u32"), w.in(1, "pred") + ", 0, 0", mode != "ballot");
}

void writeMatch(InstructionWriter& w) {
  if (!w.take("sync")) w.fail(".sync expected");
  w.expectOperands(3, 3);
  const std::string_view mode = w.takeOneOf({"any", "all"});
  const std::string_view type = w.takeType();
  writeWarp(w, mode == "any" ? "MatchAny" : "MatchAll", w.in(2, "u32"), w.in(1, type) + ", 0, 0");
}

void writeRedux(InstructionWriter& w) {
  if (!w.take("sync")) w.fail(".sync expected");
  w.expectOperands(3, 3);
  const std::string_view operation = w.takeOneOf({"add", "min", "max", "and", "or", "xor"});
  const std::string_view type = w.takeType();
  if (operation.empty() || isFloatType(type)) w.fail("a reduction of this kind is not known");
  std::string name = "Reduce" + std::string(1, static_cast<char>(operation[0] - 'a' + 'A'));
  name += operation.substr(1);
  if (type == "s32" && (operation == "min" || operation == "max")) name += "Signed";
  writeWarp(w, name, w.in(2, "u32"), w.in(1, "u32") + ", 0, 0");
}

void writeElect(InstructionWriter& w) {
  if (!w.take("sync")) w.fail(".sync expected");
  w.expectOperands(2, 2);
  writeWarp(w, "Elect", w.in(1, "u32"), "0, 0, 0");
}

/// Threads of a warp run one by one here, so that each is the only active one.
void writeActiveMask(InstructionWriter& w) {
  w.expectOperands(1, 1);
  w.takeType();
  w.out(0, "1u << t.lane");
}

void writeSleep(InstructionWriter& w) {
  w.expectOperands(1, 1);
  w.takeType();
  w.line(fmt::format("t.machine->sleep(t, {});", w.in(0, "u32")));
}

}  // namespace

const WriterTable& synchronisationWriters() {
  static const WriterTable table{
      {"bar", writeBarrier}, {"barrier", writeBarrier},       {"shfl", writeShuffle},
      {"vote", writeVote},   {"match", writeMatch},           {"redux", writeRedux},
      {"elect", writeElect}, {"activemask", writeActiveMask}, {"nanosleep", writeSleep}};
  return table;
}

}  // namespace tutti::emulator::ptx
