// Registered memory of users; checks of slots and results; the send queue's accounts; bits that turn over.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tests/transports/fake_verbs.h"
#include "transports/faulty/faulty_slots.h"
#include "transports/verbs/memory.h"
#include "transports/verbs/send_queue.h"
#include "transports/verbs/spoiled_copies.h"
#include "transports/verbs/wire_header.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

class UserMemoryTest : public testing::Test {
 protected:
  std::span<std::byte> buffer(std::size_t i) { return std::span(bytes_).subspan(i * 100, 100); }
  std::shared_ptr<RegisteredMemory> find(UserMemory& memory, std::size_t i) {
    return memory.find(device_, buffer(i));
  }
  bool isRegistered(std::size_t i) { return fake_.regions.contains(buffer(i).data()); }

  test::FakeDevice& fake_ = test::Fabric::fresh().add("fake");
  std::shared_ptr<VerbsDevice> device_ = fake_.open();
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1000);
};

TEST_F(UserMemoryTest, IsRegisteredWhenItIsFirstUsedAndUntilItIsForgotten) {
  UserMemory memory;
  memory.add(buffer(1));
  EXPECT_EQ(fake_.registered, 0);
  const auto all = find(memory, 1);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(memory.find(device_, buffer(1).subspan(10, 50)), all) << "a part of it";
  EXPECT_EQ(memory.find(device_, std::span(bytes_).subspan(150, 100)), nullptr) << "more than it";
  EXPECT_EQ(find(memory, 0), nullptr);
  EXPECT_EQ(find(memory, 2), nullptr);
  EXPECT_EQ(fake_.registered, 1);
  memory.remove(buffer(1).data());
  EXPECT_EQ(find(memory, 1), nullptr);
  EXPECT_TRUE(isRegistered(1)) << "a device still works on it";
}

TEST_F(UserMemoryTest, AddedAgainItIsRegisteredAgain) {
  UserMemory memory;
  memory.add(buffer(1));
  const std::uint32_t first = find(memory, 1)->localKey();
  memory.remove(buffer(1).data());
  EXPECT_TRUE(fake_.regions.empty());
  memory.add(buffer(1));
  EXPECT_NE(find(memory, 1)->localKey(), first);
}

TEST_F(UserMemoryTest, TheLeastRecentlyUsedMakesRoom) {
  UserMemory memory({}, 3);
  for (std::size_t i = 0; i < 4; ++i) memory.add(buffer(i));
  for (const std::size_t i : {0U, 1U, 2U, 0U}) find(memory, i);
  ASSERT_NE(find(memory, 3), nullptr);
  EXPECT_TRUE(isRegistered(0) && !isRegistered(1) && isRegistered(2) && isRegistered(3));
  ASSERT_NE(find(memory, 1), nullptr) << "registered again";
  EXPECT_FALSE(isRegistered(2));
  EXPECT_EQ(fake_.regions.size(), 3U);
}

TEST_F(UserMemoryTest, WhatIsInUseStays) {
  std::string note;
  UserMemory memory({.in_place = {}, .copied = [&](const std::string& text) { note = text; }}, 2);
  for (std::size_t i = 0; i < 3; ++i) memory.add(buffer(i));
  const auto first = find(memory, 0);
  const auto second = find(memory, 1);
  EXPECT_EQ(find(memory, 2), nullptr);
  EXPECT_NE(note.find("copied through slots: 2 registrations are in use"), std::string::npos) << note;
  EXPECT_TRUE(isRegistered(0) && isRegistered(1));
  memory.remove(buffer(1).data());
  EXPECT_NE(find(memory, 2), nullptr) << "tried again once something was forgotten";
}

TEST_F(UserMemoryTest, WhereTheSystemAllowsNoMoreOthersMakeRoom) {
  fake_.most_regions = 1;
  std::string note;
  UserMemory memory({.in_place = {}, .copied = [&](const std::string& text) { note = text; }});
  memory.add(buffer(0));
  memory.add(buffer(1));
  ASSERT_NE(find(memory, 0), nullptr);
  ASSERT_NE(find(memory, 1), nullptr);
  EXPECT_FALSE(isRegistered(0));
  const auto in_use = find(memory, 1);
  EXPECT_EQ(find(memory, 0), nullptr);
  EXPECT_NE(note.find("ulimit -l"), std::string::npos) << note;
  EXPECT_NE(note.find("device fake: registering 100 bytes"), std::string::npos) << note;
}

/// A slot as its sender has it.
SlotHeader slotHeader() {
  SlotHeader header{.sequence = 41, .kind = SlotKind::address, .returns = 1, .bytes = 64};
  header.from = 0x1000;
  header.to = 0x2000;
  return header;
}

TEST(WireHeader, EachBitIsCovered) {
  std::array<std::byte, 64> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 37);
  const SlotHeader wire = toWireHeader(slotHeader(), ResultPlace{0x3000, 7}, data, true);
  EXPECT_TRUE(isIntactWire(wire, data, true));
  EXPECT_EQ(wire.kind, SlotKind::inline_data);
  EXPECT_EQ(wire.to, 0x3000U);
  EXPECT_EQ(wire.to_region, 7U);
  EXPECT_EQ(wire.from_region, kPromptSlot | kResultInPlace);
  for (std::size_t bit = 0; bit < 8 * sizeof(wire); ++bit) {
    std::array<std::byte, sizeof(wire)> raw{};
    std::memcpy(raw.data(), &wire, sizeof(wire));
    raw[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    SlotHeader altered;
    std::memcpy(&altered, raw.data(), sizeof(altered));
    EXPECT_FALSE(isIntactWire(altered, data, true)) << "bit " << bit << " of the header";
  }
  for (std::size_t bit = 0; bit < 8 * data.size(); ++bit) {
    auto altered = data;
    altered[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_FALSE(isIntactWire(wire, altered, true)) << "bit " << bit << " of the data";
    EXPECT_NE(resultChecksum(41, altered), resultChecksum(41, data));
  }
  EXPECT_NE(resultChecksum(42, data), resultChecksum(41, data)) << "another slot's result";
}

TEST(WireHeader, WithoutAPlaceResultsGoIntoTheSlot) {
  const SlotHeader wire = toWireHeader(slotHeader(), std::nullopt, {}, false);
  EXPECT_EQ(wire.from_region, kPromptSlot);
  EXPECT_EQ(wire.to, 0U) << "addresses are nobody else's business";
  EXPECT_EQ(wire.to_region, 0U);
}

TEST(SendQueue, RoomIsWhatIsNotAcknowledged) {
  SendQueue queue;
  const auto now = SendQueue::Clock::now();
  queue.restart(2, 8);
  EXPECT_FALSE(queue.isBusy());
  EXPECT_FALSE(queue.wantsSignal(1));
  queue.posted(1, 2, false, now);
  EXPECT_TRUE(queue.wantsSignal(1)) << "a quarter of the queue is unacknowledged";
  EXPECT_FALSE(queue.isBusy()) << "nothing will be acknowledged";
  const std::uint64_t expected = queue.ticketAfter(1, 6);
  EXPECT_TRUE(queue.hasRoom(1, 6));
  const std::uint64_t ticket = queue.posted(1, 6, true, now);
  EXPECT_EQ(ticket, expected);
  EXPECT_FALSE(queue.hasRoom(1, 1));
  EXPECT_TRUE(queue.hasRoom(0, 8)) << "the other pair has a queue of its own";
  EXPECT_FALSE(queue.wantsSignal(1));
  queue.completed(ticket, now);
  EXPECT_TRUE(queue.hasRoom(1, 8)) << "one acknowledgement covers all before it";
  EXPECT_FALSE(queue.isBusy());
}

TEST(SendQueue, SilenceCountsFromTheLastAcknowledgement) {
  SendQueue queue;
  const auto start = SendQueue::Clock::now();
  queue.restart(1, 8);
  EXPECT_FALSE(queue.isSilentFor(milliseconds(0), start + milliseconds(100))) << "nothing is outstanding";
  const auto first = queue.posted(0, 1, true, start);
  queue.posted(0, 1, true, start + milliseconds(90));
  EXPECT_TRUE(queue.isSilentFor(milliseconds(50), start + milliseconds(100)))
      << "posting is no acknowledgement";
  queue.completed(first, start + milliseconds(100));
  EXPECT_FALSE(queue.isSilentFor(milliseconds(50), start + milliseconds(140)));
  EXPECT_TRUE(queue.isSilentFor(milliseconds(50), start + milliseconds(151)));
  queue.restart(1, 8);
  EXPECT_FALSE(queue.isSilentFor(milliseconds(50), start + milliseconds(500)))
      << "a new connection owes nothing";
}

TEST(FaultySlots, BytesOfAllSlotsAreCounted) {
  FaultySlots once("corrupt:at=150;cut:at=3");
  EXPECT_EQ(once.next(100), std::nullopt);
  EXPECT_EQ(once.next(100), 50U);
  EXPECT_EQ(once.next(1000), std::nullopt);
  FaultySlots often("corrupt:every=10");
  EXPECT_EQ(often.next(10), std::nullopt) << "byte 10 comes next";
  EXPECT_EQ(often.next(10), 0U);
  EXPECT_EQ(often.next(35), 0U);
  EXPECT_EQ(often.next(10), 5U);
  EXPECT_TRUE(FaultySlots("cut:at=5").isNone());
  EXPECT_TRUE(FaultySlots("").isNone());
}

TEST(SpoiledCopies, OneBitOfACopyDiffers) {
  test::FakeDevice& fake = test::Fabric::fresh().add("fake");
  FaultySlots faults("corrupt:at=130");
  SpoiledCopies copies(&faults, fake.open(), 4, 100);
  std::array<std::byte, 100> slot{};
  slot.fill(std::byte{1});
  const ibv_sge whole = piece(reinterpret_cast<std::uint64_t>(slot.data()), slot.size(), 9);
  EXPECT_EQ(copies.spoil(2, whole).addr, whole.addr);
  const ibv_sge altered = copies.spoil(3, whole);
  ASSERT_NE(altered.addr, whole.addr);
  ASSERT_EQ(altered.length, whole.length);
  EXPECT_NE(altered.lkey, whole.lkey);
  const auto* const copy = reinterpret_cast<const std::byte*>(altered.addr);
  for (std::size_t i = 0; i < slot.size(); ++i) {
    EXPECT_EQ(slot[i], std::byte{1}) << "the slot itself stays";
    EXPECT_EQ(copy[i] == slot[i], i != 30) << i;
  }
}

}  // namespace
}  // namespace tutti
