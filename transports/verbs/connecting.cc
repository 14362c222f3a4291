#include "transports/verbs/connecting.h"

#include <atomic>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "tutti/error.h"

namespace tutti {

struct Connecting::Shared {
  std::string problem;               ///< written by the thread, before
  std::atomic<bool> is_done{false};  ///< release; who acquires it may read the problem
};

Connecting::Connecting(std::shared_ptr<QueuePairs> pairs, const Gid& mine, const QueuePairAddress& remote,
                       const RdmaSettings& settings)
    : shared_(std::make_shared<Shared>()) {
  auto work = [shared = shared_, pairs = std::move(pairs), mine, remote, settings]() mutable {
    try {
      pairs->connect(mine, remote, settings);
    } catch (const Error& error) {
      shared->problem = error.what();
    }
    // Whoever sees it may end the pairs at once; nothing of theirs is touched here after it.
    pairs.reset();
    shared->is_done.store(true, std::memory_order_release);
  };
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  bool has_thread = true;
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    has_thread = false;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!has_thread) work();  // all have to wait
}

std::optional<std::string> Connecting::result() const {
  if (!shared_->is_done.load(std::memory_order_acquire)) return std::nullopt;
  return shared_->problem;
}

}  // namespace tutti
