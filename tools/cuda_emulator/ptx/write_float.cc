#include <fmt/format.h>

#include <map>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

/// function<type, ...>(operands 1 to n), for both halves where the type is a pair.
void writeCall(InstructionWriter& w, std::string_view type, const std::string& function,
               const std::string& arguments, std::size_t operands) {
  w.expectOperands(operands + 1, operands + 1);
  std::string values;
  for (std::size_t i = 1; i <= operands; ++i) values += (i == 1 ? "" : ", ") + w.in(i, type);
  const std::string_view half = halfOfPair(type);
  if (half.empty()) return w.out(0, fmt::format("{}<{}{}>({})", function, type, arguments, values));
  w.out(0, fmt::format("paired<{}<{}{}>>({})", function, half, arguments, values));
}

struct Arithmetic {
  std::string function;
  std::size_t operands;
};

/// min and max take two operands, or three.
void writeExtreme(InstructionWriter& w, std::string_view type, unsigned mode) {
  if (w.count() != 3) w.fail("three operands of a float minimum or maximum are not known");
  writeCall(w, type, "extremeFloat", fmt::format(", {}, {}", mode, w.opcode() == "max"), 2);
}

}  // namespace

void writeFloatArithmetic(InstructionWriter& w, std::string_view type) {
  static const std::map<std::string_view, Arithmetic> known{
      {"add", {"addFloat", 2}}, {"sub", {"subFloat", 2}}, {"mul", {"mulFloat", 2}},
      {"fma", {"fmaFloat", 3}}, {"mad", {"fmaFloat", 3}}, {"div", {"divFloat", 2}}};
  // The host's division is exact where the hardware may approximate.
  if (w.opcode() == "div") w.takeOneOf({"approx", "full"});
  if (w.opcode() == "neg" || w.opcode() == "abs") {
    const int mode = w.take("ftz") ? 8 : 0;
    return writeCall(w, type, w.opcode() == "neg" ? "negFloat" : "absFloat", fmt::format(", {}", mode), 1);
  }
  const unsigned mode = w.takeMode();
  if (w.opcode() == "min" || w.opcode() == "max") return writeExtreme(w, type, mode);
  const auto found = known.find(w.opcode());
  if (found == known.end()) w.fail("not known for floats");
  writeCall(w, type, found->second.function, fmt::format(", {}", mode), found->second.operands);
}

namespace {

void writeFma(InstructionWriter& w) {
  w.take("noftz");
  writeFloatArithmetic(w, w.takeType());
}

void writeRoot(InstructionWriter& w) {
  const bool root = w.opcode() == "sqrt";
  w.take("approx");
  const unsigned mode = w.takeMode();
  const std::string_view type = w.takeType();
  writeCall(w, type, root ? "sqrtFloat" : "rcpFloat", fmt::format(", {}", mode), 1);
}

void writeApproximate(InstructionWriter& w) {
  static const std::map<std::string_view, std::string_view> known{
      {"ex2", "Exp2"}, {"lg2", "Log2"}, {"sin", "Sin"}, {"cos", "Cos"}, {"tanh", "Tanh"}, {"rsqrt", "Rsqrt"}};
  w.take("approx");
  const unsigned mode = w.takeMode();
  writeCall(w, w.takeType(), "approximate", fmt::format(", {}, Function::{}", mode, known.at(w.opcode())), 1);
}

void writeCopySign(InstructionWriter& w) { writeCall(w, w.takeType(), "copySign", "", 2); }

void writeTest(InstructionWriter& w) {
  static const std::map<std::string_view, int> known{{"finite", 0},     {"infinite", 1}, {"number", 2},
                                                     {"notanumber", 3}, {"normal", 4},   {"subnormal", 5}};
  w.expectOperands(2, 2);
  for (const auto& [what, number] : known) {
    if (!w.take(what)) continue;
    const std::string_view type = w.takeType();
    return w.out(0, fmt::format("testFloat<{}>({}, {})", type, w.in(1, type), number));
  }
  w.fail("a test of this kind is not known");
}

}  // namespace

const WriterTable& floatWriters() {
  static const WriterTable table{
      {"fma", writeFma},           {"sqrt", writeRoot},        {"rcp", writeRoot},
      {"ex2", writeApproximate},   {"lg2", writeApproximate},  {"sin", writeApproximate},
      {"cos", writeApproximate},   {"tanh", writeApproximate}, {"rsqrt", writeApproximate},
      {"copysign", writeCopySign}, {"testp", writeTest}};
  return table;
}

}  // namespace tutti::emulator::ptx
