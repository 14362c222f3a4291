// Segments and mailboxes: what shared memory stands on.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "runtime/peers.h"
#include "runtime/process.h"
#include "transports/memory_budget.h"
#include "transports/rank_memory.h"
#include "transports/shm/mailbox.h"
#include "transports/shm/shm_transport.h"
#include "tutti/error.h"

namespace tutti {
namespace {

Deadline soon(int ms = 60'000) { return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms); }

PeerInfo selfWith(const Mailbox& mailbox, int rank) {
  PeerInfo self = describeSelf(Process::instance().token());
  self.rank = rank;
  self.mailbox = mailbox.address();
  return self;
}

TEST(Segment, MoreThanTheMachineHasIsAnErrorWithTheNumbers) {
  try {
    Process::instance().segments().create(freeMemoryBytes() + (1ULL << 40));
    FAIL() << "got more memory than there is";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ncclSystemError);
    EXPECT_NE(std::string(error.what()).find("are free"), std::string::npos) << error.what();
  }
}

TEST(Segment, IsMappedOncePerProcess) {
  SegmentCache cache;
  const auto segment = cache.create(10'000);
  EXPECT_EQ(cache.map(segment->token(), UniqueFd(::dup(segment->fd())), 10'000, false), segment);
  EXPECT_EQ(cache.find(segment->token()), segment);
  EXPECT_EQ(cache.find(randomToken()), nullptr);
}

TEST(Segment, CannotBeResizedByAPeer) {
  SegmentCache cache;
  const auto segment = cache.create(10'000);
  EXPECT_NE(::ftruncate(segment->fd(), 0), 0);
  EXPECT_NE(::ftruncate(segment->fd(), 20'000), 0);
}

TEST(Segment, UnsealedOrWrongMemoryIsRefused) {
  SegmentCache cache;
  UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 10'000), 0);
  EXPECT_THROW(cache.map(randomToken(), std::move(unsealed), 10'000, false), Error);
  const auto segment = cache.create(10'000);
  EXPECT_THROW(cache.map(randomToken(), UniqueFd(::dup(segment->fd())), 20'000, false), Error);
}

TEST(Mailbox, DeliversToTheRightProcessOnly) {
  Process::instance();
  const MailboxKey key{1, 2, 3};
  Mailbox from(key);
  Mailbox to(key);
  SegmentCache cache;
  const auto segment = cache.create(4096);
  from.send(selfWith(to, 1), *segment, soon());
  EXPECT_TRUE(to.receive(selfWith(from, 0), segment->token(), soon()));

  // The same letter is not accepted from another process than the one that the bootstrap named.
  from.send(selfWith(to, 1), *segment, soon());
  PeerInfo other = selfWith(from, 0);
  other.pid += 1;
  EXPECT_THROW(to.receive(other, segment->token(), soon(100)), Error);
}

TEST(Mailbox, APeerThatEndsIsNamedLongBeforeTheDeadline) {
  Process::instance();
  Mailbox to(MailboxKey{1});
  SegmentCache cache;
  const auto sent = cache.create(4096);
  const auto unsent = cache.create(4096);
  auto from = std::make_unique<Mailbox>(MailboxKey{1});
  const PeerInfo peer = selfWith(*from, 3);
  from->send(selfWith(to, 1), *sent, soon());
  from.reset();
  EXPECT_TRUE(to.receive(peer, sent->token(), soon())) << "what it sent before it ended";
  try {
    to.receive(peer, unsent->token(), soon(60'000));
    FAIL() << "received what was never sent";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ncclRemoteError);
    EXPECT_NE(std::string(error.what()).find("rank 3 (pid "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("before it handed over"), std::string::npos) << error.what();
  }
}

TEST(Mailbox, StrangersAreDropped) {
  Process::instance();
  Mailbox to(MailboxKey{1});
  Mailbox stranger(MailboxKey{2});  // does not know the key
  Mailbox friendly(MailboxKey{1});
  SegmentCache cache;
  const auto segment = cache.create(4096);
  stranger.send(selfWith(to, 1), *segment, soon());

  // Garbage without a descriptor.
  const UniqueFd raw(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(to.address().data());
  std::memcpy(address.sun_path + 1, to.address().data(), length);
  ASSERT_EQ(::sendto(raw.get(), "hello", 5, 0, reinterpret_cast<sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)),
            5);
  EXPECT_THROW(to.receive(selfWith(stranger, 0), segment->token(), soon(100)), Error);
  friendly.send(selfWith(to, 1), *segment, soon());
  EXPECT_TRUE(to.receive(selfWith(friendly, 0), segment->token(), soon()));
}

TEST(Shm, SaysWhyItCannotReach) {
  Process::instance();
  Mailbox mailbox(MailboxKey{});
  SegmentCache cache;
  const ShmTransport shm(cache, mailbox);
  const PeerInfo self = selfWith(mailbox, 0);
  EXPECT_TRUE(shm.reach(self, self).possible);
  PeerInfo other = self;
  other.host_id[0] ^= 1;
  EXPECT_EQ(shm.reach(self, other).reason, "another host");
  other = self;
  other.net_namespace += 1;
  EXPECT_EQ(shm.reach(self, other).reason, "another network namespace (container)");
  other = self;
  other.uid += 1;
  EXPECT_EQ(shm.reach(self, other).reason, "another user");
}

TEST(RankMemory, LinksDoNotOverlapAndStartEmpty) {
  SegmentCache cache;
  constexpr int kRanks = 4;
  constexpr int kOwner = 2;
  const LinkShape shape{.lanes = 3, .slot_count = 5, .slot_bytes = 192};
  auto segment = cache.create(kRanks * RankMemory::bytes(shape, kRanks));
  const std::byte* end = segment->data() + (kOwner + 1) * RankMemory::bytes(shape, kRanks);
  const RankMemory memory(segment, shape, kRanks, kOwner);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(&memory.token()), end - RankMemory::bytes(shape, kRanks));
  memory.reserve();
  EXPECT_GE(reinterpret_cast<const std::byte*>(&memory.access()),
            reinterpret_cast<const std::byte*>(&memory.status() + 1));
  const auto* last = reinterpret_cast<const std::byte*>(&memory.regions() + 1);
  EXPECT_GE(reinterpret_cast<const std::byte*>(&memory.regions()),
            reinterpret_cast<const std::byte*>(&memory.access() + 1));
  const auto expectAfterLast = [&](const LinkView& link, const std::byte* data_end) {
    EXPECT_EQ(link.posted->value, 0U);
    EXPECT_EQ(link.released->value, 0U);
    EXPECT_GE(reinterpret_cast<const std::byte*>(link.posted), last);
    EXPECT_GE(link.data, reinterpret_cast<const std::byte*>(link.released + 1));
    last = data_end;
    EXPECT_LE(last, end);
  };
  for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
    for (int sender = 0; sender < kRanks; ++sender) {
      if (sender == kOwner) continue;
      const LinkView link = memory.link(lane, sender);
      EXPECT_GE(link.data, reinterpret_cast<const std::byte*>(link.headers + shape.slot_count));
      expectAfterLast(link, link.slot(shape.slot_count - 1) + shape.slot_bytes);
    }
  }
  for (int sender = 0; sender < kRanks; ++sender) {
    if (sender == kOwner) continue;
    const LinkView link = memory.packets(sender);
    expectAfterLast(link, link.slot(kPacketSlots - 1) + std::size_t{kPacketLines} * kPacketLineBytes);
  }
}

TEST(PeerWatch, FindsThatAProcessEnded) {
  PeerInfo self = describeSelf(Process::instance().token());
  self.rank = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  PeerInfo peer = self;
  peer.rank = 1;
  peer.pid = child;
  peer.process_token[0] ^= 1;
  std::string stat = "/proc/" + std::to_string(child) + "/stat";
  // The child's own start time, read as the child would.
  std::FILE* file = std::fopen(stat.c_str(), "r");
  ASSERT_NE(file, nullptr);
  unsigned long long start = 0;
  ASSERT_EQ(
      std::fscanf(file,
                  "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                  "%*d %llu",
                  &start),
      1);
  std::fclose(file);
  peer.start_time = start + 1;
  EXPECT_THROW(PeerWatch({self, peer}, {0, 1}, self), Error);  // right pid, wrong start time: another process
  peer.start_time = start;
  const PeerWatch watch({self, peer}, {0, 1}, self);
  EXPECT_EQ(watch.dead(), (std::vector<bool>{false, false}));
  ::kill(child, SIGKILL);
  for (int i = 0; i < 6000 && !watch.dead()[1]; ++i) ::usleep(10'000);
  EXPECT_EQ(watch.dead(), (std::vector<bool>{false, true}));
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace tutti
