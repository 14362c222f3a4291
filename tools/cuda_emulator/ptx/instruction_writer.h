// One instruction on its way from PTX to C++: its modifiers are taken one by one, its operands become
// expressions. A modifier that nobody took, or an operand of another kind than expected, fails the
// translation.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cuda_emulator/ptx/function_scope.h"
#include "tools/cuda_emulator/ptx/syntax.h"

namespace tutti::emulator::ptx {

class InstructionWriter {
 public:
  InstructionWriter(const Instruction& instruction, const FunctionScope& scope, bool entry)
      : instruction_(instruction), scope_(scope), entry_(entry), modifiers_(instruction.modifiers) {}

  std::string_view opcode() const { return instruction_.opcode; }
  const FunctionScope& scope() const { return scope_; }
  /// In a kernel, not in a device function.
  bool inEntry() const { return entry_; }
  const std::vector<Operand>& operands() const { return instruction_.operands; }
  std::size_t count() const { return instruction_.operands.size(); }
  /// Throws when there are fewer or more operands.
  void expectOperands(std::size_t least, std::size_t most);

  bool take(std::string_view modifier);
  std::string_view takeOneOf(std::initializer_list<std::string_view> modifiers);
  /// The next modifier that is a type; fails when there is none.
  std::string_view takeType();
  std::optional<std::string_view> takeTypeIfAny();
  /// Rounding, .ftz, .sat, .relu, .NaN, .satfinite as the number of a Mode.
  unsigned takeMode();
  bool modifiersLeft() const { return !modifiers_.empty(); }

  /// Operand i read as `type`; a float type gives its bits.
  std::string in(std::size_t i, std::string_view type) const { return value(operands().at(i), type); }
  std::string value(const Operand& operand, std::string_view type) const;
  /// Operand i = expression.
  void out(std::size_t i, const std::string& expression) { assign(operands().at(i), expression); }
  void assign(const Operand& operand, const std::string& expression);
  /// The host's address that operand i means, in `space` ("" generic, "shared", ...).
  std::string address(std::size_t i, std::string_view space) const;
  void line(const std::string& statement) { text_ += statement + '\n'; }

  /// The statements; fails when modifiers are left.
  std::string finish();
  [[noreturn]] void fail(const std::string& why) const;

 private:
  std::string immediate(const Operand& operand, std::string_view type) const;

  const Instruction& instruction_;
  const FunctionScope& scope_;
  bool entry_;
  std::vector<std::string_view> modifiers_;
  std::string text_;
};

/// How the opcode is written; nullptr when it is not known.
using Write = void (*)(InstructionWriter&);
Write writerOf(std::string_view opcode);

}  // namespace tutti::emulator::ptx
