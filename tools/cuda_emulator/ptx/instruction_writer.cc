#include "tools/cuda_emulator/ptx/instruction_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/cuda_emulator/ptx/names.h"
#include "tutti/error.h"

namespace tutti::emulator::ptx {

void InstructionWriter::fail(const std::string& why) const { throw Error(ncclInternalError, why); }

void InstructionWriter::expectOperands(std::size_t least, std::size_t most) {
  if (count() < least || count() > most) fail(fmt::format("{} operands are not known", count()));
}

bool InstructionWriter::take(std::string_view modifier) {
  const auto found = std::find(modifiers_.begin(), modifiers_.end(), modifier);
  if (found == modifiers_.end()) return false;
  modifiers_.erase(found);
  return true;
}

std::string_view InstructionWriter::takeOneOf(std::initializer_list<std::string_view> modifiers) {
  for (const std::string_view modifier : modifiers) {
    if (take(modifier)) return modifier;
  }
  return {};
}

std::optional<std::string_view> InstructionWriter::takeTypeIfAny() {
  const auto found = std::find_if(modifiers_.begin(), modifiers_.end(),
                                  [](std::string_view modifier) { return bitsOfType(modifier) != 0; });
  if (found == modifiers_.end()) return std::nullopt;
  const std::string_view type = *found;
  modifiers_.erase(found);
  return type;
}

std::string_view InstructionWriter::takeType() {
  const auto type = takeTypeIfAny();
  if (!type) fail("a type expected");
  return *type;
}

unsigned InstructionWriter::takeMode() {
  constexpr std::array<std::pair<std::string_view, unsigned>, 9> kModes{{{"rz", 1},
                                                                         {"rm", 2},
                                                                         {"rp", 3},
                                                                         {"rna", 4},
                                                                         {"ftz", 8},
                                                                         {"sat", 16},
                                                                         {"relu", 32},
                                                                         {"NaN", 64},
                                                                         {"satfinite", 128}}};
  unsigned mode = 0;
  take("rn");
  for (const auto& [name, bits] : kModes) {
    if (take(name)) mode |= bits;
  }
  return mode;
}

std::string InstructionWriter::immediate(const Operand& operand, std::string_view type) const {
  std::uint64_t bits = operand.bits;
  if (operand.kind == Operand::Kind::Float && operand.float_bits == 64 && bitsOfType(type) == 32) {
    bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(__builtin_bit_cast(double, bits)));
  }
  const std::string cast = isFloatType(type) ? storageType(type) : cppType(type);
  return fmt::format("{}({:#x}ull)", cast, bits);
}

std::string InstructionWriter::value(const Operand& operand, std::string_view type) const {
  if (operand.kind == Operand::Kind::Integer || operand.kind == Operand::Kind::Float)
    return immediate(operand, type);
  if (operand.kind != Operand::Kind::Name) fail("an operand of this kind is not known here");
  const std::string cast = isFloatType(type) || type.ends_with("x2") ? storageType(type) : cppType(type);
  const char* negation = operand.negated ? "!" : "";
  if (scope_.isRegister(operand.name))
    return fmt::format("{}({}{})", cast, negation, registerName(operand.name));
  if (const auto special = specialRegister(operand.name)) return fmt::format("{}({})", cast, *special);
  if (const auto address = scope_.address(operand.name)) {
    return fmt::format("{}({} + {}ll)", cast, *address, operand.offset);
  }
  if (operand.name.starts_with("%envreg")) fail("grid-wide synchronisation is not known");
  fail(fmt::format("{} is not declared", operand.name));
}

void InstructionWriter::assign(const Operand& operand, const std::string& expression) {
  if (operand.kind == Operand::Kind::Sink) {
    line(fmt::format("(void)({});", expression));
  } else if (operand.kind == Operand::Kind::Name && scope_.isRegister(operand.name)) {
    line(fmt::format("{} = {};", registerName(operand.name), expression));
  } else {
    fail("a register expected as destination");
  }
}

std::string InstructionWriter::address(std::size_t i, std::string_view space) const {
  const Operand& operand = operands().at(i);
  if (operand.kind != Operand::Kind::Address) fail("an address expected");
  std::string base;
  if (operand.name.empty()) {
    base = "0";
  } else if (scope_.isRegister(operand.name)) {
    base = fmt::format("u64({})", registerName(operand.name));
  } else if (const auto address = scope_.address(operand.name)) {
    base = *address;
  } else {
    fail(fmt::format("{} is not declared", operand.name));
  }
  if (space == "shared") base = "u64(t.shared) + " + base;
  return operand.offset == 0 ? base : fmt::format("{} + {}ll", base, operand.offset);
}

std::string InstructionWriter::finish() {
  if (!modifiers_.empty()) fail(fmt::format("the modifier .{} is not known", modifiers_.front()));
  return std::move(text_);
}

}  // namespace tutti::emulator::ptx
