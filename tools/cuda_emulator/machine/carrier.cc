#include "tools/cuda_emulator/machine/carrier.h"

#include "tools/cuda_emulator/machine/block.h"
#include "tools/cuda_emulator/machine/races.h"

namespace tutti::emulator {

namespace {

/// Stacks lie whole pages apart, so that the tops of all of them would share a few lines of the first cache.
/// The next one begins that many bytes lower.
std::size_t nextColour() {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kColours = 64;
  thread_local std::size_t count = 0;
  return count++ % kColours * kLine;
}

}  // namespace

Carrier::Carrier()
    : fibre_(
          [this, colour = nextColour()](Fibre& fibre) {
            auto* unused = static_cast<volatile char*>(__builtin_alloca(colour + 1));
            *unused = 0;
            runBlocks(fibre);
          },
          Fibre::Switches::do_not_order) {}

void Carrier::runBlocks(Fibre& fibre) {
  while (block_ != nullptr) {
    block_->runNewThreads(*this);
    if constexpr (kRacesAreDetected) return;
    fibre.suspend();
  }
}

Carrier::~Carrier() {
  block_ = nullptr;
  if (!fibre_.done()) fibre_.resume();
}

void Carrier::carry(Block& block) {
  block_ = &block;
  fibre_.resume();
}

CarrierPool::CarrierPool() {
  StackPool::ofThisThread();  // must outlive the carriers' stacks
}

CarrierPool::~CarrierPool() {
  const MachineCode machine;
  all_.clear();
}

CarrierPool& CarrierPool::ofThisThread() {
  thread_local CarrierPool pool;
  return pool;
}

Carrier& CarrierPool::take() {
  if constexpr (kRacesAreDetected) std::erase_if(all_, [](const auto& carrier) { return carrier->ended(); });
  if (free_.empty()) {
    all_.push_back(std::make_unique<Carrier>());
    return *all_.back();
  }
  Carrier& carrier = *free_.back();
  free_.pop_back();
  return carrier;
}

}  // namespace tutti::emulator
