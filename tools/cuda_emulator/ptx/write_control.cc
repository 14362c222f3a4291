#include <fmt/format.h>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

void writeBra(InstructionWriter& w) {
  w.expectOperands(1, 1);
  w.take("uni");
  const auto label = w.scope().label(w.operands()[0].name);
  if (!label) w.fail("the label is not declared");
  w.line(fmt::format("goto {};", *label));
}

/// brx.idx: a switch over the table's labels.
void writeBrx(InstructionWriter& w) {
  w.expectOperands(2, 2);
  w.take("uni");
  if (!w.take("idx")) w.fail("only .idx is known");
  const auto* targets = w.scope().branchTargets(w.operands()[1].name);
  if (targets == nullptr) w.fail("the table of targets is not declared");
  w.line(fmt::format("switch ({}) {{", w.in(0, "u32")));
  for (std::size_t i = 0; i < targets->size(); ++i) {
    const auto label = w.scope().label((*targets)[i]);
    if (!label) w.fail("a label of the table is not declared");
    w.line(fmt::format("case {}: goto {};", i, *label));
  }
  w.line("default: t.machine->trap(t, \"brx.idx beyond its table\");\n}");
}

std::vector<std::string> memoryNames(InstructionWriter& w, const Operand& group) {
  std::vector<std::string> names;
  if (group.kind != Operand::Kind::Group) w.fail("a list of parameters expected");
  for (const Operand& element : group.elements) {
    if (!w.scope().isMemory(element.name)) w.fail("only parameters in memory are known");
    names.push_back(memoryName(element.name));
  }
  return names;
}

/// The type of a pointer to a function with that many results and parameters.
std::string pointerType(std::size_t count) {
  std::string type = "void (*)(Thread&";
  for (std::size_t i = 0; i < count; ++i) type += ", u8*";
  return type + ")";
}

/// call (result), function, (parameters), prototype: every result and parameter is passed by address.
void writeCall(InstructionWriter& w) {
  w.expectOperands(1, 4);
  w.take("uni");
  const bool has_result = w.operands()[0].kind == Operand::Kind::Group;
  const std::size_t callee = has_result ? 1 : 0;
  std::vector<std::string> arguments;
  if (has_result) arguments = memoryNames(w, w.operands()[0]);
  if (w.count() > callee + 1) {
    for (std::string& name : memoryNames(w, w.operands()[callee + 1])) arguments.push_back(std::move(name));
  }
  std::string list = "t";
  for (const std::string& name : arguments) list += ", " + name;
  const std::string_view name = w.operands()[callee].name;
  if (w.scope().isRegister(name)) {
    return w.line(fmt::format("reinterpret_cast<{}>({})({});", pointerType(arguments.size()),
                              w.in(callee, "u64"), list));
  }
  if (w.scope().function(name) == nullptr) w.fail(fmt::format("{} is not declared", name));
  w.line(fmt::format("{}({});", functionName(name), list));
}

void writeRet(InstructionWriter& w) {
  w.expectOperands(0, 0);
  w.take("uni");
  w.line("return;");
}

void writeExit(InstructionWriter& w) {
  w.expectOperands(0, 0);
  w.line(w.inEntry() ? "return;" : "t.machine->exit(t);");
}

void writeTrap(InstructionWriter& w) {
  w.expectOperands(0, 0);
  w.line(fmt::format(R"(t.machine->trap(t, "{}");)", w.opcode()));
}

void writeNothing(InstructionWriter& w) { w.expectOperands(0, 1); }

}  // namespace

const WriterTable& controlWriters() {
  static const WriterTable table{{"bra", writeBra},    {"brx", writeBrx},        {"call", writeCall},
                                 {"ret", writeRet},    {"exit", writeExit},      {"trap", writeTrap},
                                 {"brkpt", writeTrap}, {"pmevent", writeNothing}};
  return table;
}

}  // namespace tutti::emulator::ptx
