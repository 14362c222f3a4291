// Packets: messages of every length come whole or not yet; flags that wrap; and what the flag's parts are
// for.
#include "kernels/host/packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "runtime/core/link.h"

namespace tutti {
namespace {

/// A packet slot as it is when a communicator was just made.
struct alignas(128) Slot {
  std::byte bytes[kPacketLines * kPacketLineBytes] = {};
};

std::vector<std::byte> message(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> data(bytes);
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  return data;
}

bool holds(const Slot& slot, std::uint32_t flag, const std::vector<std::byte>& data) {
  std::vector<std::byte> got(packetRoom(data.size()));
  if (readPackets(got.data(), slot.bytes, flag, data.size(), 0) != packetLines(data.size())) return false;
  return std::equal(data.begin(), data.end(), got.begin());
}

const Descriptor kOperation{.collective = Collective::all_reduce, .count = 5};

TEST(Packets, EveryLengthComesWhole) {
  for (std::size_t bytes = 0; bytes <= packetSlotBytes(); ++bytes) {
    Slot slot;
    const auto data = message(bytes, bytes);
    const std::uint64_t sequence = bytes + 2;
    const std::uint32_t flag = packetFlag(sequence, kOperation);
    writePackets(slot.bytes, sequence, flag, data.data(), bytes);
    ASSERT_TRUE(holds(slot, flag, data)) << bytes << " bytes";
  }
}

TEST(Packets, WhatHasNotArrivedIsNotRead) {
  const auto data = message(packetSlotBytes(), 3);
  Slot whole;
  const std::uint32_t flag = packetFlag(7, kOperation);
  writePackets(whole.bytes, 7, flag, data.data(), data.size());
  // Any number of 8-byte words may have arrived, in order.
  for (std::size_t words = 0; words < sizeof(whole.bytes) / 8; ++words) {
    Slot slot;
    std::memcpy(slot.bytes, whole.bytes, words * 8);
    std::vector<std::byte> got(packetRoom(data.size()));
    const std::size_t lines = readPackets(got.data(), slot.bytes, flag, data.size(), 0);
    ASSERT_EQ(lines, words * 8 / kPacketLineBytes);
    // The rest arrives, and is read from there on.
    ASSERT_EQ(readPackets(got.data(), whole.bytes, flag, data.size(), lines), packetLines(data.size()));
    ASSERT_TRUE(std::equal(data.begin(), data.end(), got.begin()));
  }
}

TEST(Packets, UnusedMemoryIsNoMessage) {
  const Slot slot;
  std::mt19937_64 random(11);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t sequence = random();
    const std::uint32_t flag = packetFlag(sequence, {.count = random()});
    ASSERT_NE(flag, 0U);
    ASSERT_FALSE(holds(slot, flag, message(1, 1)));
  }
}

TEST(Packets, AnotherOperationIsNotTakenForThisOne) {
  // Without the descriptor in the flag, a rank that calls something else would be given this data.
  const std::vector<Descriptor> others{{.collective = Collective::reduce_scatter, .count = 5},
                                       {.type = DataType::int32, .count = 5},
                                       {.op = RedOp::max, .count = 5},
                                       {.root = 1, .count = 5},
                                       {.count = 6}};
  const auto data = message(20, 5);
  Slot slot;
  writePackets(slot.bytes, 9, packetFlag(9, kOperation), data.data(), data.size());
  for (const Descriptor& other : others) {
    EXPECT_FALSE(holds(slot, packetFlag(9, other), data)) << describe(other);
  }
  EXPECT_TRUE(holds(slot, packetFlag(9, kOperation), data));
}

/// A long message in slot `first`, then short ones in that slot until the flag comes again; whether the rest
/// of the long one is then taken for new. `write` stands for writePackets.
template <class Write>
bool staleLinesAreTakenForNew(const Write& write, std::uint64_t first) {
  Slot slot;
  const auto longest = message(packetSlotBytes(), 1);
  const auto shortest = message(4, 2);
  write(slot.bytes, first, packetFlag(first, kOperation), longest.data(), longest.size());
  const std::uint64_t last = first + kPacketFlagPeriod;
  for (std::uint64_t sequence = first + kPacketSlots; sequence < last; sequence += kPacketSlots) {
    write(slot.bytes, sequence, packetFlag(sequence, kOperation), shortest.data(), shortest.size());
  }
  // Only the first line of the next long message has arrived.
  const std::uint32_t flag = packetFlag(last, kOperation);
  Slot next;
  write(next.bytes, last, flag, longest.data(), longest.size());
  std::memcpy(slot.bytes, next.bytes, kPacketLineBytes);
  std::vector<std::byte> got(packetRoom(longest.size()));
  return readPackets(got.data(), slot.bytes, flag, longest.size(), 0) > 1;
}

TEST(Packets, FlagsThatWrapDoNotReviveOldLines) {
  for (const std::uint64_t first : std::initializer_list<std::uint64_t>{
           0, 1, 2, 12'345, kPacketFlagPeriod / 2 - 1, kPacketFlagPeriod - 2}) {
    EXPECT_FALSE(staleLinesAreTakenForNew(writePackets, first)) << "slot " << first;
  }
}

TEST(Packets, TheTestOfWrappingFlagsFindsAWriterThatNeverWritesWhole) {
  const auto careless = [](std::byte* slot, std::uint64_t, std::uint32_t flag, const std::byte* data,
                           std::size_t bytes) {
    writePackets(slot, kPacketSlots, flag, data, bytes);  // a number at which slots are not written whole
  };
  EXPECT_TRUE(staleLinesAreTakenForNew(careless, 12'345));
}

}  // namespace
}  // namespace tutti
