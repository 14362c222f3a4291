#include "transports/verbs/connecting.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <utility>

namespace tutti {
namespace {

// Linux resolves an address for the transition to RTR (rdma_resolve_ip, with a limit of one second); with
// three tries of neighbour discovery, Soft-RoCE of Linux 6.1 was measured to come back after three. A driver
// that is stuck may never.

bool isOver(const std::shared_future<std::string>& result) {
  return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

/// The library that holds this code is not unloaded any more. In a program's own code there is nothing to do.
void stayLoaded() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&stayLoaded), &here) == 0) return;
  ::dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

void ConnectingThreads::run(std::packaged_task<std::string()> task,
                            const std::shared_future<std::string>& result) {
  std::erase_if(running_, [](Running& running) {
    if (!isOver(running.result)) return false;
    running.thread.join();
    return true;
  });
  running_.reserve(running_.size() + 1);
  auto shared = std::make_shared<std::packaged_task<std::string()>>(std::move(task));
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    running_.push_back({std::thread([shared] { (*shared)(); }), result});
    shared.reset();
  } catch (const std::exception&) {
    // No thread: all have to wait.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (shared != nullptr) (*shared)();
}

ConnectingThreads::~ConnectingThreads() {
  const auto deadline = std::chrono::steady_clock::now() + patience_;
  bool has_any_left = false;
  for (Running& running : running_) {
    if (running.result.wait_until(deadline) == std::future_status::ready) {
      running.thread.join();
      continue;
    }
    if (!std::exchange(has_any_left, true)) stayLoaded();
    running.thread.detach();
  }
  if (!has_any_left || !note_) return;
  try {
    note_(
        fmt::format("RDMA: connecting queue pairs has kept the kernel busy for more than {} ms, though "
                    "nobody waits for it any more. A thread is left behind until it ends, and the library "
                    "stays loaded. dmesg may say what the device's driver waits for",
                    patience_.count()));
  } catch (const std::exception&) {
    // A destructor: what cannot be said stays unsaid.
  }
}

Connecting::Connecting(ConnectingThreads& threads, std::shared_ptr<QueuePairs> pairs, const Gid& mine,
                       const QueuePairAddress& remote, const RdmaSettings& settings) {
  // Whatever it throws becomes its result.
  std::packaged_task<std::string()> task([pairs = std::move(pairs), mine, remote, settings]() mutable {
    // Whoever has the result may end the pairs at once; nothing of theirs is touched here after it.
    const std::shared_ptr<QueuePairs> own = std::move(pairs);
    try {
      own->connect(mine, remote, settings);
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string();
  });
  result_ = task.get_future().share();
  threads.run(std::move(task), result_);
}

std::optional<std::string> Connecting::result() const {
  if (!isOver(result_)) return std::nullopt;
  try {
    return result_.get();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace tutti
