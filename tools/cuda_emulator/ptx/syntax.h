// What a PTX text says, as the parser hands it to the translator. Every string_view points into the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::emulator::ptx {

struct Operand {
  enum class Kind {
    Name,     // register, variable, function, label, special register; `negated` for !%p
    Integer,  // `bits`
    Float,    // `bits` of width `float_bits`
    Address,  // [name + offset] or [offset]
    Vector,   // {a, b, ...}
    Group,    // (a, b, ...)
    Either,   // a|b
    Sink,     // _
  };
  Kind kind = Kind::Sink;
  std::string_view name;
  bool negated = false;
  std::uint64_t bits = 0;
  int float_bits = 0;
  std::int64_t offset = 0;
  std::vector<Operand> elements;
};

struct Instruction {
  std::string_view text;
  int line = 0;
  std::string_view predicate;
  bool predicate_negated = false;
  std::string_view opcode;
  std::vector<std::string_view> modifiers;
  std::vector<Operand> operands;
};

enum class Space { Register, Parameter, Local, Shared, Global, Constant };

/// A word of an initialiser: a number, or the address of a symbol, of which `mask` keeps the bits of one byte
/// where bytes are initialised.
struct Initialiser {
  std::uint64_t bits = 0;
  std::string_view symbol;
  std::int64_t addend = 0;
  std::uint64_t mask = ~std::uint64_t{0};
};

struct Variable {
  Space space = Space::Register;
  std::string_view name;
  std::string_view type;  // "b32", "pred", ...
  std::size_t element_bytes = 0;
  std::size_t count = 1;  // 0: an extern array whose size the launch gives
  bool array = false;
  bool external = false;
  std::size_t align = 1;
  /// %r<5>: five registers, %r0 to %r4.
  std::size_t numbered = 0;
  std::vector<Initialiser> initialisers;

  std::size_t bytes() const { return element_bytes * count; }
};

struct Prototype {
  std::size_t results = 0;
  std::size_t parameters = 0;
};

struct Statement {
  enum class Kind { Instruction, Label, Variables, Block, BranchTargets, Prototype };
  Kind kind = Kind::Instruction;
  Instruction instruction;
  std::string_view label;  // of a label, of branch targets, of a prototype
  std::vector<Variable> variables;
  std::vector<Statement> block;
  std::vector<std::string_view> targets;
  Prototype prototype;
};

struct Function {
  std::string_view name;
  bool entry = false;
  std::vector<Variable> results;
  std::vector<Variable> parameters;
  /// Between its braces; empty for a declaration.
  std::string_view body;
  int body_line = 0;
  std::uint32_t max_threads = 0;
  std::vector<Variable> shared;  // declared in the body
};

/// Everything but the functions' statements.
struct Outline {
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

}  // namespace tutti::emulator::ptx
