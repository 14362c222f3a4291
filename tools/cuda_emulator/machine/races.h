// What ThreadSanitizer is told about CUDA threads. To it, each is a thread of its own: switches between them
// order nothing, and of the machine it sees neither accesses nor locks. What orders threads on a GPU does so
// here: their launch, barriers, __syncwarp, and atomic accesses of device code itself. In other builds all of
// this is nothing.
#pragma once

#include <cstddef>
#include <memory>

#include "tools/cuda_emulator/machine/device/abi.h"

namespace tutti::emulator {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kRacesAreDetected = true;
#else
inline constexpr bool kRacesAreDetected = false;
#endif

/// ThreadSanitizer's own, for the classes below.
namespace detector {
void hide();
void show();
void release(void* word);
void acquire(void* word);
/// What reports call this fibre.
void name(const char* words);
}  // namespace detector

/// As long as it lives, the calling thread or fibre runs the machine. Does not nest; a fibre may be suspended
/// meanwhile. A carrier's fibre begins as if inside of one.
class MachineCode {
 public:
  MachineCode() {
    if constexpr (kRacesAreDetected) detector::hide();
  }
  MachineCode(const MachineCode&) = delete;
  MachineCode& operator=(const MachineCode&) = delete;
  ~MachineCode() {
    if constexpr (kRacesAreDetected) detector::show();
  }
};

/// Inside of a MachineCode: the other way round.
class DeviceCode {
 public:
  DeviceCode() {
    if constexpr (kRacesAreDetected) detector::show();
  }
  DeviceCode(const DeviceCode&) = delete;
  DeviceCode& operator=(const DeviceCode&) = delete;
  ~DeviceCode() {
    if constexpr (kRacesAreDetected) detector::hide();
  }
};

/// Words that stand for an order: what was done before release(i) is known after an acquire(i) that comes
/// later. From the machine.
class OrderWords {
 public:
  explicit OrderWords(std::size_t count) {
    // On the heap: an order ends with its memory, and would outlive a place on a stack.
    if constexpr (kRacesAreDetected) words_ = std::make_unique<u64[]>(count);
  }
  void release(std::size_t i) {
    if constexpr (kRacesAreDetected) detector::release(&words_[i]);
  }
  void acquire(std::size_t i) {
    if constexpr (kRacesAreDetected) detector::acquire(&words_[i]);
  }

 private:
  std::unique_ptr<u64[]> words_;
};

}  // namespace tutti::emulator
