#include "tools/cuda_emulator/machine/carrier.h"

#include "tools/cuda_emulator/machine/block.h"

namespace tutti::emulator {

Carrier::Carrier()
    : fibre_([this](Fibre& fibre) {
        while (block_ != nullptr) {
          block_->runNewThreads(*this);
          fibre.suspend();
        }
      }) {}

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

CarrierPool& CarrierPool::ofThisThread() {
  thread_local CarrierPool pool;
  return pool;
}

Carrier& CarrierPool::take() {
  if (free_.empty()) {
    all_.push_back(std::make_unique<Carrier>());
    return *all_.back();
  }
  Carrier& carrier = *free_.back();
  free_.pop_back();
  return carrier;
}

}  // namespace tutti::emulator
