#include "runtime/peers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tutti/error.h"

namespace tutti {
namespace {

std::uint64_t inodeOf(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 ? status.st_ino : 0;
}

std::array<std::uint8_t, 16> bootId() {
  std::array<std::uint8_t, 16> id{};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  file >> text;
  std::erase(text, '-');
  for (std::size_t i = 0; i < id.size() && 2 * i + 1 < text.size(); ++i) {
    id[i] = static_cast<std::uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return id;
}

/// Fields 3 and so on of /proc/PID/stat; nothing where it cannot be read. The second field, the program's
/// name in parentheses, may hold anything.
std::istringstream statOf(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  return std::istringstream(name_end == std::string::npos ? "" : line.substr(name_end + 1));
}

/// Field 22, or 0.
std::uint64_t startTime(int pid) {
  std::istringstream fields = statOf(pid);
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  std::uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

std::array<std::uint8_t, 16> hostId(const std::string& name) {
  std::array<std::uint8_t, 16> id;
  crypto_generichash(id.data(), id.size(), reinterpret_cast<const unsigned char*>(name.data()), name.size(),
                     nullptr, 0);
  return id;
}

UniqueFd openProcess(const PeerInfo& peer) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
  const int error = errno;
  // A pid that was given to another process since has another start time.
  const std::uint64_t start_time = fd ? startTime(peer.pid) : 0;
  // 0: /proc could not be read, for lack of a descriptor; then the pid is all that is known.
  if ((!fd && error == ESRCH) || (start_time != 0 && start_time != peer.start_time)) {
    throw Error(ncclRemoteError, fmt::format("{} has ended already", describe(peer)));
  }
  if (!fd) {
    throw Error(ncclSystemError,
                fmt::format("pidfd_open of {}: {} (errno {}). Linux 5.3 or newer is needed, and room "
                            "for one descriptor per rank (ulimit -n)",
                            describe(peer), std::strerror(error), error));
  }
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return fd;
}

}  // namespace

PeerInfo describeSelf(const std::array<std::uint8_t, 16>& process_token, const std::string& host_name) {
  PeerInfo self;
  self.pid = ::getpid();
  self.uid = ::getuid();
  self.start_time = startTime(self.pid);
  self.pid_namespace = inodeOf("/proc/self/ns/pid");
  self.net_namespace = inodeOf("/proc/self/ns/net");
  self.boot_id = bootId();
  self.host_id = host_name.empty() ? self.boot_id : hostId(host_name);
  self.process_token = process_token;
  if (host_name.empty()) {
    ::gethostname(self.host.data(), self.host.size() - 1);
  } else {
    host_name.copy(self.host.data(), self.host.size() - 1);
  }
  // A machine with more cores than the mask has bits leaves it empty: ranks then wait politely.
  if (::sched_getaffinity(0, sizeof(self.cores), reinterpret_cast<cpu_set_t*>(self.cores.data())) < 0)
    self.cores = {};
  return self;
}

PeerWatch::PeerWatch(const std::vector<PeerInfo>& peers, const std::vector<int>& locals, const PeerInfo& self)
    : nranks_(peers.size()) {
  constexpr std::size_t kMostWatched = 64;
  const auto mine = static_cast<std::size_t>(std::ranges::find(locals, self.rank) - locals.begin());
  for (std::size_t distance = 1; distance < locals.size() && ranks_.size() < kMostWatched; ++distance) {
    const PeerInfo& peer = peers[static_cast<std::size_t>(locals[(mine + distance) % locals.size()])];
    if (peer.process_token == self.process_token) continue;
    ranks_.push_back(peer.rank);
    pids_.push_back(peer.pid);
    pidfds_.push_back(openProcess(peer));
  }
}

std::vector<bool> PeerWatch::dead() const {
  std::vector<bool> result(nranks_, false);
  std::vector<pollfd> fds;
  fds.reserve(pidfds_.size());
  for (const UniqueFd& pidfd : pidfds_) fds.push_back({pidfd.get(), POLLIN, 0});
  if (::poll(fds.data(), fds.size(), 0) <= 0) return result;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents != 0) result[static_cast<std::size_t>(ranks_[i])] = true;
  }
  return result;
}

std::vector<int> PeerWatch::stopped() const {
  std::vector<int> result;
  for (std::size_t i = 0; i < pids_.size(); ++i) {
    std::string state;
    statOf(pids_[i]) >> state;
    if (state == "T") result.push_back(ranks_[i]);
  }
  return result;
}

}  // namespace tutti
