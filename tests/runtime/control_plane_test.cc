// Which ranks of other hosts are said not to answer.
#include "runtime/control_plane.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/process.h"
#include "transports/secure_channel.h"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Some ranks of many, with rank 0, that attend to the control plane when the test says so.
class Silence : public testing::Test {
 protected:
  void make(int nranks, const std::vector<int>& ranks) {
    nranks_ = nranks;
    std::map<int, ControlTree> trees;
    for (const int rank : ranks) {
      auto [parents, childs] = connected();
      trees[treeParent(rank)].children.push_back({rank, std::move(parents), {}});
      trees[rank].parent = Neighbour{treeParent(rank), std::move(childs), {}};
    }
    for (auto& [rank, tree] : trees) planes_[static_cast<std::size_t>(rank)] = plane(std::move(tree), rank);
  }

  /// Rank 0 asks all the while; `who` answers.
  template <class Condition>
  void askUntil(const std::vector<int>& who, const Condition& condition) {
    const auto end = Clock::now() + std::chrono::seconds(60);
    while (!condition() && Clock::now() < end) {
      planes_[0]->ask(Process::instance().watcher());
      planes_[0]->attend();
      for (const int rank : who) planes_[static_cast<std::size_t>(rank)]->attend();
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_TRUE(condition());
  }

  const ControlPlane& root() const { return *planes_[0]; }

 private:
  static std::pair<SecureChannel, SecureChannel> connected() {
    Process::instance();  // starts libsodium
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    const Secret secret{1, 2, 3};
    SecureChannel client(UniqueFd(fds[0]), secret, SecureChannel::Role::client);
    SecureChannel server(UniqueFd(fds[1]), secret, SecureChannel::Role::server);
    while (!client.established() || !server.established()) {
      server.pump();
      client.pump();
    }
    return {std::move(client), std::move(server)};
  }

  std::unique_ptr<ControlPlane> plane(ControlTree tree, int rank) {
    return std::make_unique<ControlPlane>(
        std::move(tree), nranks_, rank, statuses_[static_cast<std::size_t>(rank)],
        ControlPlane::Events{.gone = [](int) {}, .letter = [](int, auto) {}});
  }

  static constexpr int kMost = 18;
  int nranks_ = 0;
  std::array<RankStatus, kMost> statuses_{};
  std::array<std::unique_ptr<ControlPlane>, kMost> planes_;
};

TEST_F(Silence, WhoIsStoppedIsNamedAndNotWhoIsLateOnce) {
  make(3, {1, 2});
  askUntil({1, 2}, [this] { return root().isKnown(1) && root().isKnown(2); });
  EXPECT_EQ(root().silentRank(), -1);
  askUntil({1}, [this] { return root().isSilent(2); });
  EXPECT_EQ(root().silentRank(), 2);
  // Rank 1 lacks a core for the time of one round.
  const auto late = Clock::now();
  askUntil({}, [this] { return !root().isKnown(1); });
  const bool is_silent = root().isSilent(1);
  EXPECT_TRUE(!is_silent || Clock::now() - late >= milliseconds(1000));
  EXPECT_EQ(root().silentRank(), 2);
  askUntil({}, [this] { return root().isSilent(1); });
  EXPECT_EQ(root().silentRank(), 2) << "which was heard last longest ago";
  askUntil({1, 2}, [this] { return root().silentRank() < 0; });
}

TEST_F(Silence, WhoIsStoppedBelowAnotherIsNamedAndNotThatOne) {
  make(18, {1, 17});  // rank 17 is a child of rank 1
  askUntil({1, 17}, [this] { return root().isKnown(1) && root().isKnown(17); });
  askUntil({1}, [this] { return root().isSilent(17); });
  EXPECT_FALSE(root().isSilent(1));
}

}  // namespace
}  // namespace tutti::test
