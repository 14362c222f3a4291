#include "runtime/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/host/fibre_runner.h"
#include "runtime/process.h"
#include "runtime/stream.h"

namespace tutti {
namespace {

void copyToSelf(const Task& send, const Task& receive) {
  if (send.descriptor.count != 0) std::memmove(receive.recv, send.send, send.descriptor.count);
}

}  // namespace

void launchInline(Communicator& communicator, const Task& task) {
  if (!communicator.carryOut(task, nullptr)) throw communicator.faultError();
}

Batch::Share& Batch::shareOf(const std::shared_ptr<Communicator>& communicator) {
  for (Share& share : shares_) {
    if (share.communicator == communicator) return share;
  }
  return shares_.emplace_back(Share{.communicator = communicator});
}

void Batch::add(const std::shared_ptr<Communicator>& communicator, const Task& task, const Placement& place) {
  const auto addOnce = [](auto& list, const auto& item) {
    if (std::ranges::find(list, item) == list.end()) list.push_back(item);
  };
  Share& share = shareOf(communicator);
  if (communicator->isOnGpu()) {
    addOnce(share.gpu_streams, place.gpu);
  } else if (place.host == nullptr) {
    has_waiting_caller_ = true;
  } else {
    addOnce(streams_, place.host);
  }
  if (task.kind == Task::Kind::collective) {
    share.collectives.push_back(task);
    return;
  }
  auto& queues = task.kind == Task::Kind::send ? share.sends : share.receives;
  const auto found = std::ranges::find(queues, task.peer, &Queue::peer);
  Queue& queue = found != queues.end() ? *found : queues.emplace_back(Queue{task.peer, {}});
  queue.tasks.push_back(task);
}

const std::vector<Task>* Batch::tasksWith(const std::vector<Queue>& queues, int peer) {
  const auto found = std::ranges::find(queues, peer, &Queue::peer);
  return found != queues.end() ? &found->tasks : nullptr;
}

/// A send of a rank to itself and its receive are one copy, so they must be there together.
void Batch::requireSelfPairs() const {
  for (const Share& share : shares_) {
    const int self = share.communicator->rank();
    const auto* sends = tasksWith(share.sends, self);
    const auto* receives = tasksWith(share.receives, self);
    const std::size_t send_count = sends != nullptr ? sends->size() : 0;
    const std::size_t receive_count = receives != nullptr ? receives->size() : 0;
    if (send_count != receive_count) {
      throw Error(
          ncclInvalidUsage,
          fmt::format("rank {}: {} Send(s) to itself, but {} Recv(s) from itself. Each needs the other "
                      "in the same group (ncclGroupStart, ncclGroupEnd)",
                      self, send_count, receive_count));
    }
    for (std::size_t i = 0; i < send_count; ++i) {
      const std::uint64_t sent = (*sends)[i].descriptor.count;
      const std::uint64_t expected = (*receives)[i].descriptor.count;
      if (sent == expected) continue;
      throw Error(
          ncclInvalidUsage,
          fmt::format("rank {}: its Send number {} to itself is of {} bytes, but its Recv of {} bytes. "
                      "They must be equal",
                      self, i, sent, expected));
    }
  }
}

/// Some of it would run now, and some each time that the graph does.
void Batch::requireOneCapture() const {
  std::optional<bool> captured;
  for (const Share& share : shares_) {
    if (!share.communicator->isOnGpu()) continue;
    if (shares_.size() == 1 && share.gpu_streams.size() == 1) return;
    for (const GpuStream stream : share.gpu_streams) {
      const bool is_captured = share.communicator->isCapturing(stream);
      if (captured.value_or(is_captured) != is_captured) {
        throw Error(ncclInvalidUsage,
                    "a group has work on a stream that is being captured and on one that is not. End the "
                    "group before the capture begins, or capture all of its streams");
      }
      captured = is_captured;
    }
  }
}

double Batch::estimateMicroseconds() const {
  double longest = 0;
  for (const Share& share : shares_) {
    const auto sum = [&share](const std::vector<Task>& tasks) {
      double total = 0;
      for (const Task& task : tasks) total += share.communicator->estimateMicroseconds(task);
      return total;
    };
    const auto sumOfQueues = [&sum](const std::vector<Queue>& queues) {
      double total = 0;
      for (const Queue& queue : queues) total += sum(queue.tasks);
      return total;
    };
    longest = std::max(
        longest, sum(share.collectives) + std::max(sumOfQueues(share.sends), sumOfQueues(share.receives)));
  }
  return longest;
}

bool Batch::needsTurns() const {
  return !streams_.empty() || std::ranges::any_of(shares_, [](const Share& share) {
    return share.communicator->turns().pending();
  });
}

void Batch::launch() {
  requireSelfPairs();
  requireOneCapture();
  std::vector<Occupancy> occupancies;
  occupancies.reserve(shares_.size());
  for (const Share& share : shares_) occupancies.push_back(share.communicator->occupy());
  // Kernels run by themselves: all of them are launched before anything is waited for. Those of one stream
  // wait for each other: so their communicators must come in the same order on every rank.
  std::ranges::stable_sort(shares_, {}, [](const Share& s) { return s.communicator->agreedNumber(); });
  for (const Share& share : shares_) {
    if (share.communicator->isOnGpu()) launchOnGpu(share);
  }
  std::erase_if(shares_, [](const Share& s) { return s.communicator->isOnGpu(); });
  if (shares_.empty()) return;
  if (!needsTurns()) {
    carryOut();
    if (const auto error = firstFault()) throw Error(*error);
    return;
  }
  issue();
  if (!has_waiting_caller_) return;
  if (const auto error = arrive()) throw Error(*error);
}

/// Gives the batch its places, in every queue at once: so the order of any two batches is the same in all
/// queues, and the one that was issued first never waits for the other.
void Batch::issue() {
  const std::scoped_lock lock(Process::instance().issueOrder());
  for (const auto& stream : streams_) stream->requireOpen();
  for (Share& share : shares_) share.ticket = share.communicator->turns().issue();
  for (const auto& stream : streams_) stream->push(shared_from_this());
}

std::optional<Error> Batch::arrive() noexcept {
  std::unique_lock lock(mutex_);
  if (++arrived_ == streams_.size() + (has_waiting_caller_ ? 1 : 0)) {
    lock.unlock();
    execute();
    lock.lock();
    done_ = true;
    done_changed_.notify_all();
  } else {
    done_changed_.wait(lock, [this] { return done_; });
  }
  return firstFault();
}

void Batch::execute() noexcept {
  for (const Share& share : shares_) share.communicator->turns().await(share.ticket);
  {
    std::vector<Presence> presences;
    presences.reserve(shares_.size());
    for (const Share& share : shares_) presences.push_back(share.communicator->enter());
    carryOut();
  }
  for (const Share& share : shares_) share.communicator->turns().done();
}

std::optional<Error> Batch::firstFault() const {
  for (const Share& share : shares_) {
    if (share.communicator->fault().tripped()) return share.communicator->faultError();
  }
  return std::nullopt;
}

void Batch::carryOut() noexcept {
  std::uint32_t spins = std::numeric_limits<std::uint32_t>::max();
  for (const Share& share : shares_) spins = std::min(spins, share.communicator->spins());
  FibreRunner runner(spins);
  const Caller caller = has_waiting_caller_ ? Caller::waits : Caller::goes_on;
  try {
    for (const Share& share : shares_) addStrands(share, runner, caller);
    runner.run();
  } catch (const std::exception& error) {
    for (const Share& share : shares_) {
      share.communicator->fail(ncclSystemError, fmt::format("launching a group: {}", error.what()));
    }
  }
}

/// The same on a GPU: collectives in order, then all queues of transfers side by side.
void Batch::launchOnGpu(const Share& share) {
  Communicator& communicator = *share.communicator;
  const int nranks = communicator.nranks();
  const int self = communicator.rank();
  GpuTasks tasks{.collectives = share.collectives, .to_self = {}, .queues = {}, .streams = share.gpu_streams};
  if (const auto* sends = tasksWith(share.sends, self)) {
    const auto* receives = tasksWith(share.receives, self);
    for (std::size_t i = 0; i < sends->size(); ++i) tasks.to_self.emplace_back(&(*sends)[i], &(*receives)[i]);
  }
  for (int d = 1; d < nranks; ++d) {
    const auto* sends = tasksWith(share.sends, (self + d) % nranks);
    const auto* receives = tasksWith(share.receives, (self - d + nranks) % nranks);
    if (sends != nullptr) tasks.queues.push_back(sends);
    if (receives != nullptr) tasks.queues.push_back(receives);
  }
  communicator.launchOnGpu(tasks);
}

/// The collectives of a communicator in order; after them its transfers, the queues all at once.
void Batch::addStrands(const Share& share, FibreRunner& runner, Caller caller) {
  Communicator& communicator = *share.communicator;
  const auto runInOrder = [&communicator, caller](const std::vector<Task>& tasks) {
    return [&communicator, &tasks, caller](WaitScheduler* scheduler) {
      for (const Task& task : tasks) {
        if (!communicator.carryOut(task, scheduler, caller)) return;
      }
    };
  };
  std::size_t first = FibreRunner::kNone;
  if (!share.collectives.empty()) first = runner.add(runInOrder(share.collectives));
  const int nranks = communicator.nranks();
  const int self = communicator.rank();
  if (const auto* sends = tasksWith(share.sends, self)) {
    const auto* receives = tasksWith(share.receives, self);
    runner.add(
        [sends, receives](WaitScheduler*) {
          for (std::size_t i = 0; i < sends->size(); ++i) copyToSelf((*sends)[i], (*receives)[i]);
        },
        first);
  }
  // Round d: everyone sends to the rank d to its right while it receives from the rank d to its left.
  for (int d = 1; d < nranks; ++d) {
    if (const auto* sends = tasksWith(share.sends, (self + d) % nranks))
      runner.add(runInOrder(*sends), first);
    if (const auto* receives = tasksWith(share.receives, (self - d + nranks) % nranks)) {
      runner.add(runInOrder(*receives), first);
    }
  }
}

}  // namespace tutti
