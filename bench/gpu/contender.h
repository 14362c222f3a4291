// Ways of carrying out an all-reduce (float, sum) on GPUs, to be measured in turn.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

namespace tutti::gpu_bench {

class Contender {
 public:
  Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  virtual ~Contender() = default;

  virtual std::string name() const = 0;
  /// All ranks at the same time, each in its thread, its GPU current; likewise leave().
  virtual void join(int rank) = 0;
  virtual void leave(int rank) = 0;
  /// Queues rank's share. `count` is a multiple of 4.
  virtual void allReduce(int rank, const float* in, float* out, std::size_t count, cudaStream_t stream) = 0;
};

/// How ranks and links are made, alike for all contenders.
struct Arrangement {
  int ranks = 1;
  int gpus = 1;  ///< rank r is on GPU r % gpus
  int lanes = 8;
  int slot_count = 4;
  int slot_bytes = 512 << 10;
};

/// A library with NCCL's C API, from a file. Throws std::runtime_error if it cannot be loaded.
std::unique_ptr<Contender> loadLibrary(const std::string& name, const std::string& path,
                                       const Arrangement& arrangement);

/// ring_yardstick.h; two or more ranks on one GPU.
std::unique_ptr<Contender> makeYardstick(const Arrangement& arrangement);

/// cudaMemcpyAsync; one rank.
std::unique_ptr<Contender> makeCopy();

}  // namespace tutti::gpu_bench
