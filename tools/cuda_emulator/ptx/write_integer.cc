#include <fmt/format.h>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

bool isSigned(std::string_view type) { return type.starts_with('s'); }

/// The unsigned type of the same width: arithmetic that wraps.
std::string wrapping(std::string_view type) { return storageType(type); }

/// u16x2 or s16x2, which takeType does not know: both halves apart.
std::string_view takePairOfIntegers(InstructionWriter& w) { return w.takeOneOf({"u16x2", "s16x2"}); }

std::string halves(std::string_view function, std::string_view pair, const std::string& a,
                   const std::string& b) {
  return fmt::format("eachHalf([&](u32 shift) {{ return u16({0}({1}({2} >> shift), {1}({3} >> shift))); }})",
                     function, pair.substr(0, 3), a, b);
}

/// add, sub: integers with carry and saturation; floats elsewhere.
void writeAddSub(InstructionWriter& w) {
  w.expectOperands(3, 3);
  const bool add = w.opcode().starts_with("add");
  if (const std::string_view pair = takePairOfIntegers(w); !pair.empty()) {
    return w.out(0, halves(add ? "wrapAdd" : "wrapSub", pair, w.in(1, "b32"), w.in(2, "b32")));
  }
  const bool write_carry = w.take("cc");
  const std::string_view type = w.takeType();
  if (isFloatType(type)) return writeFloatArithmetic(w, type);
  const std::string u = wrapping(type);
  const bool read_carry = w.opcode() == "addc" || w.opcode() == "subc";
  if (read_carry || write_carry) {
    return w.out(0,
                 fmt::format("{}<{}>({}({}), {}({}), {}, carry, {})", add ? "addCarry" : "subBorrow", u, u,
                             w.in(1, type), u, w.in(2, type), read_carry ? "carry" : "false", write_carry));
  }
  if (w.take("sat")) {
    return w.out(
        0, fmt::format("{}({}, {})", add ? "addSaturating" : "subSaturating", w.in(1, type), w.in(2, type)));
  }
  w.out(0, fmt::format("{}({} {} {})", u, w.in(1, u), add ? '+' : '-', w.in(2, u)));
}

std::string product(InstructionWriter& w, std::string_view part, std::string_view type) {
  const std::string u = wrapping(type);
  if (part == "lo") {
    return fmt::format("{}({}({}) * {}({}))", u, u == "u16" ? "u32" : u, w.in(1, type),
                       u == "u16" ? "u32" : u, w.in(2, type));
  }
  return fmt::format("{}<{}>({}, {})", part == "hi" ? "mulHigh" : "mulWide", cppType(type), w.in(1, type),
                     w.in(2, type));
}

void writeMul(InstructionWriter& w) {
  w.expectOperands(3, 3);
  const std::string_view part = w.takeOneOf({"lo", "hi", "wide"});
  const std::string_view type = w.takeType();
  if (isFloatType(type)) return writeFloatArithmetic(w, type);
  if (part.empty()) w.fail(".lo, .hi or .wide expected");
  w.out(0, product(w, part, type));
}

void writeMad(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const std::string_view part = w.takeOneOf({"lo", "hi", "wide"});
  const bool write_carry = w.take("cc");
  const std::string_view type = w.takeType();
  if (isFloatType(type)) return writeFloatArithmetic(w, type);
  if (part.empty()) w.fail(".lo, .hi or .wide expected");
  const bool read_carry = w.opcode() == "madc";
  if (part == "wide") {
    const std::string wide = fmt::format("u{}", 2 * bitsOfType(type));
    return w.out(0, fmt::format("{}({}) + {}", wide, product(w, part, type), w.in(3, wide)));
  }
  const std::string u = wrapping(type);
  if (read_carry || write_carry) {
    return w.out(0, fmt::format("addCarry<{}>({}({}), {}, {}, carry, {})", u, u, product(w, part, type),
                                w.in(3, u), read_carry ? "carry" : "false", write_carry));
  }
  w.out(0, fmt::format("{}({}({}) + {})", u, u, product(w, part, type), w.in(3, u)));
}

/// mul24 and mad24: of the low 24 bits.
void write24(InstructionWriter& w) {
  const std::string_view part = w.takeOneOf({"lo", "hi"});
  const std::string_view type = w.takeType();
  if (part.empty() || bitsOfType(type) != 32) w.fail(".lo or .hi of 32 bits expected");
  const auto low = [&](std::size_t i) {
    return isSigned(type) ? fmt::format("(s64(s32({} << 8)) >> 8)", w.in(i, "u32"))
                          : fmt::format("(u64({}) & 0xffffff)", w.in(i, "u32"));
  };
  const std::string product = fmt::format("u32(({} * {}) >> {})", low(1), low(2), part == "lo" ? 0 : 16);
  const bool sum = w.opcode() == "mad24";
  w.expectOperands(sum ? 4 : 3, sum ? 4 : 3);
  w.out(0, sum ? fmt::format("{} + {}", product, w.in(3, "u32")) : product);
}

void writeDivRem(InstructionWriter& w) {
  w.expectOperands(3, 3);
  const bool divide = w.opcode() == "div";
  const std::string_view type = w.takeType();
  if (isFloatType(type)) return writeFloatArithmetic(w, type);
  w.out(0, fmt::format("{}<{}>({}, {})", divide ? "divide" : "remainder", cppType(type), w.in(1, type),
                       w.in(2, type)));
}

void writeMinMax(InstructionWriter& w) {
  const std::string function = w.opcode() == "min" ? "minInteger" : "maxInteger";
  if (const std::string_view pair = takePairOfIntegers(w); !pair.empty()) {
    w.expectOperands(3, 3);
    const std::string both = halves(function, pair, w.in(1, "b32"), w.in(2, "b32"));
    return w.out(0, w.take("relu") ? halves("maxInteger", pair, both, "0u") : both);
  }
  const std::string_view type = w.takeType();
  if (isFloatType(type)) return writeFloatArithmetic(w, type);
  w.expectOperands(3, 3);
  const bool relu = w.take("relu");
  const std::string extreme =
      fmt::format("{}<{}>({}, {})", function, cppType(type), w.in(1, type), w.in(2, type));
  w.out(0, relu ? fmt::format("maxInteger<{}>({}, 0)", cppType(type), extreme) : extreme);
}

void writeNegAbs(InstructionWriter& w) {
  w.expectOperands(2, 2);
  const std::string_view type = w.takeType();
  if (isFloatType(type)) return writeFloatArithmetic(w, type);
  if (w.opcode() == "neg")
    return w.out(0, fmt::format("{0}({0}(0) - {1})", wrapping(type), w.in(1, wrapping(type))));
  w.out(0, fmt::format("absInteger<{}>({})", cppType(type), w.in(1, type)));
}

void writeLogic(InstructionWriter& w) {
  w.expectOperands(3, 3);
  const std::string_view type = w.takeType();
  const char sign = w.opcode() == "and" ? '&' : w.opcode() == "or" ? '|' : '^';
  w.out(0, fmt::format("{} {} {}", w.in(1, type), sign, w.in(2, type)));
}

void writeNot(InstructionWriter& w) {
  w.expectOperands(2, 2);
  const std::string_view type = w.takeType();
  w.out(0, fmt::format("{}({}{})", cppType(type), type == "pred" ? '!' : '~', w.in(1, type)));
}

/// cnot: whether the operand is zero.
void writeCnot(InstructionWriter& w) {
  w.expectOperands(2, 2);
  w.out(0, fmt::format("({} == 0 ? 1 : 0)", w.in(1, w.takeType())));
}

void writeShift(InstructionWriter& w) {
  w.expectOperands(3, 3);
  const std::string_view type = w.takeType();
  const bool left = w.opcode() == "shl";
  const Operand& count = w.operands()[2];
  if (count.kind == Operand::Kind::Integer && count.bits < static_cast<unsigned>(bitsOfType(type))) {
    return w.out(0,
                 fmt::format("{}({} {} {})", cppType(type), w.in(1, type), left ? "<<" : ">>", count.bits));
  }
  w.out(0, fmt::format("{}<{}>({}, {})", left ? "shiftLeft" : "shiftRight", cppType(type), w.in(1, type),
                       w.in(2, "u32")));
}

void writeFunnel(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const std::string_view direction = w.takeOneOf({"l", "r"});
  const std::string_view mode = w.takeOneOf({"wrap", "clamp"});
  if (direction.empty() || mode.empty() || w.takeType() != "b32")
    w.fail("a funnel shift of this kind is not known");
  w.out(0, fmt::format("{}({}, {}, {}, {})", direction == "l" ? "funnelLeft" : "funnelRight", w.in(1, "b32"),
                       w.in(2, "b32"), w.in(3, "b32"), mode == "wrap"));
}

void writeLop3(InstructionWriter& w) {
  w.expectOperands(5, 5);
  if (w.takeType() != "b32") w.fail(".b32 expected");
  if (w.operands()[4].kind != Operand::Kind::Integer) w.fail("a table known at compile time expected");
  w.out(0, fmt::format("lop3<{}, u32>({}, {}, {})", w.operands()[4].bits & 0xff, w.in(1, "b32"),
                       w.in(2, "b32"), w.in(3, "b32")));
}

void writePrmt(InstructionWriter& w) {
  w.expectOperands(4, 4);
  w.takeType();
  const std::string operands = fmt::format("{}, {}, {}", w.in(1, "b32"), w.in(2, "b32"), w.in(3, "b32"));
  const std::pair<std::string_view, std::string_view> modes[] = {
      {"f4e", "Forward4"}, {"b4e", "Backward4"}, {"rc8", "Replicate8"},
      {"ecl", "EdgeLeft"}, {"ecr", "EdgeRight"}, {"rc16", "Replicate16"}};
  for (const auto& [modifier, mode] : modes) {
    if (w.take(modifier)) return w.out(0, fmt::format("permuteBy(Permute::{}, {})", mode, operands));
  }
  w.out(0, fmt::format("permute({})", operands));
}

void writeBfe(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const std::string_view type = w.takeType();
  w.out(0, fmt::format("extractBits<{}>({}, {}, {})", cppType(type), w.in(1, type), w.in(2, "u32"),
                       w.in(3, "u32")));
}

void writeBfi(InstructionWriter& w) {
  w.expectOperands(5, 5);
  const std::string_view type = w.takeType();
  w.out(0, fmt::format("insertBits<{}>({}, {}, {}, {})", cppType(type), w.in(1, type), w.in(2, type),
                       w.in(3, "u32"), w.in(4, "u32")));
}

void writeBfind(InstructionWriter& w) {
  w.expectOperands(2, 2);
  const bool shift = w.take("shiftamt");
  const std::string_view type = w.takeType();
  w.out(0, fmt::format("findBit<{}>({}, {})", cppType(type), w.in(1, type), shift));
}

void writeCount(InstructionWriter& w) {
  w.expectOperands(2, 2);
  const std::string_view type = w.takeType();
  const char* function = w.opcode() == "clz"    ? "leadingZeros"
                         : w.opcode() == "popc" ? "population"
                                                : "reverseBits";
  w.out(0, fmt::format("{}<{}>({})", function, cppType(type), w.in(1, type)));
}

/// bmsk: `length` ones from `position` on.
void writeBmsk(InstructionWriter& w) {
  w.expectOperands(3, 3);
  const bool wrap = w.takeOneOf({"clamp", "wrap"}) == "wrap";
  if (wrap || w.takeType() != "b32") w.fail("only .clamp.b32 is known");
  w.out(0, fmt::format("insertBits<u32>(~0u, 0, {0} > 255 ? 255 : {0}, {1} > 255 ? 255 : {1})",
                       w.in(1, "u32"), w.in(2, "u32")));
}

void writeSad(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const std::string_view type = w.takeType();
  w.out(0, fmt::format("sumOfDifferences<{}>({}, {}, {})", cppType(type), w.in(1, type), w.in(2, type),
                       w.in(3, type)));
}

void writeDp4a(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const std::string_view a = w.takeType();
  const std::string_view b = w.takeTypeIfAny().value_or(a);
  w.out(0, fmt::format("dotBytes<{}8, {}8>({}, {}, {})", a[0], b[0], w.in(1, "u32"), w.in(2, "u32"),
                       w.in(3, "u32")));
}

void writeDp2a(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const std::string_view part = w.takeOneOf({"lo", "hi"});
  const std::string_view a = w.takeType();
  const std::string_view b = w.takeTypeIfAny().value_or(a);
  if (part.empty()) w.fail(".lo or .hi expected");
  w.out(0, fmt::format("dotHalves<{}16, {}8>({}, {}, {}, {})", a[0], b[0], w.in(1, "u32"), w.in(2, "u32"),
                       w.in(3, "u32"), part == "lo" ? 0 : 16));
}

/// vabsdiff2 and vabsdiff4, the only ones of their kind that nvcc's functions come to.
void writeLaneDifferences(InstructionWriter& w) {
  w.expectOperands(4, 4);
  const bool sum = w.take("add");
  w.takeType();
  const std::string_view a = w.takeType();
  if (w.takeType() != a) w.fail("operands of different signs are not known");
  w.out(0, fmt::format("laneDifferences<{}{}>({}, {}, {}, {})", a[0], w.opcode().ends_with('4') ? 8 : 16,
                       w.in(1, "u32"), w.in(2, "u32"), w.in(3, "u32"), sum));
}

void writeFns(InstructionWriter& w) {
  w.expectOperands(4, 4);
  if (w.takeType() != "b32") w.fail(".b32 expected");
  w.out(0, fmt::format("findNthSet({}, {}, {})", w.in(1, "u32"), w.in(2, "u32"), w.in(3, "s32")));
}

}  // namespace

const WriterTable& integerWriters() {
  static const WriterTable table{{"add", writeAddSub},
                                 {"sub", writeAddSub},
                                 {"addc", writeAddSub},
                                 {"subc", writeAddSub},
                                 {"mul", writeMul},
                                 {"mad", writeMad},
                                 {"madc", writeMad},
                                 {"mul24", write24},
                                 {"mad24", write24},
                                 {"div", writeDivRem},
                                 {"rem", writeDivRem},
                                 {"min", writeMinMax},
                                 {"max", writeMinMax},
                                 {"neg", writeNegAbs},
                                 {"abs", writeNegAbs},
                                 {"and", writeLogic},
                                 {"or", writeLogic},
                                 {"xor", writeLogic},
                                 {"not", writeNot},
                                 {"cnot", writeCnot},
                                 {"shl", writeShift},
                                 {"shr", writeShift},
                                 {"shf", writeFunnel},
                                 {"lop3", writeLop3},
                                 {"prmt", writePrmt},
                                 {"bfe", writeBfe},
                                 {"bfi", writeBfi},
                                 {"bfind", writeBfind},
                                 {"clz", writeCount},
                                 {"popc", writeCount},
                                 {"brev", writeCount},
                                 {"bmsk", writeBmsk},
                                 {"sad", writeSad},
                                 {"dp4a", writeDp4a},
                                 {"dp2a", writeDp2a},
                                 {"fns", writeFns},
                                 {"vabsdiff2", writeLaneDifferences},
                                 {"vabsdiff4", writeLaneDifferences}};
  return table;
}

}  // namespace tutti::emulator::ptx
