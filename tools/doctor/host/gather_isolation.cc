// What processes of this host may do with each other: tried, with a second process, by what ranks use.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>

#include "tools/doctor/host/gather.h"
#include "tools/doctor/host/second_process.h"
#include "tools/doctor/system.h"
#include "transports/peer_memory.h"
#include "transports/shm/mailbox.h"

namespace tutti::doctor {
namespace {

constexpr std::size_t kBytes = 1U << 16;
constexpr MailboxKey kKey{};  // the sender's process is what is checked here
constexpr std::chrono::seconds kPatience{5};

/// Inodes that the kernel gives to the first namespaces (PROC_PID_INIT_INO, PROC_USER_INIT_INO).
constexpr std::uint64_t kFirstPidNamespace = 0xEFFFFFFC;
constexpr std::uint64_t kFirstUserNamespace = 0xEFFFFFFD;

bool isOther(const char* path, std::uint64_t first) {
  struct stat status {};
  return ::stat(path, &status) == 0 && status.st_ino != first;
}

std::string containerSign() {
  for (const char* path : {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"}) {
    if (std::filesystem::exists(path)) return path;
  }
  const char* variable = std::getenv("container");
  return variable == nullptr ? "" : fmt::format("container={}", variable);
}

/// What the second process answers.
struct Answer {
  bool has_segment = false;
  bool maps_regions = false;
  bool copies = false;
  std::array<char, 256> problem{};
};

/// What the first tells it.
struct Offer {
  PeerInfo owner;
  SegmentToken token;
  std::uint64_t token_at = 0;
  int fd = -1;
};

PeerInfo peerOf(int pid, const Mailbox& mailbox) {
  PeerInfo peer;
  peer.rank = 0;
  peer.pid = pid;
  peer.mailbox = mailbox.address();
  return peer;
}

void takePart(const SecondProcess::Pipe& pipe) {
  Mailbox mailbox(kKey);
  if (!pipe.send(mailbox.address())) return;
  Offer offer;
  if (!pipe.receive(offer)) return;
  Answer answer;
  SegmentCache cache;
  const auto regions = std::make_unique<RegionTable>();
  const MemoryAccess access =
      PeerMemory(offer.owner, *regions, false, cache).probe(offer.token, offer.token_at, offer.fd);
  answer.maps_regions = access.regions;
  answer.copies = access.copies;
  try {
    UniqueFd fd = mailbox.receive(offer.owner, offer.token, std::chrono::steady_clock::now() + kPatience);
    answer.has_segment = *Segment::map(offer.token, std::move(fd), kBytes)->data() == std::byte{1};
  } catch (const std::exception& error) {
    std::strncpy(answer.problem.data(), error.what(), answer.problem.size() - 1);
  }
  pipe.send(answer);
}

void tryWithSecondProcess(IsolationFacts& facts) {
  const SecondProcess second(takePart);
  Mailbox mailbox(kKey);
  PeerInfo peer = peerOf(second.pid(), mailbox);
  if (!second.pipe().receive(peer.mailbox)) {
    facts.segment_problem = "a second process could not open an abstract Unix socket";
    return;
  }
  const auto segment = Segment::create(randomToken(), kBytes);
  segment->reserve(0, kBytes);
  *segment->data() = std::byte{1};
  const SegmentToken token = segment->token();
  Offer offer{.owner = peerOf(::getpid(), mailbox), .token = token, .fd = segment->fd()};
  offer.token_at = std::bit_cast<std::uint64_t>(token.data());
  Answer answer;
  const bool is_told = second.pipe().send(offer);
  mailbox.send(peer, *segment, std::chrono::steady_clock::now() + kPatience);
  if (!is_told || !second.pipe().receive(answer)) {
    facts.segment_problem = "a second process ended, or did not answer, while memory was handed to it";
    return;
  }
  answer.problem.back() = '\0';
  if (!answer.has_segment)
    facts.segment_problem = fmt::format("handing memory over: {}", answer.problem.data());
  facts.maps_regions = answer.maps_regions;
  facts.copies = answer.copies;
}

}  // namespace

IsolationFacts gatherIsolation() {
  IsolationFacts facts;
  facts.is_own_pid_namespace = isOther("/proc/self/ns/pid", kFirstPidNamespace);
  facts.is_own_user_namespace = isOther("/proc/self/ns/user", kFirstUserNamespace);
  facts.container = containerSign();
  facts.ptrace_scope = static_cast<int>(numberIn("/proc/sys/kernel/yama/ptrace_scope", 0));
  facts.seccomp = std::atoi(fieldIn("/proc/self/status", "Seccomp").c_str());
  try {
    tryWithSecondProcess(facts);
  } catch (const std::exception& error) {
    facts.segment_problem = error.what();
  }
  return facts;
}

}  // namespace tutti::doctor
