#include "tools/cuda_emulator/ptx/writers.h"

namespace tutti::emulator::ptx {

Write writerOf(std::string_view opcode) {
  static const WriterTable all = [] {
    WriterTable table;
    for (const WriterTable* part :
         {&integerWriters(), &floatWriters(), &conversionWriters(), &comparisonWriters(), &memoryWriters(),
          &atomicWriters(), &controlWriters(), &synchronisationWriters()}) {
      table.insert(part->begin(), part->end());
    }
    return table;
  }();
  const auto found = all.find(opcode);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace tutti::emulator::ptx
