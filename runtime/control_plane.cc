#include "runtime/control_plane.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "runtime/bootstrap/messages.h"
#include "transports/listener.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;

// Types of messages; those of the bootstrap are smaller.
constexpr std::uint8_t kAsk = kFirstLaterType;  ///< up: somebody has waited for long
constexpr std::uint8_t kCollect = 33;           ///< down: number of a round
constexpr std::uint8_t kReport = 34;            ///< up: the round, what the ranks below are doing
constexpr std::uint8_t kTable = 35;             ///< down: the round, what all ranks are doing
constexpr std::uint8_t kNews = 36;              ///< to all: a rank failed or left; its line
constexpr std::uint8_t kLost = 37;              ///< to all: a rank was lost
constexpr std::uint8_t kCall = 39;              ///< to all: from whom, the meeting
constexpr std::uint8_t kLetter = 38;            ///< to one rank: to whom, from whom, the letter

/// A type byte, then the bytes of `parts`.
Bytes compose(std::uint8_t type, std::initializer_list<std::span<const std::uint8_t>> parts) {
  std::size_t size = 1;
  for (const auto& part : parts) size += part.size();
  Bytes bytes(size);
  bytes[0] = type;
  auto at = bytes.begin() + 1;
  for (const auto& part : parts) at = std::copy(part.begin(), part.end(), at);
  return bytes;
}

constexpr auto kAskEvery = Answers::kAskEvery;
constexpr auto kRoundTime = milliseconds(150);  ///< a node waits so long for each level below it

/// A host that is gone is noticed within half a minute, also when nothing is said, or nothing acknowledged.
void detectLoss(int socket) {
  constexpr int kSilenceMs = 30'000;
  keepAlive(socket);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilenceMs, sizeof(kSilenceMs));
}

}  // namespace

ControlPlane::ControlPlane(ControlTree tree, int nranks, int rank, RankStatus& mine, Events events)
    : tree_(std::move(tree)),
      nranks_(nranks),
      rank_(rank),
      mine_(mine),
      events_(std::move(events)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      copies_(static_cast<std::size_t>(nranks)),
      lost_(static_cast<std::size_t>(nranks)),
      answers_(nranks, rank) {
  forNeighbours([this](Neighbour& neighbour) {
    detectLoss(neighbour.channel.fd());
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, neighbour.channel.fd(), &event) == 0) return;
    const int error = errno;
    throw Error(ncclSystemError,
                fmt::format("rank {}: epoll for the control plane: {} (errno {}). Raise the limit of "
                            "open files (ulimit -n)",
                            rank_, std::strerror(error), error));
  });
}

template <class Visit>
void ControlPlane::forNeighbours(const Visit& visit) {
  if (tree_.parent) visit(*tree_.parent);
  for (Neighbour& child : tree_.children) visit(child);
}

void ControlPlane::ask(const Watcher& watcher) {
  if (!answers_.isTimeToAsk()) return;
  wants_status_.store(true, std::memory_order_release);
  watcher.wake();
}

void ControlPlane::announce(const Watcher& watcher) {
  wants_announcement_.store(true, std::memory_order_release);
  watcher.wake();
}

void ControlPlane::call(const Watcher& watcher) {
  wants_call_.store(true, std::memory_order_release);
  watcher.wake();
}

void ControlPlane::flush() {
  const auto end = Clock::now() + milliseconds(500);
  for (;;) {
    attend();
    bool is_pending = false;
    forNeighbours([&](Neighbour& neighbour) {
      is_pending = is_pending || (isOpen(neighbour) && neighbour.channel.wantsToWrite());
    });
    if (!is_pending || Clock::now() >= end) return;
    ::poll(nullptr, 0, 1);
  }
}

bool ControlPlane::isSilent(int rank) const {
  return rank != rank_ && !isLost(rank) && answers_.isSilent(rank);
}

int ControlPlane::silentRank() const {
  int longest = -1;
  for (int rank = 0; rank < nranks_; ++rank) {
    if (isSilent(rank) && (longest < 0 || answers_.missingFor(rank) > answers_.missingFor(longest)))
      longest = rank;
  }
  return longest;
}

bool ControlPlane::isOpen(const Neighbour& neighbour) const {
  return neighbour.channel.fd() >= 0 && !isLost(neighbour.rank);
}

ControlPlane::Entry ControlPlane::ownEntry() const {
  Entry entry;
  entry.rank = rank_;
  entry.state = mine_.state.load(std::memory_order_acquire);
  // First: what it says is true of what was entered by then.
  entry.attendance = mine_.attendance.load(std::memory_order_acquire);
  entry.excluded = mine_.readExcluded();
  entry.completed = mine_.completed.load(std::memory_order_acquire);
  entry.entered = mine_.entered.load(std::memory_order_acquire);
  entry.words.fill(RankStatus::kUnknown);
  for (std::uint64_t back = 0; back < RankStatus::kKept && back < entry.entered; ++back) {
    const std::uint64_t operation = entry.entered - back;
    Descriptor descriptor;
    if (mine_.readDescriptor(operation, descriptor)) {
      entry.words[operation % RankStatus::kKept] = std::bit_cast<std::array<std::uint64_t, 2>>(descriptor);
    }
  }
  return entry;
}

/// Takes over what a rank said, in the order in which the rank itself would have written it.
void ControlPlane::store(const Entry& entry) {
  if (entry.rank < 0 || entry.rank >= nranks_ || entry.rank == rank_) return;
  RankStatus& copy = copyOf(entry.rank);
  const std::uint64_t before = copy.entered.load(std::memory_order_relaxed);
  std::uint64_t next = before + 1;
  if (entry.entered > before + RankStatus::kKept) {
    next = entry.entered - RankStatus::kKept + 1;
    copy.entered.store(next - 1, std::memory_order_release);
  }
  for (; next <= entry.entered; ++next) {
    copy.enter(next, std::bit_cast<Descriptor>(entry.words[next % RankStatus::kKept]));
  }
  if (entry.completed > copy.completed.load(std::memory_order_relaxed)) {
    copy.completed.store(entry.completed, std::memory_order_release);
  }
  // The last news of a rank is not to be overtaken by a table that was made before. One that failed goes on.
  if (copy.state.load(std::memory_order_relaxed) != RankStatus::State::left) {
    copy.exclude(entry.excluded);
    copy.attendance.store(entry.attendance, std::memory_order_release);
  }
}

Watched::Next ControlPlane::attend() {
  forNeighbours([this](Neighbour& neighbour) {
    if (isOpen(neighbour)) tend(neighbour);
  });
  if (wants_announcement_.exchange(false, std::memory_order_acq_rel) && !is_announced_) {
    is_announced_ = true;
    const Entry entry = ownEntry();
    flood(compose(kNews, {bytesOf(entry), bytesOf(mine_.code), bytesOf(mine_.text)}), nullptr);
  }
  if (wants_call_.exchange(false, std::memory_order_acq_rel)) {
    const std::int32_t rank = rank_;
    const RankStatus::Meeting called = mine_.readMeeting();
    flood(compose(kCall, {bytesOf(rank), bytesOf(called)}), nullptr);
  }
  sendLetters();
  sendAsked();
  const auto now = Clock::now();
  if (round_ && (round_->missing_children == 0 || now >= round_->deadline)) finishRound();
  forNeighbours([this](Neighbour& neighbour) {
    if (isOpen(neighbour) && neighbour.channel.wantsToWrite()) tend(neighbour);
  });
  Next next;
  const auto within = [&next](milliseconds delay) {
    next.delay = next.delay ? std::min(*next.delay, delay) : delay;
  };
  if (round_) within(std::max(milliseconds(1), std::chrono::ceil<milliseconds>(round_->deadline - now)));
  if (wants_status_.load(std::memory_order_acquire)) within(kAskEvery);
  forNeighbours([&](Neighbour& neighbour) {
    if (isOpen(neighbour) && neighbour.channel.wantsToWrite()) within(milliseconds(1));
  });
  return next;
}

/// Reads and writes what is possible. The last words of a neighbour are heard before its end is noticed.
void ControlPlane::tend(Neighbour& neighbour) {
  const bool alive = neighbour.channel.pump();
  for (const Bytes& message : std::exchange(neighbour.early, {})) hear(neighbour, message);
  while (const auto message = neighbour.channel.receive()) hear(neighbour, *message);
  if (!alive) lose(neighbour);
}

void ControlPlane::sendAsked() {
  const auto now = Clock::now();
  if (!wants_status_.load(std::memory_order_acquire) || now < next_round_ || round_) return;
  wants_status_.store(false, std::memory_order_release);
  next_round_ = now + kAskEvery;
  if (!tree_.parent) {
    startRound(++last_round_);
  } else if (isOpen(*tree_.parent)) {
    tree_.parent->channel.send(compose(kAsk, {}));
  }
}

/// Who waits above others waits longer: what they report without one that is stopped must not be late.
void ControlPlane::startRound(std::uint64_t number) {
  round_ = Round{.number = number,
                 .entries = {ownEntry()},
                 .missing_children = 0,
                 .deadline = Clock::now() + kRoundTime * treeLevelsBelow(rank_, nranks_)};
  const Bytes collect = compose(kCollect, {bytesOf(number)});
  for (Neighbour& child : tree_.children) {
    if (!isOpen(child)) continue;
    child.channel.send(collect);
    ++round_->missing_children;
  }
}

/// Sends on what was collected: up, or, at the root, to all.
void ControlPlane::finishRound() {
  const Round round = *std::exchange(round_, std::nullopt);
  const std::span entries(reinterpret_cast<const std::uint8_t*>(round.entries.data()),
                          round.entries.size() * sizeof(Entry));
  const Bytes message = compose(tree_.parent ? kReport : kTable, {bytesOf(round.number), entries});
  if (tree_.parent) {
    if (isOpen(*tree_.parent)) tree_.parent->channel.send(message);
    return;
  }
  flood(message, nullptr);
  takeTable(round.entries);
}

void ControlPlane::takeTable(std::span<const Entry> entries) {
  std::vector<bool> answered(copies_.size());
  for (const Entry& entry : entries) {
    if (entry.rank < 0 || entry.rank >= nranks_) continue;
    answered[static_cast<std::size_t>(entry.rank)] = true;
    store(entry);
  }
  answers_.told(answered);
}

void ControlPlane::hear(const Neighbour& from, const Bytes& message) {
  if (message.empty()) return;
  const auto payload = std::span(message).subspan(1);
  switch (message[0]) {
    case kAsk:
      return wants_status_.store(true, std::memory_order_release);
    case kCollect:
    case kReport:
    case kTable:
      return hearRound(from, payload, message);
    case kNews:
      return hearNews(from, payload, message);
    case kLost:
      return hearLost(from, payload, message);
    case kCall:
      return hearCall(from, payload, message);
    case kLetter:
      return hearLetter(payload, message);
    default:
      return;  // what is left of the bootstrap: a neighbour's good-bye
  }
}

void ControlPlane::hearRound(const Neighbour& from, std::span<const std::uint8_t> payload,
                             const Bytes& message) {
  std::uint64_t number = 0;
  if (payload.size() < sizeof(number)) return;
  std::memcpy(&number, payload.data(), sizeof(number));
  if (message[0] == kCollect) return startRound(number);
  std::vector<Entry> entries((payload.size() - sizeof(number)) / sizeof(Entry));
  std::memcpy(entries.data(), payload.data() + sizeof(number), entries.size() * sizeof(Entry));
  if (message[0] == kTable) {
    takeTable(entries);
    return flood(message, &from);
  }
  if (!round_ || round_->number != number || round_->missing_children == 0) return;
  round_->entries.insert(round_->entries.end(), entries.begin(), entries.end());
  --round_->missing_children;
}

void ControlPlane::hearNews(const Neighbour& from, std::span<const std::uint8_t> payload,
                            const Bytes& message) {
  Entry entry;
  std::int32_t code = 0;
  if (payload.size() != sizeof(entry) + sizeof(code) + sizeof(RankStatus::text)) return;
  std::memcpy(&entry, payload.data(), sizeof(entry));
  if (entry.rank < 0 || entry.rank >= nranks_ || entry.rank == rank_) return;
  RankStatus& copy = copyOf(entry.rank);
  if (copy.state.load(std::memory_order_relaxed) != RankStatus::State::active) return;
  store(entry);
  std::memcpy(&copy.code, payload.data() + sizeof(entry), sizeof(code));
  std::memcpy(copy.text.data(), payload.data() + sizeof(entry) + sizeof(code), copy.text.size());
  copy.text.back() = '\0';
  copy.state.store(entry.state, std::memory_order_release);
  if (entry.state == RankStatus::State::left) {
    has_gaps_.store(true, std::memory_order_release);
    events_.gone(entry.rank);
  }
  flood(message, &from);
}

void ControlPlane::hearLost(const Neighbour& from, std::span<const std::uint8_t> payload,
                            const Bytes& message) {
  std::int32_t rank = -1;
  if (payload.size() != sizeof(rank)) return;
  std::memcpy(&rank, payload.data(), sizeof(rank));
  if (rank < 0 || rank >= nranks_ || rank == rank_ || isLost(rank)) return;
  lost_[static_cast<std::size_t>(rank)].store(true, std::memory_order_release);
  has_gaps_.store(true, std::memory_order_release);
  events_.gone(rank);
  flood(message, &from);
}

void ControlPlane::hearCall(const Neighbour& from, std::span<const std::uint8_t> payload,
                            const Bytes& message) {
  std::int32_t rank = -1;
  RankStatus::Meeting called;
  if (payload.size() != sizeof(rank) + sizeof(called)) return;
  std::memcpy(&rank, payload.data(), sizeof(rank));
  if (rank < 0 || rank >= nranks_ || rank == rank_) return;
  std::memcpy(&called, payload.data() + sizeof(rank), sizeof(called));
  copyOf(rank).call(called);
  flood(message, &from);
}

void ControlPlane::send(int to, std::vector<std::uint8_t> letter, const Watcher& watcher) {
  const std::int32_t addresses[2] = {to, rank_};
  {
    const std::lock_guard lock(letters_mutex_);
    letters_.emplace_back(to, compose(kLetter, {bytesOf(addresses), letter}));
  }
  watcher.wake();
}

void ControlPlane::sendLetters() {
  std::vector<std::pair<int, Bytes>> letters;
  {
    const std::lock_guard lock(letters_mutex_);
    letters.swap(letters_);
  }
  for (const auto& [to, message] : letters) forward(to, message);
}

void ControlPlane::hearLetter(std::span<const std::uint8_t> payload, const Bytes& message) {
  std::int32_t addresses[2] = {-1, -1};
  if (payload.size() < sizeof(addresses)) return;
  std::memcpy(addresses, payload.data(), sizeof(addresses));
  const auto [to, from] = addresses;
  if (to < 0 || to >= nranks_ || from < 0 || from >= nranks_) return;
  if (to != rank_) return forward(to, message);
  events_.letter(from, payload.subspan(sizeof(addresses)));
}

/// To the child whose subtree the rank is in, else up.
void ControlPlane::forward(int to, const Bytes& message) {
  int next = to;
  while (next > rank_ && treeParent(next) != rank_) next = treeParent(next);
  forNeighbours([&](Neighbour& neighbour) {
    const bool is_parent = tree_.parent && &neighbour == &*tree_.parent;
    const bool is_next = next > rank_ ? neighbour.rank == next : is_parent;
    if (is_next && isOpen(neighbour)) neighbour.channel.send(message);
  });
}

/// A neighbour's channel has ended: it left, as it said before, or its process or host is gone.
void ControlPlane::lose(const Neighbour& neighbour) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, neighbour.channel.fd(), nullptr);
  const bool has_left =
      copyOf(neighbour.rank).state.load(std::memory_order_relaxed) == RankStatus::State::left;
  lost_[static_cast<std::size_t>(neighbour.rank)].store(true, std::memory_order_release);
  has_gaps_.store(true, std::memory_order_release);
  if (has_left) return;
  events_.gone(neighbour.rank);
  const std::int32_t rank = neighbour.rank;
  flood(compose(kLost, {bytesOf(rank)}), &neighbour);
}

void ControlPlane::flood(const Bytes& message, const Neighbour* except) {
  forNeighbours([&](Neighbour& neighbour) {
    if (&neighbour != except && isOpen(neighbour)) neighbour.channel.send(message);
  });
}

}  // namespace tutti
