#include "tools/cuda_emulator/ptx/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "tools/cuda_emulator/ptx/operands.h"
#include "tools/cuda_emulator/ptx/scanner.h"

namespace tutti::emulator::ptx {
namespace {

constexpr std::array<std::pair<std::string_view, Space>, 6> kSpaces{{{".reg", Space::Register},
                                                                     {".param", Space::Parameter},
                                                                     {".local", Space::Local},
                                                                     {".shared", Space::Shared},
                                                                     {".global", Space::Global},
                                                                     {".const", Space::Constant}}};

std::optional<Space> spaceOf(std::string_view directive) {
  for (const auto& [name, space] : kSpaces) {
    if (name == directive) return space;
  }
  return std::nullopt;
}

/// ".reg.b16", which is the same as ".reg .b16": the space, and the rest; or nothing.
std::optional<std::pair<Space, std::string_view>> splitSpace(std::string_view directive) {
  const auto dot = directive.find('.', 1);
  const auto space = spaceOf(directive.substr(0, dot));
  if (!space) return std::nullopt;
  return std::pair(*space, dot == std::string_view::npos ? std::string_view() : directive.substr(dot));
}

std::size_t unsignedNumber(Scanner& scanner) { return static_cast<std::size_t>(parseNumber(scanner).bits); }

/// symbol + 4, generic(symbol), generic(symbol) + 4
Initialiser parseSymbol(Scanner& scanner) {
  Initialiser word;
  const bool generic = scanner.takeWord("generic");
  if (generic) scanner.expect('(');
  const Operand symbol = parseOperand(scanner);
  if (symbol.kind != Operand::Kind::Name) scanner.fail("an initialiser of this kind is not known");
  if (generic) scanner.expect(')');
  word.symbol = symbol.name;
  word.addend = symbol.offset;
  if (scanner.take('+')) word.addend += static_cast<std::int64_t>(parseNumber(scanner).bits);
  return word;
}

Initialiser parseInitialiserWord(Scanner& scanner) {
  if (std::isdigit(static_cast<unsigned char>(scanner.peek())) == 0 && scanner.peek() != '-') {
    return parseSymbol(scanner);
  }
  const Operand number = parseNumber(scanner);
  if (!scanner.take('(')) {
    Initialiser word;
    word.bits = number.bits;
    return word;
  }
  Initialiser word = parseSymbol(scanner);  // 0xFF00(symbol): one byte of the address
  word.mask = number.bits;
  scanner.expect(')');
  return word;
}

void parseInitialisers(Scanner& scanner, std::vector<Initialiser>& words) {
  if (!scanner.take('{')) {
    words.push_back(parseInitialiserWord(scanner));
    return;
  }
  while (!scanner.take('}')) {
    if (scanner.peek() == '{') {
      parseInitialisers(scanner, words);
    } else {
      words.push_back(parseInitialiserWord(scanner));
    }
    if (scanner.peek() != '}') scanner.expect(',');
  }
}

void parseDimensions(Scanner& scanner, Variable& variable) {
  while (scanner.take('[')) {
    variable.array = true;
    variable.count *= scanner.peek() == ']' ? 0 : unsignedNumber(scanner);
    scanner.expect(']');
  }
}

/// The directives between a variable's space and its name: .align 8 .b8, .v2 .f32, .attribute(.managed).
/// `type`: what of them was taken with the space.
Variable parseVariableType(Scanner& scanner, Space space, std::string_view type = {}) {
  Variable variable;
  variable.space = space;
  while (!type.empty() || scanner.peek() == '.') {
    const std::string_view directive = type.empty() ? scanner.word(true) : type;
    type = {};
    if (directive == ".align") {
      variable.align = unsignedNumber(scanner);
    } else if (directive == ".ptr" || spaceOf(directive)) {
      continue;  // a note about where a pointer parameter points
    } else if (directive == ".attribute") {
      scanner.skipPast(')');
    } else if (directive == ".v2" || directive == ".v4") {
      variable.count = directive == ".v2" ? 2 : 4;
    } else if (const std::size_t bytes = bytesOfType(directive.substr(1)); bytes != 0) {
      variable.type = directive.substr(1);
      variable.element_bytes = bytes;
    } else {
      scanner.fail(fmt::format("no type {} of a variable is known", directive));
    }
  }
  if (variable.type.empty()) scanner.fail("a type expected");
  variable.align = std::max(variable.align, variable.element_bytes);
  return variable;
}

Variable parseVariable(Scanner& scanner, Space space) {
  Variable variable = parseVariableType(scanner, space);
  variable.name = scanner.word();
  parseDimensions(scanner, variable);
  return variable;
}

/// After the space: variables of one type up to the semicolon.
std::vector<Variable> parseVariables(Scanner& scanner, Space space, bool external,
                                     std::string_view type = {}) {
  std::vector<Variable> variables;
  const Variable common = parseVariableType(scanner, space, type);
  do {
    Variable variable = common;
    variable.external = external;
    variable.name = scanner.word();
    if (scanner.take('<')) {
      variable.numbered = unsignedNumber(scanner);
      scanner.expect('>');
    }
    parseDimensions(scanner, variable);
    if (scanner.take('=')) parseInitialisers(scanner, variable.initialisers);
    variables.push_back(std::move(variable));
  } while (scanner.take(','));
  scanner.expect(';');
  return variables;
}

std::vector<Variable> parseParameters(Scanner& scanner) {
  std::vector<Variable> parameters;
  if (!scanner.take('(')) return parameters;
  while (!scanner.take(')')) {
    const auto space = spaceOf(scanner.word(true));
    if (!space) scanner.fail("a parameter expected");
    parameters.push_back(parseVariable(scanner, *space));
    if (scanner.peek() != ')') scanner.expect(',');
  }
  return parameters;
}

/// .maxntid 256, 1, 1 and its kind, between the parameters and the body.
void parseTuning(Scanner& scanner, Function& function) {
  while (scanner.peek() == '.') {
    const std::string_view directive = scanner.word(true);
    if (directive == ".noreturn" || directive == ".blocksareclusters") continue;
    if (directive == ".pragma" || directive == ".abi_preserve" || directive == ".unique") {
      scanner.skipPast(';');
      continue;
    }
    std::size_t product = 1;
    do {
      product *= unsignedNumber(scanner);
    } while (scanner.take(','));
    if (directive == ".maxntid" || directive == ".reqntid")
      function.max_threads = static_cast<std::uint32_t>(product);
  }
}

/// The shared variables that a body declares, found without parsing its instructions.
void findShared(Function& function) {
  constexpr std::string_view kDirective = ".shared";
  for (std::size_t at = function.body.find(kDirective); at != std::string_view::npos;
       at = function.body.find(kDirective, at + 1)) {
    const std::string_view rest = function.body.substr(at + kDirective.size());
    if (rest.empty() || (rest[0] != ' ' && rest[0] != '\t')) continue;
    Scanner scanner(rest, function.body_line);
    for (const Variable& variable : parseVariables(scanner, Space::Shared, false))
      function.shared.push_back(variable);
  }
}

Function parseFunction(Scanner& scanner, bool entry) {
  Function function;
  function.entry = entry;
  if (!entry) function.results = parseParameters(scanner);
  function.name = scanner.word();
  function.parameters = parseParameters(scanner);
  parseTuning(scanner, function);
  if (scanner.take(';')) return function;
  scanner.expect('{');
  function.body_line = scanner.line();
  function.body = scanner.restOfBraces();
  findShared(function);
  return function;
}

Prototype parsePrototype(Scanner& scanner) {
  Prototype prototype;
  prototype.results = parseParameters(scanner).size();
  scanner.word();
  prototype.parameters = parseParameters(scanner).size();
  scanner.skipPast(';');
  return prototype;
}

std::vector<std::string_view> parseTargets(Scanner& scanner) {
  std::vector<std::string_view> targets;
  do {
    targets.push_back(scanner.word());
  } while (scanner.take(','));
  scanner.expect(';');
  return targets;
}

/// opcode[.modifier...], after the predicate.
void splitOpcode(std::string_view word, Instruction& instruction) {
  const auto part = [&] {
    std::size_t end = word.find('.');
    // "L1::no_allocate" is one modifier.
    const std::string_view first = word.substr(0, end);
    word.remove_prefix(end == std::string_view::npos ? word.size() : end + 1);
    return first;
  };
  instruction.opcode = part();
  while (!word.empty()) instruction.modifiers.push_back(part());
}

Instruction parseInstruction(Scanner& scanner, std::string_view opcode, std::size_t begin) {
  Instruction instruction;
  instruction.line = scanner.line();
  splitOpcode(opcode, instruction);
  while (scanner.peek() != ';' && !scanner.atEnd()) {
    instruction.operands.push_back(parseOperand(scanner));
    if (!scanner.take(',') && scanner.peek() != ';') {
      // "call (result), name, (parameters)" always has commas; what else follows is not known.
      scanner.fail("a comma or semicolon expected");
    }
  }
  instruction.text = scanner.since(begin);
  scanner.expect(';');
  return instruction;
}

Statement parseStatement(Scanner& scanner);

std::vector<Statement> parseStatements(Scanner& scanner) {
  std::vector<Statement> statements;
  while (!scanner.atEnd() && scanner.peek() != '}') {
    if (scanner.take(';')) continue;
    Statement statement = parseStatement(scanner);
    const bool empty = statement.kind == Statement::Kind::Variables && statement.variables.empty();
    if (!empty) statements.push_back(std::move(statement));
  }
  return statements;
}

/// A directive inside a body; those that only inform leave no variables.
Statement parseDirective(Scanner& scanner) {
  Statement statement;
  statement.kind = Statement::Kind::Variables;
  const int line = scanner.line();
  const std::string_view directive = scanner.word(true);
  if (const auto known = splitSpace(directive)) {
    statement.variables = parseVariables(scanner, known->first, false, known->second);
  } else if (directive == ".loc" || directive == ".file") {
    // Up to the end of the line, and nothing ends it but the line.
    while (!scanner.atEnd() && scanner.line() == line) {
      if (scanner.word(true).empty() && !scanner.take(scanner.peek())) break;
    }
  } else if (directive == ".pragma") {
    scanner.skipPast(';');
  } else {
    scanner.fail(fmt::format("no directive {} is known", directive));
  }
  return statement;
}

Statement parseLabelled(Scanner& scanner, std::string_view label) {
  Statement statement;
  statement.label = label;
  if (scanner.takeWord(".branchtargets")) {
    statement.kind = Statement::Kind::BranchTargets;
    statement.targets = parseTargets(scanner);
  } else if (scanner.takeWord(".callprototype")) {
    statement.kind = Statement::Kind::Prototype;
    statement.prototype = parsePrototype(scanner);
  } else {
    statement.kind = Statement::Kind::Label;
  }
  return statement;
}

Statement parseStatement(Scanner& scanner) {
  Statement statement;
  if (scanner.take('{')) {
    statement.kind = Statement::Kind::Block;
    statement.block = parseStatements(scanner);
    scanner.expect('}');
    return statement;
  }
  if (scanner.peek() == '.') return parseDirective(scanner);
  const std::size_t begin = scanner.position();
  std::string_view predicate;
  bool negated = false;
  if (scanner.take('@')) {
    negated = scanner.take('!');
    predicate = scanner.word();
  }
  const std::string_view word = scanner.word(true);
  if (word.empty()) scanner.fail("an instruction expected");
  if (scanner.take(':')) return parseLabelled(scanner, word);
  statement.instruction = parseInstruction(scanner, word, begin);
  statement.instruction.predicate = predicate;
  statement.instruction.predicate_negated = negated;
  return statement;
}

void parseDeclaration(Scanner& scanner, Outline& outline) {
  bool external = false;
  while (true) {
    const std::string_view directive = scanner.word(true);
    if (directive == ".extern") {
      external = true;
    } else if (directive == ".entry" || directive == ".func") {
      if (scanner.takeWord(".attribute")) scanner.skipPast(')');
      outline.functions.push_back(parseFunction(scanner, directive == ".entry"));
      return;
    } else if (const auto space = spaceOf(directive)) {
      for (Variable& variable : parseVariables(scanner, *space, external))
        outline.variables.push_back(variable);
      return;
    } else if (directive != ".visible" && directive != ".weak" && directive != ".common") {
      scanner.fail(fmt::format("no directive '{}' is known", directive));
    }
  }
}

void skipLine(Scanner& scanner) {
  const int line = scanner.line();
  while (!scanner.atEnd() && scanner.line() == line) {
    if (scanner.word(true).empty()) scanner.take(scanner.peek());
  }
}

}  // namespace

std::size_t bytesOfType(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::size_t>, 20> kTypes{
      {{"b8", 1},    {"b16", 2}, {"b32", 4}, {"b64", 8},  {"b128", 16},  {"u8", 1},  {"u16", 2},
       {"u32", 4},   {"u64", 8}, {"s8", 1},  {"s16", 2},  {"s32", 4},    {"s64", 8}, {"f16", 2},
       {"f16x2", 4}, {"f32", 4}, {"f64", 8}, {"bf16", 2}, {"bf16x2", 4}, {"pred", 1}}};
  const auto* found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& known) { return known.first == type; });
  return found == kTypes.end() ? 0 : found->second;
}

Outline parseOutline(std::string_view text) {
  Outline outline;
  Scanner scanner(text.substr(0, text.find('\0')));
  while (!scanner.atEnd()) {
    if (scanner.takeWord(".version") || scanner.takeWord(".target") || scanner.takeWord(".address_size") ||
        scanner.takeWord(".file") || scanner.takeWord(".loc")) {
      skipLine(scanner);
    } else if (scanner.takeWord(".section")) {
      scanner.skipPast('{');
      scanner.restOfBraces();
    } else if (scanner.takeWord(".alias") || scanner.takeWord(".pragma")) {
      scanner.skipPast(';');
    } else {
      parseDeclaration(scanner, outline);
    }
  }
  return outline;
}

std::vector<Statement> parseBody(const Function& function) {
  Scanner scanner(function.body, function.body_line);
  std::vector<Statement> statements = parseStatements(scanner);
  if (!scanner.atEnd()) scanner.fail("more closing braces than opening ones");
  return statements;
}

}  // namespace tutti::emulator::ptx
