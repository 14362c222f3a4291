// Several hosts in one: network namespaces behind a switch, for tests of what happens between hosts.
//
//   namespace 0 ── eth0 ═ p0 ┐
//   namespace 1 ── eth0 ═ p1 ┤ br0, in a namespace of its own
//   namespace 2 ── eth0 ═ p2 ┘
//
// Nothing outside these namespaces is touched. All of them share processes, files and the host's name.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/unique_fd.h"
#include "tests/harness/command.h"

namespace tutti::test {

/// Made for one test, by one thread. Names hold this process's id, so that tests run side by side; what a
/// killed test left behind is removed by the next.
class Namespaces {
 public:
  using Environment = std::map<std::string, std::string>;

  /// Why this machine or user cannot have any, in words for a skipped test; empty where they work.
  static const std::string& obstacle();

  /// 1 to 200 namespaces. Throws std::runtime_error with the words of the command that failed.
  explicit Namespaces(int count);
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;
  /// Kills what still runs inside.
  ~Namespaces();

  int size() const { return static_cast<int>(names_.size()); }
  const std::string& name(int index) const { return names_[static_cast<std::size_t>(index)]; }
  static std::string address(int index);   ///< "10.77.0.1"
  static std::string address6(int index);  ///< "fd77::1"; only where the kernel has IPv6

  /// Limits what a namespace sends, by a token bucket (tbf). 0: no limit.
  void setRate(int index, std::int64_t bits_per_second);
  /// Drops arriving packets of IPv4 at random, 0 <= probability < 1. A packet here may be 64 KiB of TCP's
  /// data: veth does not cut it. 0: none.
  void setLoss(int index, double probability);
  /// Drops all of IPv4 that comes from one other namespace, or no longer: a network that is divided.
  void setBlocked(int index, int from, bool is_blocked);
  /// A firewall against new connections of IPv4 over TCP, save to these ranges of ports, first and last. What
  /// is connected stays so. `target` is iptables': DROP says nothing, REJECT answers.
  void setOpenPorts(int index, const std::vector<std::pair<int, int>>& open, const std::string& target);
  /// Another interface, which is up but leads nowhere; `network` is its address with the prefix's length.
  void addInterface(int index, const std::string& interface, const std::string& network);
  /// Pulls the cable, or plugs it in again. Addresses stay.
  void setConnected(int index, bool is_connected);

  /// Starts a program inside, with `environment` added to this process's.
  std::unique_ptr<Command> start(int index, std::vector<std::string> argv,
                                 const Environment& environment = {}) const;
  /// Starts and waits; kills at the deadline.
  CommandResult run(int index, std::vector<std::string> argv, const Environment& environment = {},
                    std::chrono::milliseconds limit = std::chrono::seconds(60)) const;
  /// A socket of this process that belongs to a namespace, close-on-exec. Throws std::system_error.
  UniqueFd openSocket(int index, int domain, int type) const;

 private:
  void connect(int index);
  /// Empties a chain of rules for what arrives, which is made where it does not exist. Chains of their own
  /// keep one kind of trouble apart from the others.
  void clearChain(int index, const std::string& chain);

  std::string hub_;  ///< the namespace of the switch
  std::vector<std::string> names_;
};

/// A fixture whose tests are skipped, with the reason, where there are no namespaces.
class NamespaceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Namespaces::obstacle().empty()) GTEST_SKIP() << Namespaces::obstacle();
  }
};

}  // namespace tutti::test
