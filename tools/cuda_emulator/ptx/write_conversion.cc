#include <fmt/format.h>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

/// mov r, {a, b, ...}: the first in the low bits.
void writePack(InstructionWriter& w, int bits) {
  const std::vector<Operand>& parts = w.operands()[1].elements;
  const int part = bits / static_cast<int>(parts.size());
  std::string sum;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum += fmt::format("{}u{}({}) << {}", i == 0 ? "(" : ") | (", bits,
                       w.value(parts[i], fmt::format("b{}", part)), static_cast<int>(i) * part);
  }
  w.out(0, fmt::format("u{}({}))", bits, sum));
}

void writeUnpack(InstructionWriter& w, int bits) {
  const std::vector<Operand>& parts = w.operands()[0].elements;
  const int part = bits / static_cast<int>(parts.size());
  w.line("{");
  w.line(fmt::format("const u{} whole = {};", bits, w.in(1, fmt::format("b{}", bits))));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    w.assign(parts[i], fmt::format("u{}(whole >> {})", part, static_cast<int>(i) * part));
  }
  w.line("}");
}

void writeMov(InstructionWriter& w) {
  w.expectOperands(2, 2);
  const std::string_view type = w.takeType();
  if (w.operands()[1].kind == Operand::Kind::Vector) return writePack(w, bitsOfType(type));
  if (w.operands()[0].kind == Operand::Kind::Vector) return writeUnpack(w, bitsOfType(type));
  w.out(0, w.in(1, type));
}

std::string_view takeFp8(InstructionWriter& w) { return w.takeOneOf({"e4m3x2", "e5m2x2"}); }

/// Types that are two values of 8 or 16 bits, to or from each other or packed from two floats.
void writePairConversion(InstructionWriter& w, std::string_view to, std::string_view from, unsigned mode) {
  const std::string_view to_half = to.substr(0, to.size() - 2);
  if (from == "f32") {
    w.expectOperands(3, 3);
    return w.out(0, fmt::format("packFloats<{}, {}>({}, {})", to_half, mode, w.in(1, "f32"), w.in(2, "f32")));
  }
  if (!from.ends_with("x2")) w.fail("a conversion of this kind is not known");
  w.expectOperands(2, 2);
  w.out(0, fmt::format("convertPair<{}, {}, {}>({})", to_half, from.substr(0, from.size() - 2), mode,
                       w.in(1, from)));
}

/// The types of a conversion, in the order in which they are written.
std::pair<std::string_view, std::string_view> takeConversionTypes(InstructionWriter& w) {
  const auto first_fp8 = takeFp8(w);
  if (first_fp8.empty()) {
    const std::string_view to = w.takeType();
    return {to, w.takeType()};
  }
  // Which of the two comes first: the operands tell, since only a narrow result has the satfinite modifier.
  const std::string_view other = w.takeType();
  return {first_fp8, other};
}

void writeCvt(InstructionWriter& w) {
  const bool pack = w.take("pack");
  if (pack) w.fail("packed integer conversions are not known");
  const std::string_view integral = w.takeOneOf({"rni", "rzi", "rmi", "rpi"});
  unsigned mode = w.takeMode();
  if (integral == "rzi") mode |= 1;
  if (integral == "rmi") mode |= 2;
  if (integral == "rpi") mode |= 3;
  auto [to, from] = takeConversionTypes(w);
  // cvt.rn.f16x2.e4m3x2 widens and never saturates, cvt.rn.satfinite.e4m3x2.f16x2 narrows and always does.
  const bool fp8 = to == "e4m3x2" || to == "e5m2x2";
  if (fp8 && (mode & 128) == 0) std::swap(to, from);
  if (to.ends_with("x2")) return writePairConversion(w, to, from, mode);
  w.expectOperands(2, 2);
  const bool to_integral = !integral.empty() && isFloatType(to) && isFloatType(from);
  w.out(0, fmt::format("convert<{}, {}, {}, {}>({})", cppType(to), cppType(from), mode, to_integral,
                       w.in(1, from)));
}

/// The shared window starts at the block's shared memory; every other window is the host's address space.
void writeCvta(InstructionWriter& w) {
  w.expectOperands(2, 2);
  const bool to_window = w.take("to");
  const bool shared = !w.takeOneOf({"shared", "shared::cta", "shared::cluster"}).empty();
  if (!shared && w.takeOneOf({"global", "local", "const", "param", "param::entry"}).empty())
    w.fail("a space expected");
  const std::string_view type = w.takeType();
  const std::string address = w.in(1, type);
  if (!shared) return w.out(0, address);
  w.out(0, fmt::format("{} {} u64(t.shared)", address, to_window ? "-" : "+"));
}

void writeIsspacep(InstructionWriter& w) {
  w.expectOperands(2, 2);
  const std::string_view space =
      w.takeOneOf({"shared", "shared::cta", "shared::cluster", "global", "local", "const", "param"});
  if (space.empty()) w.fail("a space expected");
  const std::string shared = fmt::format("({} - u64(t.shared) < t.shared_bytes)", w.in(1, "u64"));
  if (space.starts_with("shared")) return w.out(0, shared);
  // Local, constant and global memory are one here; what asks wants to know global.
  w.out(0, space == "global" ? "!" + shared : "false");
}

}  // namespace

const WriterTable& conversionWriters() {
  static const WriterTable table{
      {"mov", writeMov}, {"cvt", writeCvt}, {"cvta", writeCvta}, {"isspacep", writeIsspacep}};
  return table;
}

}  // namespace tutti::emulator::ptx
