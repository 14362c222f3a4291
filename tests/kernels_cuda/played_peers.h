// One rank alone with its kernel: its peers are played by the test, which posts their slots beforehand. So
// every combine of a program can be given operands of any address, alignment and scale.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/kernels_cuda/cuda_world.h"

namespace tutti::test {

/// What peer p lends: `from` for the rank to read, and `to` for its result, if it is set.
struct PlayedLoan {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  Scale scale = {};
};

/// Posts one slot of each peer to rank 0, by address.
inline void playPeers(CudaWorld& world, const Descriptor& descriptor, std::uint32_t bytes,
                      const std::vector<PlayedLoan>& loans) {
  for (int peer = 1; peer < world.nranks(); ++peer) {
    const PlayedLoan& loan = loans[static_cast<std::size_t>(peer - 1)];
    const LinkView& link = world.link(peer, 0);
    const std::uint64_t sequence = link.posted->value.load();
    link.header(sequence) = {.sequence = sequence,
                             .descriptor = descriptor,
                             .kind = SlotKind::address,
                             .returns = static_cast<std::uint16_t>(loan.to != nullptr ? 1 : 0),
                             .bytes = bytes,
                             .from = reinterpret_cast<std::uintptr_t>(loan.from),
                             .to = reinterpret_cast<std::uintptr_t>(loan.to),
                             .scale = loan.scale.bits};
    link.posted->value.store(sequence + 1);
  }
}

/// Takes what rank 0 has posted, unread: peers want their slots back before it may end.
inline void takeAll(CudaWorld& world) {
  for (int peer = 1; peer < world.nranks(); ++peer) {
    const LinkView& link = world.link(0, peer);
    link.released->value.store(link.posted->value.load());
  }
}

}  // namespace tutti::test
