// C++ wrapper over the C API: header only, owns handles, throws tutti::Error.
//
//   tutti::Comm comm = tutti::Comm::fromEnvironment();          // under tutti-run
//   comm.allReduce(gradient.data(), gradient.data(), gradient.size(), ncclAvg);
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
    static_assert(std::is_same_v<T, std::int32_t>, "no ncclDataType_t for this type yet");
    return ncclInt32;
  }
}

/// One rank's handle of a communicator. Move only; destroyed with the object.
class Comm {
 public:
  /// Joins as `rank` of `nranks`; see ncclCommInitRank.
  Comm(int nranks, const ncclUniqueId& id, int rank) { check(ncclCommInitRank(&comm_, nranks, id, rank)); }

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

  /// What this rank has moved so far; see tutti/statistics.h.
  tuttiStatistics_t statistics() const {
    tuttiStatistics_t statistics;
    check(tuttiCommStatistics(comm_, &statistics));
    return statistics;
  }

  void allReduce(const void* send, void* recv, std::size_t count, ncclDataType_t type, ncclRedOp_t op) {
    check(ncclAllReduce(send, recv, count, type, op, comm_, nullptr));
  }
  void reduceScatter(const void* send, void* recv, std::size_t recv_count, ncclDataType_t type,
                     ncclRedOp_t op) {
    check(ncclReduceScatter(send, recv, recv_count, type, op, comm_, nullptr));
  }
  void allGather(const void* send, void* recv, std::size_t send_count, ncclDataType_t type) {
    check(ncclAllGather(send, recv, send_count, type, comm_, nullptr));
  }
  void broadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type, int root) {
    check(ncclBroadcast(send, recv, count, type, root, comm_, nullptr));
  }

  template <class T>
  void allReduce(const T* send, T* recv, std::size_t count, ncclRedOp_t op) {
    allReduce(send, recv, count, dataTypeOf<T>(), op);
  }
  template <class T>
  void allGather(const T* send, T* recv, std::size_t send_count) {
    allGather(send, recv, send_count, dataTypeOf<T>());
  }

  /// Returns when every rank has called it.
  void barrier() {
    std::int32_t token = 0;
    allReduce(&token, &token, 1, ncclSum);
  }

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
