// What the runtime asks of GPUs. Implemented by libtutti_cuda.so, which is opened when a GPU is wanted:
// nothing else of the runtime knows CUDA, and it loads where there is none.
//
// An Accelerator is the process's view of its GPUs; a GpuRank is the GPU half of one rank of one
// communicator: the memory that its peers write to, its kernels, and what they report.
//
//   mine = accelerator.makeRank(...)        offers ◄─ bootstrap ─► offers of the host's other ranks
//   mine->connect(peer, offer)              for each; false: they go by pinned host memory
//   mine->start(links)                      the links with everybody, wherever they lie
//   mine->launch(...)                       from then on
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/descriptor.h"
#include "runtime/core/link.h"
#include "runtime/core/peer.h"
#include "runtime/core/plan.h"
#include "runtime/core/rank_status.h"
#include "runtime/core/region.h"
#include "runtime/core/ring_orders.h"
#include "runtime/core/scale.h"
#include "runtime/core/unique_fd.h"

struct CUstream_st;

namespace tutti {

using GpuStream = CUstream_st*;

/// What an address is.
struct PointerInfo {
  enum class Kind : std::uint8_t { host, pinned, device, managed };
  Kind kind = Kind::host;
  int device = -1;
};

/// Which GPU a rank uses.
struct GpuInfo {
  std::int32_t device = -1;  ///< its number in this process
  std::array<std::uint8_t, 16> uuid{};
  std::array<char, 16> bus_id{};  ///< zero-terminated, such as 0000:3b:00.0
  std::array<char, 64> name{};    ///< zero-terminated
};

/// How the ranks of a host reach a rank's memory; exchanged as bytes.
struct GpuOffer {
  GpuInfo gpu;
  std::uint64_t address = 0;  ///< of its memory, for ranks of the same process; 0: it has none to offer
  std::uint64_t bytes = 0;
  std::array<std::byte, 64> ipc_handle{};
  bool has_ipc_handle = false;
  std::int32_t ipc_error = 0;  ///< CUDA's, where there is no handle
};

/// Links of one lane with every other rank, by rank; the entry of the rank itself is empty.
struct LinkRow {
  std::vector<LinkView> inbound;
  std::vector<LinkView> outbound;
};

struct GpuRankOptions {
  PeerInfo self;
  int nranks = 1;
  std::vector<int> locals;  ///< ranks of this host, in order
  LinkShape shape;
  RankStatus* status = nullptr;               ///< this rank's line, in memory that was pinned before
  std::vector<GpuRegionTable*> regions = {};  ///< of the ranks of this host, in order
  std::uint64_t wait_limit_ns = 0;
  /// Set where there are links with other hosts: somebody has to move what kernels post. A captured launch
  /// calls it whenever it runs (a host node before the kernel), unless CUDA refuses that, see
  /// GpuRank::mayRunUnannounced(); it does not block and does not call CUDA.
  std::function<void()> wake = {};
};

/// One operation for a GPU.
struct GpuTask {
  enum class Kind : std::uint8_t { collective, send, receive };

  Kind kind = Kind::collective;
  Plan plan;
  const void* send = nullptr;
  void* recv = nullptr;
  int peer = -1;          ///< transfers
  bool may_lend = false;  ///< large enough for peers to work on the buffers in place, where they can
  RegionPlace input_region = {};
  RegionPlace output_region = {};
  Scale scale = {};
  const void* scale_at = nullptr;  ///< if set, read there when the operation runs
};

/// What a rank's kernels have to say.
struct GpuReport {
  struct Wait {
    std::uint64_t serial = 0;     ///< another number for each wait
    std::uint64_t operation = 0;  ///< collectives
    Descriptor descriptor;
    int peer = -1;
    bool is_send = false;
  };
  struct Fault {
    enum class Kind : std::uint8_t {
      differs,
      damaged,
      unreachable,
      deadline,
      failed,
      reset,  ///< cudaDeviceReset has taken the rank's memory, streams and events
    };
    Kind kind = Kind::failed;
    int peer = -1;
    std::uint64_t operation = 0;  ///< collectives
    Descriptor ours;
    Descriptor theirs;
    std::string text;  ///< in words, for all kinds but `differs`
  };

  std::uint64_t started = 0;  ///< kernels
  std::uint64_t finished = 0;
  std::vector<Wait> waits;
  std::optional<Fault> fault;
};

/// What kernels have moved; as MovedData of the host's executor.
struct GpuMoved {
  std::uint64_t operations = 0;
  std::uint64_t slots = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t network_bytes = 0;
};

/// One rank's GPU half. Calls come from one thread at a time, except where noted. All throw Error in words.
/// The device that is current in the calling thread stays so.
class GpuRank {
 public:
  virtual ~GpuRank() = default;  ///< after finish() and close()

  virtual GpuOffer offer() const = 0;

  /// Opens the memory of `peer`, a rank of this host, and tries it: reads the peer's mark and leaves this
  /// rank's. False, with *reason set, where it cannot be reached.
  virtual bool connect(int peer, const PeerInfo& info, const GpuOffer& offer, std::string* reason) = 0;
  /// After all have connected: whether the peer's mark has arrived in this rank's memory.
  virtual bool confirm(int peer) const = 0;
  /// From now on nothing goes through the peer's memory, or from it: the other side could not.
  virtual void disconnect(int peer) = 0;
  /// The links with a peer that is connected and confirmed.
  virtual LinkView inbound(std::uint32_t lane, int peer) const = 0;
  virtual LinkView outbound(std::uint32_t lane, int peer) const = 0;
  virtual LinkView packetsFrom(int peer) const = 0;
  virtual LinkView packetsTo(int peer) const = 0;

  /// All links, device and pinned host memory alike. Loads the kernels. `packets` may be empty.
  virtual void start(std::span<const LinkRow> lanes, const LinkRow& packets, const RingTables& rings) = 0;

  /// Queues a collective on the stream, behind all earlier work of this rank, whatever its stream; returns at
  /// once. The stream may be capturing.
  virtual void launchCollective(const GpuTask& task, GpuStream stream) = 0;
  /// Queues transfers: the queues run side by side, the tasks of each in order.
  virtual void launchTransfers(std::span<const std::vector<GpuTask>> queues, GpuStream stream) = 0;
  /// A copy on the stream, for a transfer from a rank to itself.
  virtual void copy(void* to, const void* from, std::size_t bytes, GpuStream stream) = 0;
  virtual bool isCapturing(GpuStream stream) const = 0;
  /// What is queued on `after` from now on waits for what is queued on `before` by now.
  virtual void order(GpuStream before, GpuStream after) = 0;

  /// Makes a buffer known to the peers, who map it when they come by, and then get it lent. Returns the
  /// number of its region; 0, with *note set, where peers cannot map it, and it is passed through slots
  /// instead. Throws Error(ncclInvalidArgument) for bytes beyond the buffer's allocation.
  virtual std::uint32_t publish(void* buffer, std::size_t bytes, std::string* note) = 0;
  /// Returns when all peers have closed the region, or after `limit`, then false.
  virtual bool withdraw(std::uint32_t region, std::chrono::milliseconds limit) = 0;
  /// Whether `address` still lies in the allocation that was published, and not in one that got its place.
  /// Asks the driver: about as much as a look at a pointer's kind. Any thread.
  virtual bool isStillIn(std::uint32_t region, const void* address) const = 0;
  /// Sees whether CUDA still works for this process, which report() then tells; maps what peers have
  /// published and, unless a kernel of this rank is running or queued, closes what they withdrew. Also done
  /// by launches; so it does nothing while one is under way. For threads of the library: leaves the rank's
  /// device the current one. Throws nothing.
  virtual void meetRegions() noexcept = 0;

  /// Every wait of every kernel fails from now on. Any thread.
  virtual void stop() noexcept = 0;
  /// Whether cudaDeviceReset has taken what the rank has on its GPU; the report has it as a fault. Asks the
  /// driver: about as much as a look at a pointer's kind. Any thread.
  virtual bool isLost() const noexcept = 0;
  /// Any thread; reads memory of this process only, and asks isLost().
  virtual GpuReport report() const = 0;
  /// The report's number of kernels that have ended, cheaply.
  virtual std::uint64_t finished() const = 0;
  /// Whether the report has a fault, cheaply.
  virtual bool hasFault() const = 0;
  /// Whether graphs exist whose launches cannot call `wake`: announced() tells of them. Any thread; does not
  /// call CUDA.
  virtual bool mayRunUnannounced() const noexcept = 0;
  /// Kernels that run, or ran, by such launches. Any thread; does not call CUDA.
  virtual std::uint64_t announced() const noexcept = 0;
  virtual GpuMoved moved() const = 0;

  /// Peers and descriptors of slots that arrived and were not received. After finish().
  virtual std::optional<std::pair<int, Descriptor>> unreceived() const = 0;
  /// Waits until the kernels are done, replays that are queued included; false when the limit came first. May
  /// be called again; no launch may follow.
  virtual bool finish(std::chrono::milliseconds limit) = 0;
  /// After a finish() that succeeded: closes what it opened of peers. This and the destructor may wait for
  /// all kernels of the process's GPUs, as CUDA does when memory goes.
  virtual void close() noexcept = 0;
};

/// GPU memory that network devices are to read and write; freed with this. Nothing may use it any more then.
class GpuBlock {
 public:
  virtual ~GpuBlock() = default;

  /// Whole pages of the host. In them is what happened to be there.
  virtual std::span<std::byte> bytes() const = 0;
  /// The same as a dma-buf, which drivers of devices understand; without, *why_not says why there is none.
  virtual UniqueFd dmaBuf(std::string* why_not) const = 0;
};

/// The GPUs of this process. Thread-safe.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  /// 0 with *reason, the driver's own words, where there is none that can be used.
  virtual int deviceCount(std::string* reason) const = 0;
  virtual int currentDevice() const = 0;
  virtual void setDevice(int device) const = 0;
  virtual GpuInfo info(int device) const = 0;
  virtual PointerInfo inspect(const void* address) const = 0;
  /// The device of a stream; -1 for the default streams, which are of the current one.
  virtual int deviceOf(GpuStream stream) const = 0;

  /// ncclMemAlloc and ncclMemFree, on the current device. free() is false for memory that allocate() did not
  /// return.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual bool free(void* address) = 0;

  /// Lets GPUs work on host memory, until unpin().
  virtual void pin(void* address, std::size_t bytes) = 0;
  virtual void unpin(void* address) noexcept = 0;

  /// Of at least so many bytes, on the current device. Throws Error.
  virtual std::shared_ptr<GpuBlock> makeBlock(std::size_t bytes) = 0;

  /// What the kernels of all ranks of this process are doing.
  enum class Activity : std::uint8_t {
    none,     ///< nothing runs or is queued
    running,  ///< and none waits for another rank
    waiting,  ///< one has waited for another rank for a while
  };
  /// For threads of the library: any of the ranks' devices is the current one afterwards.
  virtual Activity activity() = 0;

  /// On the current device.
  virtual std::unique_ptr<GpuRank> makeRank(const GpuRankOptions& options) = 0;
};

/// The one symbol of libtutti_cuda.so. `version` guards against files of different builds side by side.
inline constexpr const char* kAcceleratorEntry = "tuttiOpenAccelerator";
inline constexpr const char* kAcceleratorVersion = "5";  ///< of this header; raised with every change of it
using AcceleratorEntry = Accelerator* (*)(const char* version);

}  // namespace tutti
