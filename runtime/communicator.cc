#include "runtime/communicator.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "collectives/planner.h"
#include "collectives/programs.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Pauses before a wait yields, where every rank has a core: half a microsecond, more than a hand-over
/// between cores takes.
constexpr std::uint32_t kSpins = 30;

std::uint32_t spinsFor(const Wiring& wiring) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) != 0) return 0;
  // All ranks are on this host. Where they outnumber the cores, the peer waits for the core that a spin would
  // hold.
  return wiring.peers.size() <= static_cast<std::size_t>(CPU_COUNT(&cores)) ? kSpins : 0;
}

/// Marks a communicator as in use by this thread, so that abort knows and a second thread is refused.
class Occupancy {
 public:
  explicit Occupancy(std::atomic<bool>& busy) : busy_(busy) {
    if (busy_.exchange(true, std::memory_order_acq_rel)) {
      throw Error(ncclInvalidUsage,
                  "two threads called operations on one communicator at once. Use one thread, or one "
                  "communicator each");
    }
  }
  Occupancy(const Occupancy&) = delete;
  Occupancy& operator=(const Occupancy&) = delete;
  ~Occupancy() {
    busy_.store(false, std::memory_order_release);
  }  // abort may free the communicator from here on

 private:
  std::atomic<bool>& busy_;
};

}  // namespace

Communicator::Communicator(Process& process, Settings settings, int nranks, const UniqueId& id, int rank)
    : process_(process),
      settings_(std::move(settings)),
      nranks_(nranks),
      rank_(rank),
      wiring_(makeWiring(process, settings_, nranks, id, rank)),
      monitor_(wiring_, rank, settings_, fault_,
               [this](const std::string& text) { process_.log().write(LogLevel::warn, rank_, text); }),
      wait_{fault_, monitor_, spinsFor(wiring_)} {
  process_.log().write(LogLevel::version, rank_,
                       fmt::format("NCCL API {}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH));
  process_.log().write(
      LogLevel::info, rank_,
      fmt::format("joined a communicator of {}: {}; {} lane(s) of {} slots of {} bytes", nranks_,
                  wiring_.summary.empty() ? "alone" : wiring_.summary, settings_.links.lanes,
                  settings_.links.slot_count, settings_.links.slot_bytes));
}

Communicator::~Communicator() {
  RankStatus& mine = wiring_.board[rank_];
  auto expected = RankStatus::State::active;
  mine.state.compare_exchange_strong(expected, RankStatus::State::left, std::memory_order_release,
                                     std::memory_order_relaxed);
}

void Communicator::run(const Descriptor& descriptor, const void* send, void* recv) {
  const Occupancy occupancy(busy_);
  validateOperation(descriptor, nranks_, rank_, send, recv);
  if (fault_.tripped()) throwFault();
  if (descriptor.count == 0) return;

  RankStatus& mine = wiring_.board[rank_];
  mine.enter(++operation_, descriptor);
  monitor_.begin(operation_, descriptor);
  const UserBuffers buffers{static_cast<const std::byte*>(send), static_cast<std::byte*>(recv)};
  // What lies unread before this rank takes part can only belong to this operation: the left neighbour cannot
  // finish it without this rank. Anything else was sent by a call that this rank did not make.
  if (const SlotHeader* unread = unreadSlot(); unread != nullptr && unread->descriptor != descriptor) {
    monitor_.differs(wiring_.from_left->lanes()[0].peer, unread->descriptor);
  }
  const bool done = !fault_.tripped() && execute(makePlan(descriptor, nranks_, settings_.links), buffers) &&
                    (!hasRoot(descriptor.collective) || monitor_.agree());
  if (!done) {
    publishFault();
    throwFault();
  }
  operations_completed_.fetch_add(1, std::memory_order_relaxed);
  mine.completed.store(operation_, std::memory_order_release);
}

const SlotHeader* Communicator::unreadSlot() const {
  if (wiring_.from_left == nullptr) return nullptr;
  for (const LinkView& link : wiring_.from_left->lanes()) {
    const std::uint64_t next = link.released->value.load(std::memory_order_relaxed);
    if (link.posted->value.load(std::memory_order_acquire) > next) return &link.header(next);
  }
  return nullptr;
}

void Communicator::requireAllReceived() {
  const SlotHeader* unread = unreadSlot();
  if (unread == nullptr || fault_.tripped()) return;
  throw Error(
      ncclInvalidUsage,
      fmt::format(
          "rank {} of {}: the communicator ends, but rank {} sent data for {}, which no call of this rank "
          "received. All ranks must make the same calls in the same order",
          rank_, nranks_, wiring_.from_left->lanes()[0].peer, describe(unread->descriptor)));
}

bool Communicator::execute(const Plan& plan, const UserBuffers& buffers) {
  for (std::uint32_t lane = 0; lane < plan.lanes; ++lane) {
    std::span<const LinkView> inbound;
    std::span<const LinkView> outbound;
    if (nranks_ > 1) {
      inbound = std::span(wiring_.from_left->lanes()).subspan(lane, 1);
      outbound = std::span(wiring_.to_right->lanes()).subspan(lane, 1);
    }
    HostExecutor executor(plan, buffers, inbound, outbound, wait_, fault_);
    const bool done = runProgram(executor, plan, laneWork(plan, rank_, lane));
    count(executor.posted());
    if (!done) return false;
  }
  return true;
}

void Communicator::count(const PostedTraffic& traffic) {
  slots_posted_.fetch_add(traffic.slots, std::memory_order_relaxed);
  payload_slot_bytes_.fetch_add(traffic.payload_bytes, std::memory_order_relaxed);
}

tuttiStatistics_t Communicator::statistics() const {
  tuttiStatistics_t result{};
  result.operations = operations_completed_.load(std::memory_order_relaxed);
  result.slots_posted = slots_posted_.load(std::memory_order_relaxed);
  result.payload_slot_bytes = payload_slot_bytes_.load(std::memory_order_relaxed);
  return result;
}

void Communicator::publishFault() {
  if (published_.exchange(true, std::memory_order_acq_rel)) return;
  RankStatus& mine = wiring_.board[rank_];
  mine.code = fault_.code();
  const std::string& text = fault_.message();
  std::memcpy(mine.text.data(), text.data(), std::min(text.size(), mine.text.size() - 1));
  mine.state.store(RankStatus::State::failed, std::memory_order_release);
}

void Communicator::throwFault() const {
  throw Error(fault_.code(), fmt::format("rank {} of {}: {}", rank_, nranks_, fault_.message()));
}

bool Communicator::abort() {
  const PeerInfo& self = wiring_.peers[static_cast<std::size_t>(rank_)];
  if (fault_.trip(ncclRemoteError, describe(self) + " aborted the communicator")) publishFault();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (busy() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return !busy();
}

}  // namespace tutti
