#include <fmt/format.h>

#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {
namespace {

struct Atomic {
  std::string_view space;
  std::string_view order;
  std::string_view operation;
  std::string_view type;
  std::size_t address = 1;   // which operand; 0 for red
  std::size_t elements = 1;  // more than one: as many operations, each atomic by itself

  std::size_t value() const { return address + 1; }
};

Atomic takeAtomic(InstructionWriter& w) {
  Atomic atomic;
  atomic.address = w.opcode() == "atom" ? 1 : 0;
  atomic.order = takeOrder(w);
  if (atomic.order.empty()) atomic.order = "__ATOMIC_RELAXED";
  if (!w.takeOneOf({"shared", "shared::cta", "shared::cluster"}).empty()) atomic.space = "shared";
  w.take("global");
  atomic.operation = w.takeOneOf({"add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec"});
  if (atomic.operation.empty()) w.fail("an operation expected");
  w.take("noftz");
  takeHints(w);
  const std::string_view vector = w.takeOneOf({"v2", "v4", "v8"});
  if (!vector.empty()) atomic.elements = static_cast<std::size_t>(vector[1] - '0');
  atomic.type = w.takeType();
  if (atomic.type == "b128") w.fail("an atomic operation on 128 bits is not known");
  const std::size_t operands = atomic.value() + (atomic.operation == "cas" ? 2 : 1);
  w.expectOperands(operands, operands + 1);
  return atomic;
}

/// The new value in terms of `old` and `with`, on a float type.
std::string floatUpdate(InstructionWriter& w, const Atomic& atomic) {
  const bool add = atomic.operation == "add";
  if (!add && atomic.operation != "min" && atomic.operation != "max") w.fail("not known for floats");
  const std::string_view half = halfOfPair(atomic.type);
  const std::string function = add ? fmt::format("addFloat<{}, 0>", half.empty() ? atomic.type : half)
                                   : fmt::format("extremeFloat<{}, 0, {}>", half.empty() ? atomic.type : half,
                                                 atomic.operation == "max");
  return half.empty() ? fmt::format("{}(old, with)", function)
                      : fmt::format("paired<{}>(old, with)", function);
}

std::string integerUpdate(const Atomic& atomic) {
  const std::string type = cppType(atomic.type);
  if (atomic.operation == "min" || atomic.operation == "max") {
    return fmt::format("{}Integer<{}>(old, with)", atomic.operation, type);
  }
  if (atomic.operation == "inc") return "(old >= with ? 0 : old + 1)";
  if (atomic.operation == "dec") return "(old == 0 || old > with ? with : old - 1)";
  return fmt::format("old {} with", atomic.operation == "and" ? "&" : atomic.operation == "or" ? "|" : "^");
}

/// The expression that performs it with `with` and gives the old value.
std::string performed(InstructionWriter& w, const Atomic& atomic, const std::string& address,
                      const Operand& with) {
  const bool floating = isFloatType(atomic.type);
  const std::string unsigned_type = storageType(atomic.type);
  const std::string value = w.value(with, floating ? atomic.type : unsigned_type);
  if (atomic.operation == "exch") {
    return fmt::format("atomicExchange<{}, {}>(t, {}, {})", unsigned_type, atomic.order, address, value);
  }
  if (atomic.operation == "cas") {
    return fmt::format("atomicCas<{}, {}>(t, {}, {}, {})", unsigned_type, atomic.order, address, value,
                       w.in(atomic.value() + 1, unsigned_type));
  }
  if (atomic.operation == "add" && !floating) {
    return fmt::format("atomicAdd<{}, {}>(t, {}, {})", unsigned_type, atomic.order, address, value);
  }
  const std::string type = floating ? unsigned_type : cppType(atomic.type);
  return fmt::format("update<{0}, {1}>(t, {2}, [with = {0}({3})]({0} old) {{ return {0}({4}); }})", type,
                     atomic.order, address, value, floating ? floatUpdate(w, atomic) : integerUpdate(atomic));
}

/// One operation per element. The results go to registers when all are done: they may be the address's or a
/// value's.
void writeVector(InstructionWriter& w, const Atomic& atomic, const std::string& address) {
  const std::vector<Operand>& with = w.operands()[atomic.value()].elements;
  const bool results = atomic.address == 1;
  const bool as_many =
      with.size() == atomic.elements && (!results || w.operands()[0].elements.size() == with.size());
  if (!as_many || atomic.operation == "cas") w.fail("a vector of this kind is not known");
  const int bytes = bitsOfType(atomic.type) / 8;
  w.line(fmt::format("{{\nconst u64 vector = {};\ncheckAccess<{}>(t, vector);", address,
                     bytes * static_cast<int>(atomic.elements)));
  for (std::size_t i = 0; i < with.size(); ++i) {
    w.line(fmt::format(
        "const auto old{} = {};", i,
        performed(w, atomic, fmt::format("vector + {}", i * static_cast<std::size_t>(bytes)), with[i])));
  }
  for (std::size_t i = 0; results && i < with.size(); ++i)
    w.assign(w.operands()[0].elements[i], fmt::format("old{}", i));
  w.line("}");
}

void writeAtomic(InstructionWriter& w) {
  const Atomic atomic = takeAtomic(w);
  const std::string address = w.address(atomic.address, atomic.space);
  if (atomic.elements > 1) return writeVector(w, atomic, address);
  const std::string expression = performed(w, atomic, address, w.operands()[atomic.value()]);
  if (atomic.address == 0) return w.line(fmt::format("(void){};", expression));
  w.out(0, expression);
}

}  // namespace

const WriterTable& atomicWriters() {
  static const WriterTable table{{"atom", writeAtomic}, {"red", writeAtomic}};
  return table;
}

}  // namespace tutti::emulator::ptx
