#include "tools/cuda_emulator/runtime/injected_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tools/cuda_emulator/runtime/device.h"
#include "tools/cuda_emulator/runtime/error.h"

namespace tutti::emulator {
namespace {

[[noreturn]] void refuse(std::string_view item, std::string_view expected) {
  throw std::invalid_argument(
      fmt::format("TUTTI_EMULATED_FAULTS: \"{}\": expected {}. Items are separated by ; such as "
                  "fail:call=cudaMalloc,at=3,error=cudaErrorMemoryAllocation;break:at=50,device=1;slow:ms=20",
                  item, expected));
}

/// What stands before the first `separator`, which is removed with it.
std::string_view cutOff(std::string_view* text, char separator) {
  const std::size_t at = text->find(separator);
  const std::string_view first = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view{} : text->substr(at + 1);
  return first;
}

int number(std::string_view item, std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0)
    refuse(item, "a whole number, not negative");
  return value;
}

cudaError_t errorNamed(std::string_view item, std::string_view name) {
  for (int code = 1; code <= cudaErrorUnknown; ++code) {
    const auto error = static_cast<cudaError_t>(code);
    if (name == cudaGetErrorName(error)) return error;
  }
  refuse(item, "a name of cudaError_t, such as cudaErrorMemoryAllocation");
}

void readKey(InjectedFault& fault, std::string_view item, std::string_view key, std::string_view value) {
  const bool is_slow = fault.kind == InjectedFault::Kind::slow;
  if (key == "device") {
    fault.device = number(item, value);
  } else if (key == "ms" && is_slow) {
    fault.time = std::chrono::milliseconds(number(item, value));
  } else if (key == "call" && !is_slow && value.starts_with("cuda")) {
    fault.call = value;
  } else if (key == "at" && !is_slow) {
    fault.at = static_cast<std::uint64_t>(number(item, value));
  } else if (key == "error" && !is_slow) {
    fault.error = errorNamed(item, value);
  } else {
    refuse(item, is_slow ? "ms=T and device=D" : "call=cudaFUNCTION, at=K, error=NAME and device=D");
  }
}

InjectedFault parseItem(std::string_view item) {
  std::string_view rest = item;
  const std::string_view kind = cutOff(&rest, ':');
  InjectedFault fault;
  if (kind == "break") {
    fault.kind = InjectedFault::Kind::breaks;
    fault.at = 1;
    fault.error = cudaErrorDevicesUnavailable;
  } else if (kind == "slow") {
    fault.kind = InjectedFault::Kind::slow;
  } else if (kind != "fail") {
    refuse(item, "fail, break or slow");
  }
  while (!rest.empty()) {
    std::string_view value = cutOff(&rest, ',');
    const std::string_view key = cutOff(&value, '=');
    readKey(fault, item, key, value);
  }
  if (fault.kind == InjectedFault::Kind::slow && fault.time.count() == 0) refuse(item, "ms=T");
  return fault;
}

/// False, and said, where the text is not understood.
bool setFrom(InjectedFaults& faults, std::string_view text) {
  try {
    faults.set(parseInjectedFaults(text));
    return true;
  } catch (const std::invalid_argument& error) {
    say(error.what());
    return false;
  }
}

}  // namespace

bool InjectedFault::concerns(std::string_view function, int current_device) const {
  if (kind == Kind::slow || (device && *device != current_device)) return false;
  // What nvcc's code calls for <<<>>> begins with underscores.
  function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
  if (!call.ends_with('*')) return function == call;
  return function.starts_with(std::string_view(call).substr(0, call.size() - 1));
}

std::vector<InjectedFault> parseInjectedFaults(std::string_view text) {
  std::vector<InjectedFault> faults;
  while (!text.empty()) faults.push_back(parseItem(cutOff(&text, ';')));
  return faults;
}

void InjectedFaults::set(std::vector<InjectedFault> faults) {
  const std::lock_guard lock(mutex_);
  active_.clear();
  for (auto& fault : faults) active_.push_back({std::move(fault)});
  last_struck_ = "";
  exist_ = !active_.empty();
}

const char* InjectedFaults::lastStruck() const {
  const std::lock_guard lock(mutex_);
  return last_struck_;
}

void InjectedFaults::meet(const char* function, int device_index) {
  if (!exist_.load(std::memory_order_relaxed)) return;
  std::optional<InjectedFault> struck;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [fault, calls] : active_) {
      if (!fault.concerns(function, device_index)) continue;
      ++calls;
      if (struck || (fault.at != 0 && fault.at != calls)) continue;
      struck = fault;
      number = calls;
      last_struck_ = function;
    }
  }
  if (!struck) return;
  const std::string what = fmt::format("{}, call {} of {} on device {}, fails with {}, as asked", function,
                                       number, struck->call, device_index, cudaGetErrorName(struck->error));
  if (struck->kind == InjectedFault::Kind::breaks) {
    device(device_index).fail(struck->error, what);
  } else if (number == 1 || struck->at != 0) {
    say(what);
  }
  throw CudaError(struck->error);
}

void InjectedFaults::delay(const Device& device) const {
  if (!exist_.load(std::memory_order_relaxed)) return;
  std::chrono::milliseconds time{0};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [fault, calls] : active_) {
      if (!fault.device || *fault.device == device.index()) time += fault.time;
    }
  }
  std::this_thread::sleep_for(time);
}

InjectedFaults& injectedFaults() {
  static auto* const result = [] {  // streams' threads may outlive main
    auto* const made = new InjectedFaults;
    const char* const text = std::getenv("TUTTI_EMULATED_FAULTS");
    if (text != nullptr && !setFrom(*made, text)) std::_Exit(2);
    return made;
  }();
  return *result;
}

}  // namespace tutti::emulator

bool tuttiEmulateFaults(const char* text) {
  return tutti::emulator::setFrom(tutti::emulator::injectedFaults(), text);
}

const char* tuttiEmulateFaultsStruck() { return tutti::emulator::injectedFaults().lastStruck(); }
