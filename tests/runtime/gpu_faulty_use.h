// One rank of two that uses a communicator once, while calls of CUDA fail, and what became of that.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/runtime/gpu_device.h"

namespace tutti::test {

/// Crosses a socket.
struct FaultOutcome {
  ncclResult_t code = ncclSuccess;  ///< of the first call that failed, or of the communicator after the last
  std::array<char, 64> call{};      ///< that failed
  std::array<char, 1500> said{};    ///< by ncclGetLastError
  std::array<char, 64> struck{};    ///< the function of CUDA that was made to fail; "": none was
  bool struck_at_end = false;       ///< not before the communicator's end
  bool has_waited = false;          ///< for its stream, without an error
  bool is_right = false;            ///< all results
};

struct FaultyUse {
  enum class End : std::uint8_t { destroy, abort };

  ncclUniqueId id{};
  std::array<char, 200> faults{};  ///< in force from the communicator's making to its end; "": none
  bool while_running = false;      ///< in force from when a kernel waits for the other rank, which comes late
  bool then_silent = false;        ///< then, the rank calls nothing more before the end
  End end = End::destroy;          ///< after a failure
};

/// A rank's GPU, with what the program has allocated there.
class FaultyRank {
 public:
  /// GPU `rank` becomes the calling thread's.
  explicit FaultyRank(int rank);

  /// Makes a communicator, registers a buffer, reduces, exchanges, ends. GPU `rank` becomes the calling
  /// thread's.
  FaultOutcome carryOut(const FaultyUse& use);

 private:
  ncclResult_t useOnce(ncclComm_t comm, const FaultyUse& use, FaultOutcome& outcome);
  template <class Fails>
  bool exchange(ncclComm_t comm, const Fails& fails);
  void fill();
  bool isRight() const;

  int rank_;
  GpuArray<float> reduced_;
  GpuArray<float> sent_;
  GpuArray<float> received_;
  GpuStreamOfTest stream_;
};

}  // namespace tutti::test
