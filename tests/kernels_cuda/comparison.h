// One collective by kernels and the same program on the host (kernels/sim), on the same random bits.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "collectives/planner.h"
#include "collectives/programs.h"
#include "kernels/sim/sim.h"
#include "tests/harness/oracle.h"
#include "tests/harness/variants.h"
#include "tests/kernels/combine_oracle.h"
#include "tests/kernels_cuda/cuda_world.h"

namespace tutti::test {

/// How loans go.
enum class Loans : std::uint8_t { inline_data, address, region };

struct Scenario {
  Descriptor descriptor = {};
  int nranks = 1;
  Variant variant = kVariants[0];
  LinkShape shape{.lanes = 1, .slot_count = 2, .slot_bytes = 512, .packet_bytes = 4096};
  Loans loans = Loans::inline_data;
  bool in_place = false;
  RingTables rings = {};

  std::string text() const {
    return fmt::format("{} on {} ranks by {}, {} lanes, {} slots, loans {}{}", describe(descriptor), nranks,
                       variant.text, shape.lanes, shape.slot_count, static_cast<int>(loans),
                       in_place ? ", in place" : "");
  }
  std::size_t inputBytes() const {
    return inputCount(descriptor.collective, nranks, descriptor.count) * sizeOf(descriptor.type);
  }
  std::size_t outputBytes() const {
    return outputCount(descriptor.collective, nranks, descriptor.count) * sizeOf(descriptor.type);
  }
};

/// The ranks' buffers on the GPU, and what the host makes of the same inputs.
class Comparison {
 public:
  Comparison(const Scenario& scenario, std::mt19937_64& random)
      : scenario_(scenario),
        plan_(makePlan(scenario.descriptor, layoutFor(scenario.variant, scenario.nranks), scenario.shape,
                       scenario.variant.plan)),
        sim_(plan_, options(random)) {
    const Descriptor& d = scenario.descriptor;
    for (int r = 0; r < scenario.nranks; ++r) {
      const std::size_t size = sizeOf(d.type);
      for (std::size_t at = 0; at < scenario.inputBytes(); at += size) {
        const std::uint64_t bits = drawBits(d.type, Draw::mixed, random);
        std::memcpy(sim_.input(r) + at, &bits, size);
      }
      const bool is_shifted = random() % 2 == 0;
      const std::size_t shift = is_shifted ? size * (random() % 4) : 0;
      // To the byte: where memory is checked, one more is out of bounds.
      inputs_.push_back(std::make_unique<PinnedMemory>(shift + scenario.inputBytes()));
      outputs_.push_back(std::make_unique<PinnedMemory>(shift + scenario.outputBytes()));
      std::memcpy(inputs_.back()->data() + shift, sim_.input(r), scenario.inputBytes());
      shifts_.push_back(shift);
    }
  }

  std::vector<CudaTask> tasks() const {
    std::vector<CudaTask> tasks;
    for (int r = 0; r < scenario_.nranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      std::byte* in = inputs_[i]->data() + shifts_[i];
      CudaTask task = collectiveTask(plan_, in, scenario_.in_place ? in : outputs_[i]->data() + shifts_[i]);
      task.scale = scales_[i];
      if (scenario_.loans == Loans::address) task.lends_address = ~std::uint64_t{0};
      if (scenario_.loans == Loans::region) task.lends_region = ~std::uint64_t{0};
      task.input_region = {kInputRegion, shifts_[i]};
      task.output_region = scenario_.in_place ? task.input_region : RegionPlace{kOutputRegion, shifts_[i]};
      tasks.push_back(task);
    }
    return tasks;
  }

  /// Tells every rank where the others' buffers are.
  void mapRegions(CudaWorld& world) const {
    for (int r = 0; r < scenario_.nranks; ++r) {
      for (int peer = 0; peer < scenario_.nranks; ++peer) {
        const auto i = static_cast<std::size_t>(peer);
        map(world.regions(r, peer), kInputRegion, *inputs_[i], shifts_[i] + scenario_.inputBytes());
        map(world.regions(r, peer), kOutputRegion, *outputs_[i], shifts_[i] + scenario_.outputBytes());
      }
    }
  }

  /// "" or what differs.
  std::string result() {
    std::string report = sim_.run([&](SimExecutor& e) {
      return runProgram(e, plan_, laneWork(plan_, e.rank(), e.lane(), scenario_.rings.view()));
    });
    if (!report.empty()) return report;
    const Descriptor& d = scenario_.descriptor;
    for (int r = 0; r < scenario_.nranks; ++r) {
      if (onlyRootReceives(d.collective) && r != d.root) continue;
      const auto i = static_cast<std::size_t>(r);
      const std::byte* got = (scenario_.in_place ? inputs_ : outputs_)[i]->data() + shifts_[i];
      for (std::size_t at = 0; at < scenario_.outputBytes(); ++at) {
        if (got[at] == sim_.output(r)[at]) continue;
        return fmt::format("rank {} byte {}: {:02x} instead of {:02x}", r, at, static_cast<int>(got[at]),
                           static_cast<int>(sim_.output(r)[at]));
      }
    }
    return "";
  }

 private:
  static constexpr std::uint32_t kInputRegion = 7;
  static constexpr std::uint32_t kOutputRegion = 70;  // another entry of the table

  SimOptions options(std::mt19937_64& random) {
    for (int r = 0; r < scenario_.nranks; ++r)
      scales_.push_back(drawScale(scenario_.descriptor.type, random));
    return {.links = meshLinks(scenario_.nranks),
            .slot_count = scenario_.shape.slot_count,
            .seed = 1,
            .input_bytes = scenario_.inputBytes(),
            .output_bytes = scenario_.outputBytes(),
            .scales = scales_,
            .in_place = scenario_.in_place};
  }

  static void map(CudaRegions& regions, std::uint32_t number, const PinnedMemory& memory, std::size_t bytes) {
    CudaRegion& region = regions.entries[number % RegionTable::kSize];
    region.base = memory.data();
    region.bytes = bytes;
    region.number.store(number);
  }

  Scenario scenario_;
  Plan plan_;
  std::vector<Scale> scales_;
  Sim sim_;
  std::vector<std::unique_ptr<PinnedMemory>> inputs_;
  std::vector<std::unique_ptr<PinnedMemory>> outputs_;
  std::vector<std::size_t> shifts_;
};

inline std::string faultOf(const CudaWorld& world) {
  for (int r = 0; r < world.nranks(); ++r) {
    const CudaFault& fault = world.control(r).fault;
    if (fault.kind.load() == 0) continue;
    return fmt::format("rank {}: fault {} of peer {}, sequence {}, expected {}", r, fault.kind.load(),
                       fault.peer, fault.sequence, fault.expected);
  }
  return "";
}

}  // namespace tutti::test
