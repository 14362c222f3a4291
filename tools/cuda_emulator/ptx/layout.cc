#include "tools/cuda_emulator/ptx/layout.h"

namespace tutti::emulator::ptx {
namespace {

std::size_t alignUp(std::size_t offset, std::size_t align) { return (offset + align - 1) / align * align; }

void place(const Variable& variable, std::size_t& end, std::map<std::string_view, std::size_t>& offsets) {
  const std::size_t offset = alignUp(end, variable.align);
  offsets[variable.name] = offset;
  end = offset + variable.bytes();
}

}  // namespace

Layout layOut(const Outline& outline) {
  Layout layout;
  std::size_t module_end = 0;
  for (const Variable& variable : outline.variables) {
    if (variable.space != Space::Shared) {
      layout.variable_index[variable.name] = layout.variables.size();
      layout.variables.push_back(&variable);
    } else if (variable.array && variable.count == 0) {
      layout.dynamic_shared[variable.name] = &variable;
    } else {
      place(variable, module_end, layout.shared_offset);
    }
  }
  // A device function may run in any kernel: its shared variables are the module's.
  for (const Function& function : outline.functions) {
    if (function.entry) continue;
    for (const Variable& variable : function.shared) place(variable, module_end, layout.shared_offset);
  }
  for (const Function& function : outline.functions) {
    if (!function.entry) continue;
    std::size_t end = module_end;
    for (const Variable& variable : function.shared)
      place(variable, end, layout.entry_shared_offset[function.name]);
    layout.entry_shared_bytes[function.name] = end;
  }
  return layout;
}

}  // namespace tutti::emulator::ptx
