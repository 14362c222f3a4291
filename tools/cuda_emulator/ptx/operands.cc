#include "tools/cuda_emulator/ptx/operands.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>

namespace tutti::emulator::ptx {
namespace {

bool parseHexFloat(std::string_view digits, Operand& number) {
  if (digits.size() < 3 || digits[0] != '0') return false;
  const char kind = digits[1];
  if (kind != 'f' && kind != 'F' && kind != 'd' && kind != 'D') return false;
  number.kind = Operand::Kind::Float;
  number.float_bits = kind == 'f' || kind == 'F' ? 32 : 64;
  const char* const end = digits.data() + digits.size();
  return std::from_chars(digits.data() + 2, end, number.bits, 16).ptr == end;
}

bool parseInteger(std::string_view digits, std::uint64_t& bits) {
  if (digits.ends_with('U')) digits.remove_suffix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.starts_with("0b") || digits.starts_with("0B")) {
    base = 2;
    digits.remove_prefix(2);
  } else if (digits.size() > 1 && digits[0] == '0') {
    base = 8;
  }
  const char* const end = digits.data() + digits.size();
  return !digits.empty() && std::from_chars(digits.data(), end, bits, base).ptr == end;
}

/// "1.5e3": rare, but PTX allows it.
bool parseDecimalFloat(Scanner& scanner, std::string_view whole, Operand& number) {
  if (!scanner.touches(whole) || !scanner.take('.')) return false;
  const std::string text = std::string(whole) + "." + std::string(scanner.word());
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  number.kind = Operand::Kind::Float;
  number.float_bits = 64;
  number.bits = __builtin_bit_cast(std::uint64_t, value);
  return *end == '\0';
}

Operand parseList(Scanner& scanner, Operand::Kind kind, char close) {
  Operand list;
  list.kind = kind;
  while (!scanner.take(close)) {
    list.elements.push_back(parseOperand(scanner));
    if (scanner.peek() != close) scanner.expect(',');
  }
  return list;
}

std::int64_t parseOffset(Scanner& scanner) {
  std::int64_t offset = 0;
  while (scanner.peek() == '+' || scanner.peek() == '-') {
    const bool minus = !scanner.take('+') && scanner.take('-');
    const auto step = static_cast<std::int64_t>(parseNumber(scanner).bits);
    offset += minus ? -step : step;
  }
  return offset;
}

Operand parseAddress(Scanner& scanner) {
  Operand address;
  address.kind = Operand::Kind::Address;
  if (std::isdigit(static_cast<unsigned char>(scanner.peek()))) {
    address.offset = static_cast<std::int64_t>(parseNumber(scanner).bits);
  } else {
    address.name = scanner.word();
    if (address.name.empty()) scanner.fail("an address expected");
    address.offset = parseOffset(scanner);
  }
  scanner.expect(']');
  return address;
}

Operand parseName(Scanner& scanner) {
  Operand name;
  name.negated = scanner.take('!');
  name.name = scanner.word(true);
  if (name.name.empty()) scanner.fail("an operand expected");
  name.kind = name.name == "_" ? Operand::Kind::Sink : Operand::Kind::Name;
  name.offset = parseOffset(scanner);
  return name;
}

}  // namespace

Operand parseNumber(Scanner& scanner) {
  Operand number;
  number.kind = Operand::Kind::Integer;
  const bool minus = scanner.take('-');
  const std::string_view digits = scanner.word();
  if (!parseHexFloat(digits, number) && !parseDecimalFloat(scanner, digits, number) &&
      !parseInteger(digits, number.bits)) {
    scanner.fail("a number expected");
  }
  if (minus) {
    const bool integer = number.kind == Operand::Kind::Integer;
    number.bits = integer ? 0 - number.bits : number.bits ^ (std::uint64_t{1} << (number.float_bits - 1));
  }
  return number;
}

Operand parseOperand(Scanner& scanner) {
  if (scanner.take('{')) return parseList(scanner, Operand::Kind::Vector, '}');
  if (scanner.take('(')) return parseList(scanner, Operand::Kind::Group, ')');
  if (scanner.take('[')) return parseAddress(scanner);
  const char next = scanner.peek();
  if (next == '-' || std::isdigit(static_cast<unsigned char>(next))) return parseNumber(scanner);
  Operand operand = parseName(scanner);
  if (!scanner.take('|')) return operand;
  Operand either;
  either.kind = Operand::Kind::Either;
  either.elements = {operand, parseName(scanner)};
  return either;
}

}  // namespace tutti::emulator::ptx
