// Memory that stands for a GPU's, and GPUs that give such and nothing else, for tests of RDMA links.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "runtime/core/accelerator.h"
#include "tests/transports/fake_verbs.h"

namespace tutti::test {

/// It notices when it goes and is still registered.
class FakeBlock final : public GpuBlock {
 public:
  /// Tests that play the GPU have to; where nobody does, touching it ends the test.
  enum class Hosts : bool { may_not_touch, play_the_gpu };

  FakeBlock(std::size_t bytes, Hosts hosts)
      : bytes_(bytes),
        memory_(static_cast<std::byte*>(
            ::mmap(nullptr, bytes, hosts == Hosts::play_the_gpu ? PROT_READ | PROT_WRITE : PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    Fabric::the().addGpuMemory(this->bytes());
  }
  FakeBlock(const FakeBlock&) = delete;
  FakeBlock& operator=(const FakeBlock&) = delete;
  ~FakeBlock() override {
    EXPECT_FALSE(Fabric::the().isRegistered(memory_)) << "freed while registered";
    ::munmap(memory_, bytes_);
  }

  std::span<std::byte> bytes() const override { return {memory_, bytes_}; }
  UniqueFd dmaBuf(std::string* why_not) const override {
    *why_not = no_dma_buf;
    return no_dma_buf.empty() ? UniqueFd(::dup(0)) : UniqueFd();
  }

  std::string no_dma_buf;

 private:
  std::size_t bytes_;
  std::byte* memory_;
};

class FakeGpus final : public Accelerator {
 public:
  int deviceCount(std::string*) const override { return 1; }
  int currentDevice() const override { return 0; }
  void setDevice(int) const override {}
  GpuInfo info(int) const override { return {}; }
  std::shared_ptr<GpuBlock> makeBlock(std::size_t bytes) override {
    return std::make_shared<FakeBlock>(bytes, FakeBlock::Hosts::play_the_gpu);
  }

  PointerInfo inspect(const void*) const override { throw std::logic_error("no memory of these GPUs"); }
  int deviceOf(GpuStream) const override { throw std::logic_error("no streams"); }
  void* allocate(std::size_t) override { throw std::logic_error("no memory but blocks"); }
  bool free(void*) override { return false; }
  void pin(void*, std::size_t) override {}
  void unpin(void*) noexcept override {}
  std::unique_ptr<GpuRank> makeRank(const GpuRankOptions&) override { throw std::logic_error("no kernels"); }
  Activity activity() override { return Activity::none; }
};

}  // namespace tutti::test
