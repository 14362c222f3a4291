#include "tools/cuda_emulator/machine/machine_table.h"

#include <fmt/format.h>

#include <bit>
#include <ctime>
#include <string_view>

#include "tools/cuda_emulator/machine/block.h"
#include "tools/cuda_emulator/machine/device_print.h"
#include "tools/cuda_emulator/machine/memory_check.h"
#include "tools/cuda_emulator/machine/races.h"

namespace tutti::emulator {
namespace {

CudaThread& machineSide(Thread& thread) { return static_cast<CudaThread&>(thread); }

const char* text(u64 address) { return std::bit_cast<const char*>(address); }

void loaded(Thread& t, u64 address, u64 value) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  thread.block->loaded(thread, address, value);
}

void updated(Thread& t, u64 address, u64 before, bool changed) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  thread.block->updated(thread, address, before, changed);
}

/// Others run meanwhile; a sleeper is not woken early enough to matter, so its time is not kept.
void sleep(Thread& t, u32 /*nanoseconds*/) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  thread.block->yield(thread, true);
}

u64 readClock(Thread& t) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  if (thread.polls.turnIsOver()) thread.block->yield(thread, false);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<u64>(now.tv_sec) * 1'000'000'000u + static_cast<u64>(now.tv_nsec);
}

u32 barrier(Thread& t, BarrierOp op, u32 id, u32 count, bool predicate) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  return thread.block->barrier(thread, {op, id, count, predicate});
}

WarpResult warp(Thread& t, WarpOp op, u32 mask, u64 a, u32 b, u32 c) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  return thread.block->warp(thread, {op, mask, a, b, c});
}

u32 print(Thread& /*t*/, u64 format, u64 arguments) {
  const MachineCode machine;
  return devicePrint(text(format), std::bit_cast<const unsigned char*>(arguments));
}

void misaligned(Thread& t, u64 address, u32 bytes) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  thread.block->fail(thread, fmt::format("misaligned access of {} bytes at {:#x}", bytes, address));
}

void check(Thread& t, u64 address, u32 bytes) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  const std::string why = checkAccess(thread, address, bytes);
  if (!why.empty()) thread.block->fail(thread, why);
}

u64 allocate(Thread& /*t*/, u64 bytes) { return allocateOnHeap(bytes); }
void release(Thread& /*t*/, u64 address) { freeOnHeap(address); }

void trap(Thread& t, const char* why) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  const std::string_view instruction = why;
  thread.block->fail(thread, instruction == "trap" ? "trapped" : fmt::format("trapped: {}", instruction));
}

void failAssertion(Thread& t, u64 message, u64 file, u32 line, u64 function) {
  const MachineCode machine;
  CudaThread& thread = machineSide(t);
  thread.block->fail(thread, fmt::format("{}:{}: {}: assertion '{}' failed", text(file), line, text(function),
                                         text(message)));
}

void exitThread(Thread& /*t*/) { throw Unwind{}; }

}  // namespace

const Machine& machineTable() {
  static constexpr Machine table{.loaded = loaded,
                                 .updated = updated,
                                 .sleep = sleep,
                                 .clock = readClock,
                                 .barrier = barrier,
                                 .warp = warp,
                                 .print = print,
                                 .misaligned = misaligned,
                                 .check = check,
                                 .trap = trap,
                                 .failAssertion = failAssertion,
                                 .exit = exitThread,
                                 .allocate = allocate,
                                 .release = release};
  return table;
}

}  // namespace tutti::emulator
