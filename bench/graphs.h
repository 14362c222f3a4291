// The operations of a thread's ranks, recorded as CUDA graphs: one for each rank.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tools/device/seat.h"

namespace tutti::perf {

class Graphs {
 public:
  /// Records what `work` queues on the streams of the seats, and carries nothing out.
  template <class Work>
  Graphs(std::span<const device::Seat> seats, const Work& work) : seats_(seats) {
    for (const device::Seat& seat : seats) seat.device().beginCapture(seat.stream());
    work();
    for (const device::Seat& seat : seats) graphs_.push_back(seat.device().endCapture(seat.stream()));
  }

  /// Queues all of it once.
  void launch() const {
    for (std::size_t i = 0; i < graphs_.size(); ++i) graphs_[i]->launch(seats_[i].stream());
  }

 private:
  std::span<const device::Seat> seats_;
  std::vector<std::unique_ptr<device::Graph>> graphs_;
};

}  // namespace tutti::perf
