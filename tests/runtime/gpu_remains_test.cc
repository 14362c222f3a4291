// When GPU memory of ended communicators goes, on GPUs that are invented.
#include "runtime/gpu_remains.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr auto kLimit = seconds(60);
constexpr auto kPatience = milliseconds(1200);  ///< a little more than the thread's where nothing moves

[[noreturn]] void notForRemains() { throw std::logic_error("nothing that remains of a rank needs this"); }

class FakeGpus final : public Accelerator {
 public:
  int deviceCount(std::string*) const override { return 1; }
  int currentDevice() const override { return 0; }
  void setDevice(int) const override {}
  GpuInfo info(int) const override { return {}; }
  PointerInfo inspect(const void*) const override { notForRemains(); }
  int deviceOf(GpuStream) const override { notForRemains(); }
  void* allocate(std::size_t) override { notForRemains(); }
  bool free(void*) override { notForRemains(); }
  void pin(void*, std::size_t) override {}
  void unpin(void*) noexcept override {}
  std::shared_ptr<GpuBlock> makeBlock(std::size_t) override { notForRemains(); }
  std::unique_ptr<GpuRank> makeRank(const GpuRankOptions&) override { notForRemains(); }
  Activity activity() override { return busy.load() ? Activity::waiting : Activity::none; }

  std::atomic<bool> busy{false};
};

/// What a test sees of the rank that has ended, and decides.
struct RankView {
  std::atomic<bool> is_freed{false};
  std::atomic<int> looks{0};            ///< whether its kernels have ended
  std::atomic<bool> is_answered{true};  ///< else the first look lasts until then, and sees them run
};

class FakeRank final : public GpuRank {
 public:
  explicit FakeRank(RankView& view) : view_(view) {}
  ~FakeRank() override { view_.is_freed = true; }

  GpuOffer offer() const override { notForRemains(); }
  bool connect(int, const PeerInfo&, const GpuOffer&, std::string*) override { notForRemains(); }
  bool confirm(int) const override { notForRemains(); }
  void disconnect(int) override { notForRemains(); }
  LinkView inbound(std::uint32_t, int) const override { notForRemains(); }
  LinkView outbound(std::uint32_t, int) const override { notForRemains(); }
  LinkView packetsFrom(int) const override { notForRemains(); }
  LinkView packetsTo(int) const override { notForRemains(); }
  void start(std::span<const LinkRow>, const LinkRow&, const RingTables&) override { notForRemains(); }
  void launchCollective(const GpuTask&, GpuStream) override { notForRemains(); }
  void launchTransfers(std::span<const std::vector<GpuTask>>, GpuStream) override { notForRemains(); }
  void copy(void*, const void*, std::size_t, GpuStream) override { notForRemains(); }
  bool isCapturing(GpuStream) const override { notForRemains(); }
  void order(GpuStream, GpuStream) override { notForRemains(); }
  std::uint32_t publish(void*, std::size_t, std::string*) override { notForRemains(); }
  bool withdraw(std::uint32_t, milliseconds) override { notForRemains(); }
  bool isStillIn(std::uint32_t, const void*) const override { notForRemains(); }
  void meetRegions() noexcept override {}
  void stop() noexcept override {}
  bool isLost() const noexcept override { return false; }
  GpuReport report() const override { notForRemains(); }
  std::uint64_t finished() const override { notForRemains(); }
  bool hasFault() const override { return false; }
  bool mayRunUnannounced() const noexcept override { return false; }
  std::uint64_t announced() const noexcept override { return 0; }
  GpuMoved moved() const override { notForRemains(); }
  std::optional<std::pair<int, Descriptor>> unreceived() const override { notForRemains(); }
  bool finish(milliseconds) override {
    const bool is_late = !view_.is_answered;
    ++view_.looks;
    view_.is_answered.wait(false);
    return !is_late;
  }
  void close() noexcept override {}

 private:
  RankView& view_;
};

/// As the process's: never destroyed, since its thread may still be about to end.
GpuGraveyard& graveyard() {
  static auto* const kGraveyard = new GpuGraveyard;
  return *kGraveyard;
}

template <class Condition>
bool comesTrue(Condition condition, milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

/// Rank 0 has ended; rank 1, a thread of this process, has its memory open until it detaches.
struct Scene {
  FakeGpus gpus;
  std::array<RankStatus, 2> statuses{};
  RankView rank;

  void end() {
    std::vector<PeerInfo> peers(2);
    peers[0].rank = 0;
    peers[1].rank = 1;
    graveyard().keep({.gpus = &gpus,
                      .device = 0,
                      .memory = nullptr,
                      .pinned = {},
                      .watch = std::make_unique<PeerWatch>(peers, std::vector<int>{0, 1}, peers[0]),
                      .mine = statuses.data(),
                      .others = {{1, &statuses[1]}},
                      .gpu = std::make_unique<FakeRank>(rank)});
  }
  bool isDetached() const { return statuses[0].detached.load(std::memory_order_acquire) != 0; }
  void detachOther() { statuses[1].detached.store(1, std::memory_order_release); }

  /// The thread looks at all this until it has freed the rank.
  ~Scene() {
    gpus.busy = false;
    rank.is_answered = true;
    rank.is_answered.notify_all();
    detachOther();
    while (!rank.is_freed) graveyard().sweep();
  }
};

/// On a machine that stands still for a second the thread is right to leave: so there are several attempts.
template <class Attempt>
bool succeedsOnce(Attempt attempt) {
  for (int i = 0; i < 3; ++i) {
    if (attempt()) return true;
  }
  return false;
}

TEST(GpuRemains, GoOnceTheOtherRankIsDetached) {
  Scene scene;
  scene.end();
  ASSERT_TRUE(comesTrue([&] { return scene.isDetached(); }, kLimit));
  graveyard().sweep();
  EXPECT_FALSE(scene.rank.is_freed);
  scene.detachOther();
  EXPECT_TRUE(comesTrue(
      [&] {
        graveyard().sweep();
        return scene.rank.is_freed.load();
      },
      kLimit));
}

/// Who asks when the thread's patience is at an end is served all the same.
TEST(GpuRemains, AreLookedAtWheneverSomebodyAsks) {
  Scene scene;
  scene.rank.is_answered = false;
  scene.end();
  ASSERT_TRUE(comesTrue([&] { return scene.rank.looks == 1; }, kLimit));
  std::this_thread::sleep_for(kPatience);
  scene.detachOther();
  graveyard().sweep();
  scene.rank.is_answered = true;
  scene.rank.is_answered.notify_all();
  EXPECT_TRUE(comesTrue([&] { return scene.rank.is_freed.load(); }, kLimit));
}

TEST(GpuRemains, AreLookedAtForAWhileOnceKernelsAreOutOfTheWay) {
  EXPECT_TRUE(succeedsOnce([] {
    Scene scene;
    scene.gpus.busy = true;
    scene.end();
    std::this_thread::sleep_for(kPatience);
    EXPECT_FALSE(scene.isDetached());
    scene.gpus.busy = false;
    EXPECT_TRUE(comesTrue([&] { return scene.isDetached(); }, kLimit));
    std::this_thread::sleep_for(milliseconds(50));  // some passes
    EXPECT_FALSE(scene.rank.is_freed);
    scene.detachOther();
    return comesTrue([&] { return scene.rank.is_freed.load(); }, seconds(2));
  }));
}

/// Longer than the thread stays by itself.
TEST(GpuRemains, AreAwaitedForThreeSecondsAtTheEnd) {
  EXPECT_TRUE(succeedsOnce([] {
    Scene scene;
    scene.end();
    const std::jthread other([&scene] {
      std::this_thread::sleep_for(kPatience + milliseconds(400));
      scene.detachOther();
    });
    graveyard().awaitEmpty();
    return scene.rank.is_freed.load();
  }));
}

}  // namespace
}  // namespace tutti::test
