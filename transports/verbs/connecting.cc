#include "transports/verbs/connecting.h"

#include <atomic>
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
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    work();  // no thread to be had: all have to wait
  }
}

std::optional<std::string> Connecting::result() const {
  if (!shared_->is_done.load(std::memory_order_acquire)) return std::nullopt;
  return shared_->problem;
}

}  // namespace tutti
