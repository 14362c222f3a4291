#include "tests/harness/namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill()
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tutti::test {
namespace {

constexpr const char* kInterface = "eth0";
constexpr int kMost = 200;
const std::filesystem::path kFolder = "/run/netns";
const std::string kPrefix = "tutti-test-";

/// Runs a tool. Throws with its words.
void call(const std::vector<std::string>& argv) {
  const CommandResult result = runCommand(argv);
  if (result.exit_code == 0) return;
  const std::string words = result.exit_code == 127 ? "not installed" : result.err;
  throw std::runtime_error(fmt::format("{}: {}", fmt::join(argv, " "), words));
}

/// Removes a namespace and ends what runs in it. Failing is fine: another test may remove the same leftover.
void remove(const std::string& name) {
  std::istringstream pids(runCommand({"ip", "netns", "pids", name}).out);
  for (int pid = 0; pids >> pid;) ::kill(pid, SIGKILL);
  runCommand({"ip", "netns", "del", name});
}

/// The process whose id a namespace's name holds; 0 for names that are not ours.
int makerOf(const std::string& name) {
  if (!name.starts_with(kPrefix)) return 0;
  return std::max(std::atoi(name.c_str() + kPrefix.size()), 0);
}

void removeLeftovers() {
  std::error_code ignored;
  std::vector<std::string> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
    const std::string name = entry.path().filename();
    const int maker = makerOf(name);
    if (maker > 0 && ::kill(maker, 0) != 0 && errno == ESRCH) leftovers.push_back(name);
  }
  for (const std::string& name : leftovers) remove(name);
}

std::string findObstacle() {
  if (::geteuid() != 0) return "network namespaces need root";
  for (const char* tool : {"ip", "tc", "iptables"}) {
    // Some of them answer -V only.
    if (runCommand({tool, "-V"}).exit_code == 127) {
      return fmt::format("no {} (tools/install-packages --dev installs iproute2 and iptables)", tool);
    }
  }
  try {
    Namespaces trial(1);
    trial.setRate(0, 1000000);
    trial.setLoss(0, 0.5);
  } catch (const std::exception& error) {
    return fmt::format("this system lets no network namespaces be made: {}", error.what());
  }
  return {};
}

UniqueFd openFile(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  return file;
}

std::vector<std::string> inIptables(const std::string& name, const std::vector<std::string>& rest) {
  std::vector<std::string> argv{"ip", "netns", "exec", name, "iptables", "-w"};
  argv.insert(argv.end(), rest.begin(), rest.end());
  return argv;
}

void enter(const UniqueFd& network) {
  if (::setns(network.get(), CLONE_NEWNET) != 0)
    throw std::system_error(errno, std::generic_category(), "setns");
}

}  // namespace

const std::string& Namespaces::obstacle() {
  static const std::string reason = findObstacle();
  return reason;
}

Namespaces::Namespaces(int count) {
  static std::atomic<int> made{0};
  if (count < 1 || count > kMost)
    throw std::runtime_error(fmt::format("{} namespaces; 1 to {}", count, kMost));
  removeLeftovers();
  const std::string stem = fmt::format("{}{}-{}", kPrefix, ::getpid(), made++);
  hub_ = stem + "-switch";
  try {
    call({"ip", "netns", "add", hub_});
    // Without spanning tree and multicast snooping, which would hold the first packets back.
    call({"ip", "-n", hub_, "link", "add", "br0", "type", "bridge", "stp_state", "0", "mcast_snooping", "0"});
    call({"ip", "-n", hub_, "link", "set", "br0", "up"});
    for (int index = 0; index < count; ++index) {
      names_.push_back(fmt::format("{}-{}", stem, index));
      connect(index);
    }
  } catch (...) {
    for (const std::string& each : names_) remove(each);
    remove(hub_);
    throw;
  }
}

Namespaces::~Namespaces() {
  try {
    for (const std::string& each : names_) remove(each);
    remove(hub_);
  } catch (const std::exception&) {
    return;  // the next test removes them
  }
}

std::string Namespaces::address(int index) { return fmt::format("10.77.0.{}", index + 1); }

std::string Namespaces::address6(int index) { return fmt::format("fd77::{:x}", index + 1); }

void Namespaces::connect(int index) {
  const std::string port = fmt::format("p{}", index);
  call({"ip", "netns", "add", name(index)});
  call({"ip", "-n", hub_, "link", "add", port, "type", "veth", "peer", "name", kInterface, "netns",
        name(index)});
  call({"ip", "-n", hub_, "link", "set", port, "master", "br0", "up"});
  call({"ip", "-n", name(index), "link", "set", "lo", "up"});
  call({"ip", "-n", name(index), "link", "set", kInterface, "up"});
  call({"ip", "-n", name(index), "addr", "add", address(index) + "/24", "dev", kInterface});
  if (!std::filesystem::exists("/proc/net/if_inet6")) return;
  call({"ip", "-n", name(index), "addr", "add", address6(index) + "/64", "dev", kInterface, "nodad"});
}

void Namespaces::setRate(int index, std::int64_t bits_per_second) {
  // There is nothing to delete at first.
  runCommand({"tc", "-n", name(index), "qdisc", "del", "dev", kInterface, "root"});
  if (bits_per_second == 0) return;
  // As much as passes in 2 ms, and no less than a packet of TCP's.
  const std::int64_t burst = std::max<std::int64_t>(bits_per_second / 8 / 500, 1 << 16);
  call({"tc", "-n", name(index), "qdisc", "add", "dev", kInterface, "root", "tbf", "rate",
        fmt::format("{}bit", bits_per_second), "burst", fmt::format("{}", burst), "latency", "50ms"});
}

void Namespaces::clearChain(int index, const std::string& chain) {
  runCommand(inIptables(name(index), {"-N", chain}));
  if (runCommand(inIptables(name(index), {"-C", "INPUT", "-j", chain})).exit_code != 0)
    call(inIptables(name(index), {"-A", "INPUT", "-j", chain}));
  call(inIptables(name(index), {"-F", chain}));
}

void Namespaces::setLoss(int index, double probability) {
  clearChain(index, "loss");
  if (probability == 0) return;
  call(inIptables(name(index), {"-A", "loss", "-i", kInterface, "-m", "statistic", "--mode", "random",
                                "--probability", fmt::format("{}", probability), "-j", "DROP"}));
}

void Namespaces::setBlocked(int index, int from, bool is_blocked) {
  call(inIptables(name(index), {is_blocked ? "-I" : "-D", "INPUT", "-s", address(from), "-j", "DROP"}));
}

void Namespaces::setOpenPorts(int index, const std::vector<std::pair<int, int>>& open,
                              const std::string& target) {
  clearChain(index, "ports");
  const std::vector<std::string> rule{"-A", "ports", "-i", kInterface, "-p", "tcp", "--syn"};
  const auto add = [&](const std::vector<std::string>& rest) {
    std::vector<std::string> words = rule;
    words.insert(words.end(), rest.begin(), rest.end());
    call(inIptables(name(index), words));
  };
  for (const auto& [first, last] : open) add({"--dport", fmt::format("{}:{}", first, last), "-j", "RETURN"});
  add({"-j", target});
}

void Namespaces::addInterface(int index, const std::string& interface, const std::string& network) {
  // Its cable ends in the same namespace, at an interface without addresses.
  const std::string end = interface + "-end";
  call({"ip", "-n", name(index), "link", "add", interface, "type", "veth", "peer", "name", end});
  call({"ip", "-n", name(index), "link", "set", end, "up"});
  call({"ip", "-n", name(index), "link", "set", interface, "up"});
  call({"ip", "-n", name(index), "addr", "add", network, "dev", interface});
}

void Namespaces::setConnected(int index, bool is_connected) {
  // The switch's end: the namespace sees its carrier go, as with a cable, and keeps its IPv6 addresses.
  call({"ip", "-n", hub_, "link", "set", fmt::format("p{}", index), is_connected ? "up" : "down"});
}

std::unique_ptr<Command> Namespaces::start(int index, std::vector<std::string> argv,
                                           const Environment& environment) const {
  const std::filesystem::path built = std::filesystem::path(TUTTI_BIN_DIR) / argv[0];
  if (argv[0].find('/') == std::string::npos && std::filesystem::exists(built)) argv[0] = built;
  // It replaces itself by the program, so signals reach that.
  argv.insert(argv.begin(), {"ip", "netns", "exec", name(index)});
  return std::make_unique<Command>(std::move(argv), environment);
}

CommandResult Namespaces::run(int index, std::vector<std::string> argv, const Environment& environment,
                              std::chrono::milliseconds limit) const {
  return start(index, std::move(argv), environment)->wait(limit);
}

UniqueFd Namespaces::openSocket(int index, int domain, int type) const {
  const UniqueFd own = openFile("/proc/thread-self/ns/net");
  const UniqueFd other = openFile(kFolder / name(index));
  enter(other);
  UniqueFd socket(::socket(domain, type | SOCK_CLOEXEC, 0));
  const int error = errno;
  enter(own);
  if (!socket) throw std::system_error(error, std::generic_category(), "socket");
  return socket;
}

}  // namespace tutti::test
