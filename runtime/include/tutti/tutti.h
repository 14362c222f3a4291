// C++ wrapper over the C API: header only, owns handles, throws tutti::Error.
//
//   tutti::Comm comm = tutti::Comm::fromEnvironment();          // under tutti-run
//   comm.allReduce(gradient.data(), gradient.data(), gradient.size(), ncclAvg);
//
//   {                                                           // an exchange with both neighbours
//     tutti::Group group;
//     comm.send(mine.data(), mine.size(), right);
//     comm.receive(theirs.data(), theirs.size(), left);
//     group.end();
//   }
//
// Thread-safety, in-place rules and lifetimes are those of nccl.h. Counts are elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "nccl.h"
#include "tutti/error.h"
#include "tutti/launch.h"
#include "tutti/statistics.h"
#include "tutti/stream.h"
#include "tutti/transport.h"

namespace tutti {

/// Throws tutti::Error with the library's words unless `result` is ncclSuccess.
inline void check(ncclResult_t result) {
  if (result != ncclSuccess) throw Error(result, ncclGetLastError(nullptr));
}

/// The ncclDataType_t of a C++ arithmetic type.
template <class T>
constexpr ncclDataType_t dataTypeOf() {
  if constexpr (std::is_same_v<T, float>) {
    return ncclFloat32;
  } else if constexpr (std::is_same_v<T, double>) {
    return ncclFloat64;
  } else {
    static_assert(std::is_integral_v<T> && !std::is_same_v<T, bool> && (sizeof(T) == 1 || sizeof(T) >= 4),
                  "no ncclDataType_t for this type");
    if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? ncclInt8 : ncclUint8;
    if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? ncclInt32 : ncclUint32;
    if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? ncclInt64 : ncclUint64;
  }
}

/// A host stream, destroyed with the object after its work is done. Move only. Its handle is passed wherever
/// a call takes a stream.
class Stream {
 public:
  Stream() { check(tuttiStreamCreate(&stream_)); }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { tuttiStreamDestroy(stream_); }

  cudaStream_t handle() const { return stream_; }
  // NOLINTNEXTLINE(google-explicit-constructor): a stream stands for its handle
  operator cudaStream_t() const { return stream_; }

  /// Waits for what is queued; throws its first error.
  void synchronize() { check(tuttiStreamSynchronize(stream_)); }
  /// Whether everything queued is done; throws its first error.
  bool isDone() {
    const ncclResult_t state = tuttiStreamQuery(stream_);
    if (state != ncclInProgress) check(state);
    return state == ncclSuccess;
  }

 private:
  tuttiStream_t stream_ = nullptr;
};

/// A group: calls of this thread from here on are carried out together by end(). Without end(), as when an
/// exception passes, nothing is carried out.
class Group {
 public:
  Group() { check(ncclGroupStart()); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    if (!is_open_) return;
    ncclSend(nullptr, 0, ncclInt8, 0, nullptr, nullptr);  // refused: so the group fails before it starts
    ncclGroupEnd();
  }

  void end() {
    is_open_ = false;
    check(ncclGroupEnd());
  }

 private:
  bool is_open_ = true;
};

/// One rank's handle of a communicator. Move only; destroyed with the object.
class Comm {
 public:
  /// Joins as `rank` of `nranks`; see ncclCommInitRank.
  Comm(int nranks, const ncclUniqueId& id, int rank) { check(ncclCommInitRank(&comm_, nranks, id, rank)); }
  /// Takes over a handle.
  explicit Comm(ncclComm_t comm) : comm_(comm) {}

  /// Joins the communicator of the launcher, or one of a single rank when there is no launcher.
  static Comm fromEnvironment() {
    tuttiLaunch_t launch;
    check(tuttiLaunchFromEnvironment(&launch));
    return Comm(launch.nranks, launch.id, launch.rank);
  }

  Comm(Comm&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Comm& operator=(Comm&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  ~Comm() { ncclCommDestroy(comm_); }

  int rank() const {
    int rank = 0;
    check(ncclCommUserRank(comm_, &rank));
    return rank;
  }
  int size() const {
    int count = 0;
    check(ncclCommCount(comm_, &count));
    return count;
  }
  ncclComm_t handle() const { return comm_; }
  /// Gives the handle away; the object is empty afterwards.
  ncclComm_t take() { return std::exchange(comm_, nullptr); }

  /// What this rank has moved so far; see tutti/statistics.h.
  tuttiStatistics_t statistics() const {
    tuttiStatistics_t statistics;
    check(tuttiCommStatistics(comm_, &statistics));
    return statistics;
  }

  /// What carries the links with `peer`; see tutti/transport.h.
  tuttiTransport_t transport(int peer) const {
    tuttiTransport_t transport;
    check(tuttiCommTransport(comm_, peer, &transport));
    return transport;
  }

  void allReduce(const void* send, void* recv, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                 cudaStream_t stream = nullptr) {
    check(ncclAllReduce(send, recv, count, type, op, comm_, stream));
  }
  /// `recv` is used on the root only.
  void reduce(const void* send, void* recv, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
              cudaStream_t stream = nullptr) {
    check(ncclReduce(send, recv, count, type, op, root, comm_, stream));
  }
  void reduceScatter(const void* send, void* recv, std::size_t recv_count, ncclDataType_t type,
                     ncclRedOp_t op, cudaStream_t stream = nullptr) {
    check(ncclReduceScatter(send, recv, recv_count, type, op, comm_, stream));
  }
  void allGather(const void* send, void* recv, std::size_t send_count, ncclDataType_t type,
                 cudaStream_t stream = nullptr) {
    check(ncclAllGather(send, recv, send_count, type, comm_, stream));
  }
  void broadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
                 cudaStream_t stream = nullptr) {
    check(ncclBroadcast(send, recv, count, type, root, comm_, stream));
  }
  /// `count` elements for each rank, and from each.
  void allToAll(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                cudaStream_t stream = nullptr) {
    check(ncclAlltoAll(send, recv, count, type, comm_, stream));
  }
  /// `recv` is used on the root only.
  void gather(const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
              cudaStream_t stream = nullptr) {
    check(ncclGather(send, recv, count, type, root, comm_, stream));
  }
  /// `send` is used on the root only.
  void scatter(const void* send, void* recv, std::size_t count, ncclDataType_t type, int root,
               cudaStream_t stream = nullptr) {
    check(ncclScatter(send, recv, count, type, root, comm_, stream));
  }
  void send(const void* data, std::size_t count, ncclDataType_t type, int peer,
            cudaStream_t stream = nullptr) {
    check(ncclSend(data, count, type, peer, comm_, stream));
  }
  void receive(void* data, std::size_t count, ncclDataType_t type, int peer, cudaStream_t stream = nullptr) {
    check(ncclRecv(data, count, type, peer, comm_, stream));
  }

  template <class T>
  void allReduce(const T* send, T* recv, std::size_t count, ncclRedOp_t op, cudaStream_t stream = nullptr) {
    allReduce(send, recv, count, dataTypeOf<T>(), op, stream);
  }
  template <class T>
  void allGather(const T* send, T* recv, std::size_t send_count, cudaStream_t stream = nullptr) {
    allGather(send, recv, send_count, dataTypeOf<T>(), stream);
  }
  template <class T>
  void send(const T* data, std::size_t count, int peer, cudaStream_t stream = nullptr) {
    send(data, count, dataTypeOf<T>(), peer, stream);
  }
  template <class T>
  void receive(T* data, std::size_t count, int peer, cudaStream_t stream = nullptr) {
    receive(data, count, dataTypeOf<T>(), peer, stream);
  }

  /// Returns when every rank has called it. For communicators on host memory; one on a GPU throws
  /// Error(ncclInvalidUsage): reduce a word of GPU memory there, and synchronize the stream.
  void barrier() {
    std::int32_t token = 0;
    try {
      allReduce(&token, &token, 1, ncclSum);
    } catch (const Error& error) {
      if (error.code() != ncclInvalidArgument) throw;
      throw Error(
          ncclInvalidUsage,
          std::string("barrier() serves communicators on host memory only. On a GPU, reduce a word of "
                      "GPU memory and synchronize the stream (") +
              error.what() + ")");
    }
  }

  /// Waits for what is queued on streams; see ncclCommFinalize.
  void finalize() { check(ncclCommFinalize(comm_)); }

  /// Ends the communicator on all ranks; see ncclCommAbort. The object is empty afterwards.
  void abort() { check(ncclCommAbort(std::exchange(comm_, nullptr))); }

 private:
  ncclComm_t comm_ = nullptr;
};

/// Memory of ncclMemAlloc, freed with the object. Move only.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) { check(ncclMemAlloc(&data_, bytes)); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ncclMemFree(data_); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tutti
