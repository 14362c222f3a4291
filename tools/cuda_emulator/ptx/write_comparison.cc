#include <fmt/format.h>

#include <map>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

std::string_view takeComparison(InstructionWriter& w) {
  static const std::map<std::string_view, std::string_view> known{
      {"eq", "Eq"},   {"ne", "Ne"},   {"lt", "Lt"},   {"le", "Le"},   {"gt", "Gt"},   {"ge", "Ge"},
      {"lo", "Lt"},   {"ls", "Le"},   {"hi", "Gt"},   {"hs", "Ge"},   {"equ", "Equ"}, {"neu", "Neu"},
      {"ltu", "Ltu"}, {"leu", "Leu"}, {"gtu", "Gtu"}, {"geu", "Geu"}, {"num", "Num"}, {"nan", "Nan"}};
  for (const auto& [modifier, name] : known) {
    if (w.take(modifier)) return name;
  }
  w.fail("a comparison expected");
}

/// a compared with b; a half of a pair when `shift` is given.
std::string compared(InstructionWriter& w, std::string_view comparison, std::string_view type, bool ftz,
                     const char* shift = "") {
  const std::string a = w.in(1, type);
  const std::string b = w.in(2, type);
  if (!isFloatType(type)) return fmt::format("compareValues<Compare::{}>({}, {})", comparison, a, b);
  const std::string_view half = halfOfPair(type);
  return fmt::format("compareFloat<Compare::{0}, {1}, {2}>(Bits<{1}>({3}{5}), Bits<{1}>({4}{5}))", comparison,
                     half.empty() ? type : half, ftz ? 8 : 0, a, b, shift);
}

std::string combined(InstructionWriter& w, std::string_view with, const std::string& result) {
  if (with.empty()) return result;
  w.expectOperands(4, 4);
  const char* sign = with == "and" ? "&" : with == "or" ? "|" : "^";
  return fmt::format("bool({} {} {})", result, sign, w.in(3, "pred"));
}

void writeSetp(InstructionWriter& w) {
  w.expectOperands(3, 4);
  const std::string_view comparison = takeComparison(w);
  const std::string_view with = w.takeOneOf({"and", "or", "xor"});
  const bool ftz = w.take("ftz");
  const std::string_view type = w.takeType();
  const Operand& result = w.operands()[0];
  const std::string first = compared(w, comparison, type, ftz);
  if (result.kind != Operand::Kind::Either) return w.assign(result, combined(w, with, first));
  const bool pair = !halfOfPair(type).empty();
  w.line("{");
  w.line(fmt::format("const bool one = {};", combined(w, with, first)));
  w.line(fmt::format("const bool other = {};",
                     combined(w, with, pair ? compared(w, comparison, type, ftz, " >> 16") : "!" + first)));
  w.assign(result.elements[0], "one");
  w.assign(result.elements[1], "other");
  w.line("}");
}

/// What "true" is in the result's type.
std::string truth(std::string_view type) {
  static const std::map<std::string_view, std::string> known{{"f32", "0x3f800000u"},
                                                             {"f16", "0x3c00u"},
                                                             {"bf16", "0x3f80u"},
                                                             {"f16x2", "0x3c00u"},
                                                             {"bf16x2", "0x3f80u"}};
  const auto found = known.find(type);
  return found == known.end() ? "~0u" : found->second;
}

void writeSet(InstructionWriter& w) {
  w.expectOperands(3, 4);
  const std::string_view comparison = takeComparison(w);
  const std::string_view with = w.takeOneOf({"and", "or", "xor"});
  const bool ftz = w.take("ftz");
  const std::string_view to = w.takeType();
  const std::string_view from = w.takeType();
  const std::string value = truth(to);
  const std::string low = combined(w, with, compared(w, comparison, from, ftz));
  if (halfOfPair(from).empty()) return w.out(0, fmt::format("{}({} ? {} : 0u)", storageType(to), low, value));
  const std::string high = combined(w, with, compared(w, comparison, from, ftz, " >> 16"));
  w.out(0, fmt::format("(({0} ? {2} & 0xffff : 0u) | ({1} ? {2} << 16 : 0u))", low, high, value));
}

void writeSelp(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const std::string_view type = w.takeType();
  w.out(0, fmt::format("{} ? {} : {}", w.in(3, "pred"), w.in(1, type), w.in(2, type)));
}

/// slct: by the sign of the third operand.
void writeSlct(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const bool ftz = w.take("ftz");
  const std::string_view type = w.takeType();
  const std::string_view by = w.takeType();
  const std::string condition = by == "f32" ? fmt::format("flush<{}>({}) >= 0", ftz ? 8 : 0, w.in(3, by))
                                            : fmt::format("{} >= 0", w.in(3, "s32"));
  w.out(0, fmt::format("{} ? {} : {}", condition, w.in(1, type), w.in(2, type)));
}

}  // namespace

const WriterTable& comparisonWriters() {
  static const WriterTable table{
      {"setp", writeSetp}, {"set", writeSet}, {"selp", writeSelp}, {"slct", writeSlct}};
  return table;
}

}  // namespace tutti::emulator::ptx
