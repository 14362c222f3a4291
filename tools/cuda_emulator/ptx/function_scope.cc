#include "tools/cuda_emulator/ptx/function_scope.h"

#include <fmt/format.h>

#include "tools/cuda_emulator/ptx/names.h"

namespace tutti::emulator::ptx {

FunctionScope::FunctionScope(const Outline& outline, const Layout& layout, const Function& function)
    : layout_(layout), function_(function) {
  for (const Function& other : outline.functions) {
    const Function*& known = functions_[other.name];
    if (known == nullptr || !other.body.empty()) known = &other;
  }
}

void FunctionScope::enter(const std::vector<Statement>& statements) {
  Block block;
  block.number = block_count_++;
  for (const Statement& statement : statements) {
    if (statement.kind == Statement::Kind::Label) {
      block.labels[statement.label] = fmt::format("L{}_{}", block.number, statement.label);
    } else if (!statement.label.empty()) {
      block.tables[statement.label] = &statement;
    }
  }
  blocks_.push_back(std::move(block));
}

void FunctionScope::declare(const Variable& variable) {
  blocks_.back().names[variable.name] = variable.space;
}

std::optional<Space> FunctionScope::spaceOf(std::string_view name) const {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const auto found = block->names.find(name);
    if (found != block->names.end()) return found->second;
  }
  return std::nullopt;
}

bool FunctionScope::isRegister(std::string_view name) const {
  if (spaceOf(name) == Space::Register) return true;
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;  // %r12 of %r<20>
  return digits < name.size() && spaceOf(name.substr(0, digits)) == Space::Register;
}

bool FunctionScope::isMemory(std::string_view name) const {
  const auto space = spaceOf(name);
  return space == Space::Parameter || space == Space::Local;
}

std::optional<std::string> FunctionScope::address(std::string_view name) const {
  if (isMemory(name)) return fmt::format("u64({})", memoryName(name));
  const auto own = layout_.entry_shared_offset.find(function_.name);
  if (own != layout_.entry_shared_offset.end() && own->second.contains(name)) {
    return fmt::format("{}u", own->second.at(name));
  }
  if (layout_.shared_offset.contains(name)) return fmt::format("{}u", layout_.shared_offset.at(name));
  if (layout_.dynamic_shared.contains(name)) return "t.dynamic_shared_offset";
  const auto variable = layout_.variable_index.find(name);
  if (variable != layout_.variable_index.end()) return fmt::format("u64(t.variables[{}])", variable->second);
  if (functions_.contains(name)) return fmt::format("u64(&{})", functionName(name));
  return std::nullopt;
}

std::optional<std::string> FunctionScope::label(std::string_view name) const {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const auto found = block->labels.find(name);
    if (found != block->labels.end()) return found->second;
  }
  return std::nullopt;
}

const Statement* FunctionScope::table(std::string_view name, Statement::Kind kind) const {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const auto found = block->tables.find(name);
    if (found != block->tables.end() && found->second->kind == kind) return found->second;
  }
  return nullptr;
}

const std::vector<std::string_view>* FunctionScope::branchTargets(std::string_view name) const {
  const Statement* found = table(name, Statement::Kind::BranchTargets);
  return found == nullptr ? nullptr : &found->targets;
}

const Prototype* FunctionScope::prototype(std::string_view name) const {
  const Statement* found = table(name, Statement::Kind::Prototype);
  return found == nullptr ? nullptr : &found->prototype;
}

const Function* FunctionScope::function(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

}  // namespace tutti::emulator::ptx
