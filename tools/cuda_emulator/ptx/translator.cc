#include "tools/cuda_emulator/ptx/translator.h"

#include <fmt/format.h>

#include <set>

#include "tools/cuda_emulator/ptx/function_scope.h"
#include "tools/cuda_emulator/ptx/instruction_writer.h"
#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/parser.h"
#include "tutti/error.h"

namespace tutti::emulator::ptx {
namespace {

/// Bytes of C++ in one translation unit: two are compiled at a time, and no function is ever cut.
constexpr std::size_t kUnitBytes = std::size_t{256} << 10;

/// Functions that CUDA provides, which machine/device/builtins.h defines.
const std::set<std::string_view> kBuiltins{"vprintf", "__assertfail", "malloc", "free"};

class FunctionWriter {
 public:
  FunctionWriter(const Outline& outline, const Layout& layout, const Function& function)
      : function_(function), scope_(outline, layout, function) {}

  std::string write();

 private:
  void writeParameters();
  void writeBlock(const std::vector<Statement>& statements);
  void writeStatement(const Statement& statement);
  void writeVariable(const Variable& variable);
  void writeInstruction(const Instruction& instruction);

  const Function& function_;
  FunctionScope scope_;
  std::string text_;
};

std::string signature(const Function& function) {
  if (function.entry) {
    return fmt::format(R"(extern "C" [[gnu::visibility("default")]] void {}(Thread& t, u8* arguments))",
                       entryName(function.name));
  }
  std::string text = fmt::format("void {}(Thread& t", functionName(function.name));
  for (const auto* variables : {&function.results, &function.parameters}) {
    for (const Variable& variable : *variables) text += ", u8* " + memoryName(variable.name);
  }
  return text + ")";
}

void FunctionWriter::writeParameters() {
  for (const auto* variables : {&function_.results, &function_.parameters}) {
    for (const Variable& variable : *variables) {
      if (variable.space != Space::Parameter) {
        throw Error(ncclInternalError,
                    fmt::format("{}: parameters in registers are not known", function_.name));
      }
      scope_.declare(variable);
    }
  }
  if (!function_.entry) return;
  std::size_t offset = 0;
  for (const Variable& parameter : function_.parameters) {
    offset = (offset + parameter.align - 1) / parameter.align * parameter.align;
    text_ += fmt::format("u8* const {} = arguments + {};\n", memoryName(parameter.name), offset);
    offset += parameter.bytes();
  }
}

std::string FunctionWriter::write() {
  const std::vector<Statement> statements = parseBody(function_);
  text_ = signature(function_) + " {\n[[maybe_unused]] bool carry = false;\n";
  scope_.enter({});
  writeParameters();
  writeBlock(statements);
  scope_.leave();
  text_ += "}\n";
  return std::move(text_);
}

void FunctionWriter::writeBlock(const std::vector<Statement>& statements) {
  text_ += "{\n";
  scope_.enter(statements);
  for (const Statement& statement : statements) writeStatement(statement);
  scope_.leave();
  text_ += "}\n";
}

void FunctionWriter::writeStatement(const Statement& statement) {
  switch (statement.kind) {
    case Statement::Kind::Instruction:
      return writeInstruction(statement.instruction);
    case Statement::Kind::Block:
      return writeBlock(statement.block);
    case Statement::Kind::Label:
      text_ += *scope_.label(statement.label) + ":;\n";
      return;
    case Statement::Kind::Variables:
      for (const Variable& variable : statement.variables) writeVariable(variable);
      return;
    case Statement::Kind::BranchTargets:
    case Statement::Kind::Prototype:
      return;  // known to the scope
  }
}

/// Registers and locals are not initialised: a jump may pass over them.
void FunctionWriter::writeVariable(const Variable& variable) {
  if (variable.space == Space::Shared) return;  // laid out with the module
  scope_.declare(variable);
  if (variable.space == Space::Register) {
    const std::string type = storageType(variable.type);
    if (variable.numbered == 0) text_ += fmt::format("{} {};\n", type, registerName(variable.name));
    for (std::size_t i = 0; i < variable.numbered; ++i) {
      text_ += fmt::format("{} {}{};\n", type, registerName(variable.name), i);
    }
  } else if (variable.space == Space::Parameter || variable.space == Space::Local) {
    text_ += fmt::format("alignas({}) u8 {}[{}];\n", variable.align, memoryName(variable.name),
                         variable.bytes() == 0 ? 1 : variable.bytes());
  } else {
    throw Error(ncclInternalError,
                fmt::format("{}: variable {} in a function", function_.name, variable.name));
  }
}

void FunctionWriter::writeInstruction(const Instruction& instruction) {
  const Write write = writerOf(instruction.opcode);
  try {
    if (write == nullptr) throw Error(ncclInternalError, "this instruction is not known");
    InstructionWriter writer(instruction, scope_, function_.entry);
    write(writer);
    const std::string statements = writer.finish();
    if (instruction.predicate.empty()) {
      text_ += statements;
    } else {
      text_ += fmt::format("if ({}{}) {{\n{}}}\n", instruction.predicate_negated ? "!" : "",
                           registerName(instruction.predicate), statements);
    }
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{} {}, PTX line {}: {}: {}", function_.entry ? "kernel" : "function",
                            readableName(function_.name), instruction.line, instruction.text, error.what()));
  }
}

/// Declarations of all device functions, for every translation unit.
std::string declarations(const Outline& outline) {
  std::string text;
  std::set<std::string_view> done;
  for (const Function& function : outline.functions) {
    if (function.entry || kBuiltins.contains(function.name) || !done.insert(function.name).second) continue;
    text += signature(function) + ";\n";
  }
  return text;
}

/// Constants with the addresses of functions that variables are initialised with: tables of virtual
/// functions.
std::string addresses(const Layout& layout) {
  std::set<std::string_view> names;
  for (const Variable* variable : layout.variables) {
    for (const Initialiser& word : variable->initialisers) {
      if (!word.symbol.empty() && !layout.variable_index.contains(word.symbol)) names.insert(word.symbol);
    }
  }
  std::string text;
  for (const std::string_view name : names) {
    text += fmt::format(
        "extern \"C\" [[gnu::visibility(\"default\")]] void* const {0};\nvoid* const {0} = (void*)&{1};\n",
        addressName(name), functionName(name));
  }
  return text;
}

}  // namespace

std::vector<std::string> translate(const Outline& outline, const Layout& layout) {
  constexpr std::string_view kBegin = "namespace tutti::emulator {\n";
  constexpr std::string_view kEnd = "}  // namespace tutti::emulator\n";
  const std::string declared = declarations(outline);
  std::vector<std::string> units(1);
  for (const Function& function : outline.functions) {
    if (function.body.empty()) continue;
    if (units.back().size() > kUnitBytes) units.emplace_back();
    units.back() += FunctionWriter(outline, layout, function).write();
  }
  units.back() += addresses(layout);
  for (std::string& unit : units) unit = fmt::format("{}{}{}{}", kBegin, declared, unit, kEnd);
  return units;
}

}  // namespace tutti::emulator::ptx
