#include "tools/cuda_emulator/ptx/names.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>

#include "tools/cuda_emulator/ptx/parser.h"

namespace tutti::emulator::ptx {

std::string cppType(std::string_view type) {
  if (type == "pred") return "bool";
  std::string name(type);
  if (bytesOfType(type) != 0 && name[0] == 'b' && name[1] != 'f') name[0] = 'u';
  return name;
}

int bitsOfType(std::string_view type) {
  if (type == "e4m3x2" || type == "e5m2x2") return 16;
  return static_cast<int>(bytesOfType(type)) * 8;
}

std::string storageType(std::string_view type) {
  if (type == "pred") return "bool";
  const int bits = bitsOfType(type);
  return bits == 0 ? std::string() : fmt::format("u{}", bits);
}

bool isFloatType(std::string_view type) {
  return type == "f16" || type == "bf16" || type == "f32" || type == "f64" || !halfOfPair(type).empty();
}

std::string_view halfOfPair(std::string_view type) {
  if (type == "f16x2") return "f16";
  if (type == "bf16x2") return "bf16";
  return {};
}

std::string readableName(std::string_view name) {
  std::string mangled(name);
  if (!mangled.starts_with("_Z")) return mangled;  // "i" would be the type int
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return readable != nullptr ? std::string(readable.get()) : mangled;
}

std::string registerName(std::string_view name) {
  return name.starts_with('%') ? "r_" + std::string(name.substr(1)) : "n_" + std::string(name);
}

std::string memoryName(std::string_view name) { return "m_" + std::string(name); }

std::string functionName(std::string_view name) { return "f_" + std::string(name); }

std::string addressName(std::string_view name) { return "address_" + std::string(name); }

std::string entryName(std::string_view name) { return "entry_" + std::string(name); }

std::optional<std::string> specialRegister(std::string_view name) {
  static const std::map<std::string_view, std::string> known{
      {"%laneid", "t.lane"},
      {"%warpid", "t.warp"},
      {"%nwarpid", "64u"},
      {"%smid", "smOf(t)"},
      {"%nsmid", "kSms"},
      {"%gridid", "t.grid"},
      {"%clock", "t.machine->clock(t)"},
      {"%clock_hi", "(t.machine->clock(t) >> 32)"},
      {"%clock64", "t.machine->clock(t)"},
      {"%globaltimer", "t.machine->clock(t)"},
      {"%globaltimer_lo", "t.machine->clock(t)"},
      {"%globaltimer_hi", "(t.machine->clock(t) >> 32)"},
      {"%lanemask_eq", "(1u << t.lane)"},
      {"%lanemask_lt", "((1u << t.lane) - 1)"},
      {"%lanemask_le", "((2u << t.lane) - 1)"},
      {"%lanemask_gt", "~((2u << t.lane) - 1)"},
      {"%lanemask_ge", "~((1u << t.lane) - 1)"},
      {"%dynamic_smem_size", "t.dynamic_shared_bytes"},
      {"%total_smem_size", "t.shared_bytes"},
      {"%is_explicit_cluster", "false"},
      {"%clusterid.x", "t.ctaid.x"},
      {"%clusterid.y", "t.ctaid.y"},
      {"%clusterid.z", "t.ctaid.z"},
      {"%nclusterid.x", "t.nctaid.x"},
      {"%nclusterid.y", "t.nctaid.y"},
      {"%nclusterid.z", "t.nctaid.z"},
      {"%cluster_ctaid.x", "0u"},
      {"%cluster_ctaid.y", "0u"},
      {"%cluster_ctaid.z", "0u"},
      {"%cluster_nctaid.x", "1u"},
      {"%cluster_nctaid.y", "1u"},
      {"%cluster_nctaid.z", "1u"},
      {"%cluster_ctarank", "0u"},
      {"%cluster_nctarank", "1u"},
      {"WARP_SZ", "32u"},
  };
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  for (const std::string_view vector : {"tid", "ntid", "ctaid", "nctaid"}) {
    if (name.size() != vector.size() + 3 || name.substr(1, vector.size()) != vector || name[0] != '%')
      continue;
    const char axis = name.back();
    if (name[name.size() - 2] == '.' && axis >= 'x' && axis <= 'z')
      return fmt::format("t.{}.{}", vector, axis);
  }
  return std::nullopt;
}

}  // namespace tutti::emulator::ptx
