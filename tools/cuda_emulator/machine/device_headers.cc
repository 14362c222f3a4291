#include "tools/cuda_emulator/machine/device_headers.h"

#include <string_view>

// The assembler puts the files themselves into the library: what an installed emulator needs is in it. The
// build names the folder.
#define TUTTI_EMBED(name)                                                               \
  __asm__(".section .rodata\n.global tutti_device_" #name "\ntutti_device_" #name       \
          ":\n.incbin \"" TUTTI_DEVICE_HEADERS "/" #name ".h\"\n.byte 0\n.previous\n"); \
  extern "C" [[gnu::visibility("hidden")]] const char tutti_device_##name[]

TUTTI_EMBED(abi);
TUTTI_EMBED(types);
TUTTI_EMBED(integers);
TUTTI_EMBED(floats);
TUTTI_EMBED(pairs);
TUTTI_EMBED(compare);
TUTTI_EMBED(conversions);
TUTTI_EMBED(memory);
TUTTI_EMBED(builtins);

namespace tutti::emulator {
namespace {

/// Without the lines that lead to the other headers.
void append(std::string& all, std::string_view header) {
  while (!header.empty()) {
    const std::size_t end = header.find('\n') + 1;
    const std::string_view line = header.substr(0, end);
    if (!line.starts_with("#include \"") && !line.starts_with("#pragma once")) all += line;
    header.remove_prefix(end);
  }
}

}  // namespace

const std::string& deviceHeaders() {
  static const std::string all = [] {
    std::string text;
    for (const char* header : {tutti_device_abi, tutti_device_types, tutti_device_integers,
                               tutti_device_floats, tutti_device_pairs, tutti_device_compare,
                               tutti_device_conversions, tutti_device_memory, tutti_device_builtins}) {
      append(text, header);
    }
    return text;
  }();
  return all;
}

}  // namespace tutti::emulator
