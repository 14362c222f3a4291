#include "runtime/core/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

/// One part of the plan, for messages with the whole.
struct Item {
  std::string_view text;
  std::string_view plan;
};

[[noreturn]] void refuse(const Item& item, std::string_view expected) {
  tutti::refuse({.name = "TUTTI_FAULTS"}, item.plan,
                fmt::format("{} in place of \"{}\"; items are separated by ; such as "
                            "cut:at=12345;corrupt:every=100000;delay:ms=2;stall:at=10000,ms=500;seed=7",
                            expected, item.text));
}

/// What stands before the first `separator`, which is removed with it.
std::string_view cutOff(std::string_view* text, char separator) {
  const std::size_t at = text->find(separator);
  const std::string_view first = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view{} : text->substr(at + 1);
  return first;
}

std::uint64_t number(const Item& item, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) refuse(item, "a whole number after =");
  return value;
}

Fault::Kind kindOf(const Item& item, std::string_view name) {
  if (name == "cut") return Fault::Kind::cut;
  if (name == "corrupt") return Fault::Kind::corrupt;
  if (name == "delay") return Fault::Kind::delay;
  if (name == "stall") return Fault::Kind::stall;
  refuse(item, "cut, corrupt, delay, stall or seed");
}

Fault parseFault(const Item& item) {
  std::string_view rest = item.text;
  Fault fault;
  fault.kind = kindOf(item, cutOff(&rest, ':'));
  const bool is_delay = fault.kind == Fault::Kind::delay;
  while (!rest.empty()) {
    std::string_view value = cutOff(&rest, ',');
    const std::string_view key = cutOff(&value, '=');
    if (key == "at" && !is_delay) {
      fault.at = number(item, value);
    } else if (key == "every" && !is_delay) {
      fault.every = number(item, value);
    } else if (key == "ms" && (is_delay || fault.kind == Fault::Kind::stall)) {
      fault.time = std::chrono::milliseconds(std::min<std::uint64_t>(number(item, value), 86'400'000));
    } else {
      refuse(item, is_delay ? "ms=N" : "at=N or every=N, and ms=N for stall");
    }
  }
  if (is_delay && !fault.time) refuse(item, "ms=N");
  if (!is_delay && fault.at.has_value() == fault.every.has_value()) refuse(item, "either at=N or every=N");
  if (fault.every == 0) refuse(item, "every=N with N of at least 1");
  return fault;
}

}  // namespace

FaultPlan parseFaults(std::string_view text) {
  FaultPlan plan;
  for (std::string_view rest = text; !rest.empty();) {
    const Item item{cutOff(&rest, ';'), text};
    if (item.text.starts_with("seed=")) {
      plan.seed = number(item, item.text.substr(5));
    } else {
      plan.faults.push_back(parseFault(item));
    }
  }
  return plan;
}

}  // namespace tutti
