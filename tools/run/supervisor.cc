#include "tools/run/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

namespace tutti::run {
namespace {

constexpr std::uint64_t kSignalKey = UINT64_MAX;
/// How long processes that outlive the ranks may go on writing.
constexpr std::chrono::seconds kLeftoverTime{2};
constexpr int kOutputLost = 1;

UniqueFd makeEpoll() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) throw systemError("epoll_create1");
  return epoll;
}

/// The keys of what is ready now, oldest event first.
template <std::size_t kCount>
std::vector<std::uint64_t> readyKeys(const UniqueFd& epoll) {
  std::array<epoll_event, kCount> events{};
  const int count = ::epoll_wait(epoll.get(), events.data(), static_cast<int>(kCount), 0);
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(std::max(count, 0)));
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = events[i].data.u64;
  return keys;
}

std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{} s", static_cast<double>(time.count()) / 1000);
}

}  // namespace

Supervisor::Supervisor(const Options& options, const ProcessSetup& setup)
    : options_(options), setup_(setup), control_(makeEpoll()), out_(makeEpoll()), err_(makeEpoll()) {
  watch(control_.get(), setup_.signalFd(), kSignalKey);
}

int Supervisor::run(const LaunchPlan& plan) {
  start(plan);
  while (running_ > 0 || streamsOpen()) {
    sleep();
    handleControl();
    handleOutput();
    handleDeadlines();
    queue_.flush();
    sayWhatIsLost();
  }
  saySummary();
  writeRest();
  sayWhatIsLost();
  writeRest();
  if (first_failed_) return ranks_[static_cast<std::size_t>(*first_failed_)]->ending->exitStatus();
  return is_output_lost_ ? kOutputLost : 0;
}

void Supervisor::start(const LaunchPlan& plan) {
  const auto width = fmt::formatted_size("{}", plan.ranks - 1);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto prefix = options_.prefix ? fmt::format("[{:>{}}] ", rank, width) : std::string();
    const auto key = static_cast<std::uint64_t>(rank);
    auto process = std::make_unique<RankProcess>(
        plan, setup_, rank, [this, key](int pid_fd) { watch(control_.get(), pid_fd, key); });
    RankStream out(process->takeOut(), Stream::out, prefix, queue_);
    RankStream err(process->takeErr(), Stream::err, prefix, queue_);
    watch(out_.get(), out.fd(), key);
    watch(err_.get(), err.fd(), key);
    ranks_.push_back(std::make_unique<Rank>(std::move(process), std::move(out), std::move(err)));
    ++running_;
  }
}

void Supervisor::watch(int epoll, int fd, std::uint64_t key) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) throw systemError("epoll_ctl");
}

void Supervisor::sleep() const {
  std::vector<pollfd> fds{{control_.get(), POLLIN, 0}};
  if (!queue_.full(Stream::out)) fds.push_back({out_.get(), POLLIN, 0});
  if (!queue_.full(Stream::err)) fds.push_back({err_.get(), POLLIN, 0});
  for (const int fd : queue_.blockedFds()) fds.push_back({fd, POLLOUT, 0});
  if (::poll(fds.data(), fds.size(), sleepLimit()) < 0 && errno != EINTR) throw systemError("poll");
}

int Supervisor::sleepLimit() const {
  std::optional<Clock::time_point> first;
  for (const auto& deadline : {term_at_, kill_at_, close_at_}) {
    if (deadline && (!first || *deadline < *first)) first = deadline;
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now());
  return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 1'000'000));
}

void Supervisor::handleControl() {
  for (const auto key : readyKeys<64>(control_)) {
    if (key == kSignalKey) {
      handleSignals();
    } else {
      handleEnd(static_cast<int>(key));
    }
  }
}

void Supervisor::handleOutput() {
  if (!queue_.full(Stream::out)) {
    for (const auto key : readyKeys<16>(out_)) ranks_[key]->out.read();
  }
  if (!queue_.full(Stream::err)) {
    for (const auto key : readyKeys<16>(err_)) ranks_[key]->err.read();
  }
}

void Supervisor::handleEnd(int number) {
  auto& rank = *ranks_[static_cast<std::size_t>(number)];
  rank.ending = rank.process->ending();
  if (!rank.ending) return;
  ::epoll_ctl(control_.get(), EPOLL_CTL_DEL, rank.process->pidFd(), nullptr);
  --running_;
  // Its last words come before ours about it. Bounded, as a process it left behind may write for ever.
  for (int i = 0; i < 4 && rank.out.read(); ++i) {
  }
  for (int i = 0; i < 4 && rank.err.read(); ++i) {
  }
  const auto now = Clock::now();
  if (rank.ending->failed() && !first_failed_) {
    first_failed_ = number;
    if (stop_signal_ == 0) sayFirstFailure();
    if (!kill_at_) term_at_ = now + options_.kill_after;
  }
  if (running_ == 0) {
    term_at_.reset();
    kill_at_.reset();
    close_at_ = now + kLeftoverTime;
  }
}

void Supervisor::handleSignals() {
  signalfd_siginfo info{};
  while (::read(setup_.signalFd(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    for (const auto& rank : ranks_) rank->process->signalGroup(signal);
    if (signal != SIGUSR1 && signal != SIGUSR2) handleStop(signal);
  }
}

void Supervisor::handleStop(int signal) {
  const bool again = stop_signal_ != 0;
  if (!again) {
    stop_signal_ = signal;
    stopped_early_ = !first_failed_;
  }
  if (running_ == 0) {  // only output is left: whoever stops us does not want to wait for it
    close_at_ = Clock::now();
    abandon_output_ = true;
  } else if (again && signal == SIGINT) {
    stopRunning(SIGKILL);
  } else if (!kill_at_) {
    term_at_.reset();
    kill_at_ = Clock::now() + options_.grace;
  }
}

void Supervisor::handleDeadlines() {
  const auto now = Clock::now();
  if (term_at_ && now >= *term_at_) {
    term_at_.reset();
    say(fmt::format("{} still running {} after the failure; sending SIGTERM", rankList(runningRanks()),
                    seconds(options_.kill_after)));
    kill_at_ = now + options_.grace;
    stopRunning(SIGTERM);
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    say(fmt::format("{} still running {} after the signal; sending SIGKILL", rankList(runningRanks()),
                    seconds(options_.grace)));
    stopRunning(SIGKILL);
  }
  if (close_at_ && now >= *close_at_) {
    const bool stalled = queue_.full(Stream::out) || queue_.full(Stream::err);
    if (stalled && stop_signal_ == 0) {
      close_at_ = now + kLeftoverTime;  // they may be waiting for us
    } else {
      closeStreams();
    }
  }
}

std::vector<int> Supervisor::runningRanks() const {
  std::vector<int> result;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i]->ending) result.push_back(static_cast<int>(i));
  }
  return result;
}

void Supervisor::stopRunning(int signal) {
  for (const auto& rank : ranks_) {
    if (!rank->ending) rank->stopped_with = signal;
    rank->process->signalGroup(signal);
  }
}

void Supervisor::closeStreams() {
  close_at_.reset();
  for (const auto& rank : ranks_) {
    rank->process->signalGroup(SIGKILL);
    rank->out.finish();
    rank->err.finish();
  }
}

bool Supervisor::streamsOpen() const {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const auto& rank) { return rank->out.open() || rank->err.open(); });
}

void Supervisor::writeRest() {
  queue_.flush();
  while (!queue_.empty() && !abandon_output_) {
    sleep();
    handleControl();
    queue_.flush();
  }
}

/// Once, and before ranks are named that end because nobody takes what they write.
void Supervisor::sayWhatIsLost() {
  const bool is_out = queue_.lost(Stream::out) != 0;
  const int error = is_out ? queue_.lost(Stream::out) : queue_.lost(Stream::err);
  if (error == 0 || std::exchange(is_output_lost_, true)) return;
  say(fmt::format("standard {} cannot be written: {}; what the ranks write there from now on is lost",
                  is_out ? "output" : "error", std::strerror(error)));
}

void Supervisor::say(const std::string& text) { queue_.add(Stream::err, {"tutti-run: ", text, "\n"}); }

void Supervisor::sayFirstFailure() {
  const auto& rank = *ranks_[static_cast<std::size_t>(*first_failed_)];
  say(fmt::format("rank {} (pid {}) {}{}", *first_failed_, rank.process->pid(),
                  rank.ending->by_signal ? "was " : "", describe(*rank.ending)));
}

void Supervisor::saySummary() {
  if (!first_failed_ && stop_signal_ == 0) return;
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto& rank = *ranks_[i];
    const int number = static_cast<int>(i);
    if (!stopped_early_ && first_failed_ == number) continue;  // named already
    const bool by_us = rank.ending->by_signal && rank.ending->code == rank.stopped_with;
    const auto what =
        by_us ? "stopped by tutti-run with " + signalName(rank.stopped_with) : describe(*rank.ending);
    const auto same = std::find_if(groups.begin(), groups.end(), [&](auto& g) { return g.first == what; });
    (same != groups.end() ? *same : groups.emplace_back(what, std::vector<int>())).second.push_back(number);
  }
  if (groups.empty()) return;
  std::string text = stopped_early_ ? "stopped by " + signalName(stop_signal_) : "the others";
  const char* separator = ": ";
  for (const auto& [what, numbers] : groups) {
    text += fmt::format("{}{} {}", std::exchange(separator, "; "), rankList(numbers), what);
  }
  say(text);
}

}  // namespace tutti::run
