// Threads that connect queue pairs: whatever goes wrong in them is told, and none outlives its network
// unseen.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "tests/transports/verbs_harness.h"
#include "transports/verbs/connecting.h"

namespace tutti {
namespace {

using test::Fabric;
using test::milliseconds;
using test::seconds;

/// What holds the kernel, until a test lets it go.
class Obstacle {
 public:
  Obstacle() {
    Fabric::the().onConnect([state = state_] {
      state->is_met = true;
      state->gone.wait();
      state->is_passed = true;
    });
  }
  ~Obstacle() { Fabric::the().onConnect({}); }
  Obstacle(const Obstacle&) = delete;
  Obstacle& operator=(const Obstacle&) = delete;

  bool isMet() const { return state_->is_met; }
  bool isPassed() const { return state_->is_passed; }
  void remove() { state_->remove.set_value(); }

 private:
  struct State {
    std::promise<void> remove;
    std::shared_future<void> gone = remove.get_future().share();
    std::atomic<bool> is_met{false};
    std::atomic<bool> is_passed{false};
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

template <class Holds>
bool becomes(const Holds& holds) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (!holds() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(1));
  return holds();
}

class VerbsConnecting : public testing::Test {
 protected:
  VerbsConnecting() { Fabric::fresh(); }

  /// A pair of queue pairs on one port that is to be connected with itself.
  Connecting begin(ConnectingThreads& threads) {
    const VerbsPort port = Fabric::the().makePort("p0", "10.0.0.1");
    const auto pairs =
        std::make_shared<QueuePairs>(port, 1, QueueDepth{.sends = 4, .receives = 4}, settings_);
    return {threads, pairs, port.gids[0], pairs->address(port.gids[0]), settings_};
  }

  std::optional<std::string> resultOf(const Connecting& connecting) {
    becomes([&] { return connecting.result().has_value(); });
    return connecting.result();
  }

  RdmaSettings settings_;
};

TEST_F(VerbsConnecting, AnyExceptionIsItsResult) {
  ConnectingThreads threads({});
  Fabric::the().onConnect([] { throw std::bad_alloc(); });
  EXPECT_EQ(resultOf(begin(threads)), std::bad_alloc().what());
  Fabric::the().onConnect([] { throw std::system_error(EAGAIN, std::generic_category()); });
  EXPECT_EQ(resultOf(begin(threads)), std::system_error(EAGAIN, std::generic_category()).what());
  Fabric::the().onConnect({});
  EXPECT_EQ(resultOf(begin(threads)), "");
}

TEST_F(VerbsConnecting, ThreadsHaveEndedBeforeTheirNetworkHas) {
  Obstacle obstacle;
  auto threads = std::make_unique<ConnectingThreads>([](const std::string& text) { ADD_FAILURE() << text; },
                                                     seconds(60));
  begin(*threads);  // which nobody waits for
  ASSERT_TRUE(becomes([&] { return obstacle.isMet(); }));
  std::atomic<bool> is_removed{false};
  std::thread remover([&] {
    std::this_thread::sleep_for(milliseconds(20));  // so that an end without waiting would be seen
    is_removed = true;
    obstacle.remove();
  });
  threads.reset();
  EXPECT_TRUE(is_removed);
  EXPECT_TRUE(obstacle.isPassed());
  EXPECT_EQ(Fabric::the().openPairs(), 0U);
  remover.join();
}

TEST_F(VerbsConnecting, AThreadThatTheKernelHoldsIsLeftBehindAndTold) {
  Obstacle obstacle;
  std::vector<std::string> notes;
  {
    ConnectingThreads threads([&](const std::string& text) { notes.push_back(text); }, milliseconds(1));
    begin(threads);
    ASSERT_TRUE(becomes([&] { return obstacle.isMet(); }));
  }
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("kept the kernel busy for more than 1 ms"), std::string::npos) << notes[0];
  EXPECT_EQ(Fabric::the().openPairs(), 1U) << "it still works on them";
  obstacle.remove();
  EXPECT_TRUE(becomes([] { return Fabric::the().openPairs() == 0; }));
}

TEST_F(VerbsConnecting, ANetworkWaitsForThoseOfItsLinks) {
  RdmaOptions options;
  options.slot_count = 4;
  options.slot_bytes = 512;
  auto cluster = std::make_unique<test::VerbsCluster>(options);
  Obstacle obstacle;
  (*cluster)[0].enter();
  test::publish((*cluster)[0].outbound(0, 1), {.bytes = 8});
  (*cluster)[0].push(1);
  (*cluster)[0].leave();
  ASSERT_TRUE(becomes([&] {
    (*cluster)[1].visit();
    return obstacle.isMet();
  }));
  for (const int rank : {0, 1}) (*cluster)[rank].halt();
  std::thread remover([&] {
    std::this_thread::sleep_for(milliseconds(20));
    obstacle.remove();
  });
  cluster.reset();
  EXPECT_TRUE(obstacle.isPassed());
  remover.join();
}

}  // namespace
}  // namespace tutti
