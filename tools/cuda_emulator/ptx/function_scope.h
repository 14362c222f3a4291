// What a name means at one place of a function.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cuda_emulator/ptx/layout.h"
#include "tools/cuda_emulator/ptx/syntax.h"

namespace tutti::emulator::ptx {

/// The nested scopes of one function and the module around them.
class FunctionScope {
 public:
  FunctionScope(const Outline& outline, const Layout& layout, const Function& function);

  /// Enters a block: its labels are known from the start.
  void enter(const std::vector<Statement>& statements);
  void leave() { blocks_.pop_back(); }
  void declare(const Variable& variable);

  bool isRegister(std::string_view name) const;
  /// The address of a variable or function, as an expression: in its own window for shared ones.
  std::optional<std::string> address(std::string_view name) const;
  /// A parameter or local variable: one that C++ holds in an array or behind a pointer of that name.
  bool isMemory(std::string_view name) const;
  std::optional<std::string> label(std::string_view name) const;
  const std::vector<std::string_view>* branchTargets(std::string_view name) const;
  const Prototype* prototype(std::string_view name) const;
  const Function* function(std::string_view name) const;

 private:
  struct Block {
    int number = 0;
    std::map<std::string_view, Space> names;
    std::map<std::string_view, std::string> labels;
    std::map<std::string_view, const Statement*> tables;  // branch targets and prototypes
  };
  std::optional<Space> spaceOf(std::string_view name) const;
  const Statement* table(std::string_view name, Statement::Kind kind) const;

  const Layout& layout_;
  const Function& function_;
  std::map<std::string_view, const Function*> functions_;
  std::vector<Block> blocks_;
  int block_count_ = 0;
};

}  // namespace tutti::emulator::ptx
