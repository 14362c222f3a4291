#include "runtime/communicator.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "collectives/planner.h"
#include "collectives/point_to_point.h"
#include "collectives/programs.h"
#include "kernels/host/float_environment.h"
#include "kernels/host/packets.h"
#include "runtime/core/extent.h"
#include "runtime/rings.h"
#include "tutti/error.h"

namespace tutti {
namespace {

/// Pauses before a wait yields, where every rank has a core: half a microsecond, more than a hand-over
/// between cores takes.
constexpr std::uint32_t kSpins = 30;

std::uint32_t spinsFor(const Wiring& wiring, const PeerInfo& self) {
  // Where the ranks of a machine outnumber the cores that they may use, the peer waits for the core that a
  // spin would hold. Ranks may be bound to a core each, so it is the cores of all that count.
  std::vector<PeerInfo> here;
  std::ranges::copy_if(wiring.peers, std::back_inserter(here),
                       [&self](const PeerInfo& peer) { return peer.boot_id == self.boot_id; });
  std::size_t cores = 0;
  for (std::size_t word = 0; word < self.cores.size(); ++word) {
    std::uint64_t any = 0;
    for (const PeerInfo& peer : here) any |= peer.cores[word];
    cores += static_cast<std::size_t>(std::popcount(any));
  }
  return here.size() <= cores ? kSpins : 0;
}

std::uint64_t numberOf(const UniqueId& id) {
  // Of a secret; nobody computes it back from a hash of 64 bits.
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(id.secret.data()), id.secret.size()});  // NOLINT: bytes as characters
}

/// So many bytes of UTF-8 text fit into `most`, with no character cut.
std::size_t wholeCharacters(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text.size();
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0U) == 0x80U) --most;
  return most;
}

/// A caller inside the network links, if there are any.
class NetworkTurn {
 public:
  explicit NetworkTurn(Network* network) : network_(network) {
    if (network_ != nullptr) network_->enter();
  }
  NetworkTurn(const NetworkTurn&) = delete;
  NetworkTurn& operator=(const NetworkTurn&) = delete;
  ~NetworkTurn() {
    if (network_ != nullptr) network_->leave();
  }

 private:
  Network* network_;
};

/// The settings with what this machine adds to them.
Settings completed(Settings settings, bool on_gpu) {
  settings.links.on_gpu = on_gpu;
  settings.links.packet_bytes = on_gpu ? kGpuPacketSlotBytes : packetSlotBytes();
  if (settings.loans.least_bytes == LoanPolicy::kAutomatic) {
    settings.loans.least_bytes = on_gpu ? LoanPolicy::kOnGpu : LoanPolicy::kOnHost;
  }
  return settings;
}

}  // namespace

Communicator::Communicator(Process& process, Settings settings, const Membership& membership,
                           Accelerator* gpus)
    : process_(process),
      gpus_(gpus),
      cuda_beside_(gpus == nullptr ? process.gpus().ifCudaIsUsed() : nullptr),
      device_(gpus != nullptr ? gpus->currentDevice() : -1),
      settings_(completed(std::move(settings), gpus != nullptr)),
      nranks_(membership.nranks),
      rank_(membership.rank),
      agreed_number_(numberOf(membership.id)),
      wiring_(makeWiring(process, settings_,
                         {.nranks = nranks_,
                          .id = membership.id,
                          .rank = rank_,
                          .gpus = gpus,
                          // Others read it, too: it has to say whose link it is about.
                          .fail =
                              [this](ncclResult_t code, const std::string& text) {
                                const PeerInfo& self = wiring_.peers[static_cast<std::size_t>(rank_)];
                                fail(code,
                                     fmt::format("{}: {}{}", describe(self), text, silentText(wiring_)));
                              },
                          .wake = [this] { gpu_work_->wake(); },
                          .check = membership.check})),
      states_(static_cast<std::size_t>(nranks_)),
      scratch_(hostScratchBytes(nranks_)),
      registrations_(process, *wiring_.regions, wiring_.network.get(), wiring_.gpu.get(), rank_),
      meetings_(
          process, settings_, wiring_, rank_, [this] { return !isOnGpu() && !turns_.pending(); },
          [this](ncclResult_t code, const std::string& text) { fail(code, text); }),
      says_calls_(process.log().shows(LogLevel::info, LogSubsystem::coll)),
      around_{wiring_,
              process.watcher(),
              rank_,
              settings_.timeout,
              settings_.stall_timeout,
              fault_,
              [this](const std::string& text) { say(LogLevel::warn, text); }},
      spins_(spinsFor(wiring_, wiring_.peers[static_cast<std::size_t>(rank_)])) {
  sayJoined();
  try {
    startWatching();
    wiring_.binding.release();
  } catch (const Error& error) {
    if (wiring_.gpu != nullptr) abandonHere(error);
    throw;
  }
}

void Communicator::startWatching() {
  if (gpus_ != nullptr) startGpu();
  if (wiring_.network == nullptr) return;
  control_watch_ = std::make_unique<Watching>(process_.watcher(), *wiring_.control);
  network_care_ = std::make_unique<NetworkCare>(*wiring_.network, process_.watcher());
  network_watch_ = std::make_unique<Watching>(process_.watcher(), *network_care_);
  process_.remember(*this);
}

void* Communicator::registerBuffer(const void* buffer, std::size_t bytes) {
  if (gpu_work_ != nullptr) gpu_work_->adoptReset();
  std::string note;
  void* handle = registrations_.add(buffer, bytes, &note);
  say(LogLevel::info, fmt::format("registered {} bytes at {}: {}", bytes, buffer, note), LogSubsystem::reg);
  return handle;
}

void Communicator::validate(const Task& task) const {
  validateTask(task, nranks_, rank_);
  if (gpu_work_ == nullptr) {
    requireReach(task);
  } else if (!fault_.tripped()) {
    try {
      requireReach(task);
    } catch (const Error&) {
      // After a reset of the GPU its buffers are gone, too. Who has other ones hears of it at the launch.
      gpu_work_->adoptReset();
      if (!fault_.tripped()) throw;
    }
  }
  if (revoked_.load(std::memory_order_acquire)) {
    throw Error(ncclInvalidUsage, fmt::format("rank {} of {}: an operation after ncclCommRevoke. Only "
                                              "ncclCommSplit, ncclCommShrink, ncclCommDestroy and "
                                              "ncclCommAbort may follow it",
                                              rank_, nranks_));
  }
  if (fault_.tripped()) throw faultError();
  if (isFinalized()) {
    throw Error(ncclInvalidUsage, fmt::format("rank {} of {}: an operation after ncclCommFinalize. Only "
                                              "ncclCommDestroy and ncclCommAbort may follow it",
                                              rank_, nranks_));
  }
}

Occupancy Communicator::occupy(std::chrono::milliseconds patience) {
  constexpr std::chrono::microseconds kPause{100};
  for (std::chrono::microseconds waited{}; busy_.exchange(true, std::memory_order_acq_rel);
       waited += kPause) {
    if (waited < patience) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    if (fault_.tripped()) throw faultError();
    throw Error(ncclInvalidUsage,
                fmt::format("rank {} of {}: two threads called operations on one communicator at once. Use "
                            "one thread, or one communicator each",
                            rank_, nranks_));
  }
  return Occupancy(busy_);
}

bool Communicator::carryOut(const Task& task, WaitScheduler* scheduler, Caller caller) noexcept {
  const FloatEnvironment environment;  // the caller's may flush denormals, which would change bits
  const NetworkTurn turn(wiring_.network.get());
  bool done = false;
  try {
    done = !fault_.tripped() && (task.kind == Task::Kind::collective ? runCollective(task, scheduler, caller)
                                                                     : runTransfer(task, scheduler, caller));
  } catch (const std::exception& error) {
    trip(task.descriptor, error);
  }
  if (!done) publishFault();
  return done;
}

bool Communicator::runCollective(const Task& task, WaitScheduler* scheduler, Caller caller) {
  const Descriptor& descriptor = task.descriptor;
  RankStatus& mine = wiring_.board[rank_];
  mine.enter(++operation_, descriptor);
  CollectiveMonitor monitor(around_, operation_, descriptor, caller);
  const WaitContext wait{fault_, monitor, spins_, scheduler, wiring_.network.get()};
  UserBuffers buffers{static_cast<const std::byte*>(task.send), static_cast<std::byte*>(task.recv)};
  if (descriptor.op == RedOp::premul_sum) buffers.scale = scaleFrom(descriptor.type, task.scalar.data());
  const PlannedOperation planned =
      planOperation(descriptor, wiring_.layout, wiring_.shape,
                    settings_.plans[static_cast<std::size_t>(descriptor.collective)]);
  sayPlan(planned);
  if (planned.plan.slots == SlotForm::plain && !registrations_.empty()) findRegions(task, buffers);
  const bool done = execute(planned.plan, buffers, wait);
  if (!done) return false;
  traffic_.addOperation();
  mine.completed.store(operation_, std::memory_order_release);
  return true;
}

/// References to registered memory need no copy by the kernel.
void Communicator::findRegions(const Task& task, UserBuffers& buffers) {
  const Descriptor& d = task.descriptor;
  const Extent extent = extentOf(d.collective, nranks_);
  const std::uint64_t block = d.count * sizeOf(d.type);
  buffers.input_region = registrations_.find(buffers.input, extent.send_blocks * block);
  buffers.output_region = registrations_.find(buffers.output, extent.recv_blocks * block);
}

bool Communicator::runTransfer(const Task& task, WaitScheduler* scheduler, Caller caller) {
  const bool is_send = task.kind == Task::Kind::send;
  TransferMonitor monitor(around_, task.descriptor, is_send, caller);
  const WaitContext wait{fault_, monitor, spins_, scheduler, wiring_.network.get()};
  const Plan plan = makePointToPointPlan(task.descriptor, nranks_, wiring_.shape);
  LaneWork work = laneWork(plan, rank_, 0);
  work.root = task.peer;
  UserBuffers buffers{static_cast<const std::byte*>(task.send), static_cast<std::byte*>(task.recv)};
  if (is_send && !registrations_.empty())
    buffers.input_region = registrations_.find(buffers.input, task.descriptor.count);
  HostExecutor executor(plan, buffers, linksOf(wiring_.lanes[0]), wait, fault_);
  return carryThrough(executor, task.descriptor,
                      [&] { return is_send ? sendProgram(executor, work) : receiveProgram(executor, work); });
}

/// Of the machines' own links, where they are what limits and are known: between GPUs, and by RDMA. TCP is no
/// faster than its processor.
void Communicator::useBandwidths(LinkCosts& costs) const {
  const ChannelBandwidths known = bandwidthsOf(wiring_.found);
  if (gpus_ != nullptr && known.inside > 0) costs.inside.gbytes_per_s = known.inside;
  if (wiring_.layout.hosts == 1 || known.between <= 0) return;
  const bool is_rdma = std::ranges::find(wiring_.transports, "verbs") != wiring_.transports.end();
  costs.between.gbytes_per_s = is_rdma ? known.between : std::min(costs.between.gbytes_per_s, known.between);
}

double Communicator::estimateMicroseconds(const Task& task) const {
  const auto costTo = [this](int rank) {
    return linkCost(wiring_.transports[static_cast<std::size_t>(rank)]);
  };
  if (task.kind != Task::Kind::collective) {
    return costTo(task.peer).microseconds(1, static_cast<double>(task.descriptor.count));
  }
  // Links to the next rank of this host, and to one of another.
  LinkCosts costs{linkCost("self"), linkCost("self")};
  for (int rank = 0; rank < nranks_; ++rank) {
    const std::string& name = wiring_.transports[static_cast<std::size_t>(rank)];
    if (name == "self") continue;
    (name == "tcp" || name == "verbs" ? costs.between : costs.inside) = linkCost(name);
  }
  useBandwidths(costs);
  const Plan plan = makePlan(task.descriptor, wiring_.layout, wiring_.shape,
                             settings_.plans[static_cast<std::size_t>(task.descriptor.collective)]);
  return tutti::estimateMicroseconds(plan, wiring_.layout.hosts, costs);
}

tuttiTransport_t Communicator::transport(int peer) const {
  if (peer < 0 || peer >= nranks_) {
    throw Error(ncclInvalidArgument,
                fmt::format("tuttiCommTransport: peer {} is no rank of a communicator of {}", peer, nranks_));
  }
  const std::string& name = wiring_.transports[static_cast<std::size_t>(peer)];
  const std::string details = name == "verbs" ? wiring_.network_name : "";
  tuttiTransport_t result{};
  name.copy(result.name, sizeof(result.name) - 1);
  details.copy(result.details, sizeof(result.details) - 1);
  return result;
}

HostLinks Communicator::linksOf(const LinkRow& links) {
  return {links.inbound, links.outbound, wiring_.peer_memory, wiring_.accepted, states_,
          ++executors_,  scratch_,       settings_.loans};
}

bool Communicator::execute(const Plan& plan, const UserBuffers& buffers, const WaitContext& wait) {
  for (std::uint32_t lane = 0; lane < plan.lanes; ++lane) {
    const LinkRow& links = plan.slots == SlotForm::packets ? wiring_.packets : wiring_.lanes[lane];
    HostExecutor executor(plan, buffers, linksOf(links), wait, fault_);
    const LaneWork work = laneWork(plan, rank_, lane, wiring_.rings.view());
    if (!carryThrough(executor, plan.descriptor, [&] { return runProgram(executor, plan, work); }))
      return false;
  }
  return true;
}

void Communicator::trip(const Descriptor& descriptor, const std::exception& error) {
  fault_.trip(ncclSystemError, fmt::format("{}: {}", describe(descriptor), error.what()));
}

/// False where the operation failed. Its buffers are the caller's again then, too.
template <class Program>
bool Communicator::carryThrough(HostExecutor& executor, const Descriptor& descriptor,
                                const Program& program) {
  bool done = false;
  try {
    done = program();
  } catch (const std::exception& error) {
    trip(descriptor, error);
  }
  traffic_.add(executor.moved());
  if (done && !executor.hasFailed() && !fault_.tripped()) return true;
  executor.giveBackAll();
  publishFault();
  executor.awaitOwn();
  return false;
}

void Communicator::publishFault() {
  RankStatus& mine = wiring_.board[rank_];
  if (published_.exchange(true, std::memory_order_acq_rel)) {
    while (mine.state.load(std::memory_order_seq_cst) == RankStatus::State::active) ::sched_yield();
    // Also by who comes second, and may have the network now: its buffers are the caller's when it returns.
    if (gpu_work_ == nullptr && wiring_.network != nullptr) wiring_.network->halt();
    return;
  }
  while (!fault_.tripped()) ::sched_yield();  // another thread tripped it, and is writing it down
  mine.code = fault_.code();
  const std::string& text = fault_.message();
  std::memcpy(mine.text.data(), text.data(), wholeCharacters(text, mine.text.size() - 1));
  mine.state.store(RankStatus::State::failed, std::memory_order_seq_cst);
  if (wiring_.control != nullptr) wiring_.control->announce(process_.watcher());
  // First the kernels and whoever serves them, so that the network is free.
  if (gpu_work_ != nullptr) gpu_work_->stop();
  if (wiring_.network != nullptr) wiring_.network->halt();
  wiring_.listener = {};
  turns_.cut();
}

ncclResult_t Communicator::asyncError() const {
  // Quiet, as it was asked to be.
  if (revoked_.load(std::memory_order_acquire)) return ncclSuccess;
  if (gpu_work_ != nullptr) {
    gpu_work_->adoptReset();
    gpu_work_->tryAdoptFault();
  }
  if (fault_.tripped()) {
    process_.setLastError(faultError().what());
    return fault_.code();
  }
  // After finalize() the others may end as they like: what is still queued looks for itself.
  if (isFinalized()) return ncclSuccess;
  const auto failure = failureOfPeers(wiring_, rank_);
  if (!failure) return ncclSuccess;
  if (gpu_work_ != nullptr) gpu_work_->noteLostOthers();
  process_.setLastError(fmt::format("rank {} of {}: {}", rank_, nranks_, failure->what()));
  return failure->code();
}

Error Communicator::faultError() const {
  is_fault_told_.store(true, std::memory_order_relaxed);
  return {fault_.code(), fmt::format("rank {} of {}: {}", rank_, nranks_, fault_.message())};
}

void Communicator::fail(ncclResult_t code, const std::string& text) {
  fault_.trip(code, text);
  publishFault();
}

}  // namespace tutti
