// Fibres that carry CUDA threads, kept by each OS thread from one block to the next.
#pragma once

#include <memory>
#include <vector>

#include "kernels/fibre/fibre.h"
#include "tools/cuda_emulator/machine/device/abi.h"

namespace tutti::emulator {

class Block;

/// Runs threads of a block that have not started yet, one after another, until one has to wait; once that one
/// goes on and ends, so does the carrier with the next. A kernel that never waits needs one carrier for a
/// whole block. Where races are detected a carrier runs one thread and ends.
class Carrier {
 public:
  Carrier();
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  ~Carrier();

  /// Starts on the block's threads; returns when one waits or none is left.
  void carry(Block& block);
  /// Goes on with the thread that waits.
  void resume() { fibre_.resume(); }
  /// From inside: back to the scheduler.
  void suspend() { fibre_.suspend(); }
  bool ended() const { return fibre_.done(); }
  MemoryRange stack() const { return {reinterpret_cast<u64>(fibre_.stackBegin()), fibre_.stackBytes()}; }

 private:
  void runBlocks(Fibre& fibre);

  Block* block_ = nullptr;  // nullptr: the fibre is to end
  Fibre fibre_;
};

/// The free carriers of this OS thread.
class CarrierPool {
 public:
  static CarrierPool& ofThisThread();
  ~CarrierPool();

  Carrier& take();
  void giveBack(Carrier& carrier) { free_.push_back(&carrier); }

 private:
  CarrierPool();

  std::vector<std::unique_ptr<Carrier>> all_;
  std::vector<Carrier*> free_;
};

}  // namespace tutti::emulator
