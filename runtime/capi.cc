// The C API: finds the object, converts exceptions into results. No logic of its own.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>

#include "nccl.h"
#include "runtime/communicator.h"
#include "runtime/core/types.h"
#include "runtime/launch.h"
#include "runtime/process.h"
#include "runtime/rendezvous.h"
#include "runtime/unique_id.h"
#include "tutti/error.h"
#include "tutti/launch.h"
#include "tutti/statistics.h"

// g++ wants an alias to repeat attributes that it derives for the target by itself.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

// The profiling alias: the same address under a second name, so that a preloaded tool may define the first.
#define TUTTI_API(result, function, ...)                                                               \
  extern "C" __attribute__((visibility("default"), alias(#function))) result p##function(__VA_ARGS__); \
  extern "C" __attribute__((visibility("default"))) result function(__VA_ARGS__)

struct ncclComm {
  explicit ncclComm(tutti::Process& process, const tutti::Settings& settings, int nranks,
                    const tutti::UniqueId& id, int rank)
      : communicator(process, settings, nranks, id, rank) {}
  tutti::Communicator communicator;
};

namespace {

using tutti::Collective;
using tutti::DataType;
using tutti::Descriptor;
using tutti::Error;
using tutti::Process;
using tutti::RedOp;

static_assert(static_cast<int>(DataType::float32) == ncclFloat32 &&
              static_cast<int>(DataType::int32) == ncclInt32 &&
              static_cast<int>(DataType::float8e5m2) == ncclFloat8e5m2 &&
              tutti::kDataTypeCount == ncclNumTypes);
static_assert(static_cast<int>(RedOp::max) == ncclMax && static_cast<int>(RedOp::min) == ncclMin &&
              static_cast<int>(RedOp::avg) == ncclAvg && tutti::kRedOpCount == ncclNumOps);

/// The handles that are alive, so that a stale one is an error in words. Never destroyed, like Process.
class Handles {
 public:
  static Handles& instance() {
    static auto* const handles = new Handles;
    return *handles;
  }
  void add(ncclComm_t comm) {
    const std::scoped_lock lock(mutex_);
    alive_.insert(comm);
  }
  /// Throws unless `comm` is alive.
  void require(const char* function, ncclComm_t comm) {
    const std::scoped_lock lock(mutex_);
    if (!alive_.contains(comm)) refuse(function);
  }
  /// The same, and makes it the caller's to delete.
  void remove(const char* function, ncclComm_t comm) {
    const std::scoped_lock lock(mutex_);
    if (alive_.erase(comm) == 0) refuse(function);
  }

 private:
  [[noreturn]] static void refuse(const char* function) {
    throw Error(ncclInvalidArgument,
                fmt::format("{}: comm is no communicator, or one that was destroyed already", function));
  }

  std::mutex mutex_;
  std::set<ncclComm_t> alive_;
};

/// Runs `body`; turns what it throws into a result, the process's last error, and a log line.
template <class Body>
ncclResult_t guarded(const Body& body) noexcept {
  ncclResult_t code = ncclInternalError;
  std::string message;
  try {
    body();
    return ncclSuccess;
  } catch (const Error& error) {
    code = error.code();
    message = error.what();
  } catch (const std::bad_alloc&) {
    code = ncclSystemError;
    message = "out of memory";
  } catch (const std::exception& error) {
    message = error.what();
  }
  try {
    Process::instance().setLastError(message);
    Process::instance().log().write(tutti::LogLevel::warn, -1, message);
  } catch (...) {
    return code;  // the words are lost, the result is not
  }
  return code;
}

template <class T>
void requirePointer(const char* function, const char* argument, const T* pointer) {
  if (pointer == nullptr) throw Error(ncclInvalidArgument, fmt::format("{}: {} is NULL", function, argument));
}

tutti::Communicator& communicatorOf(const char* function, ncclComm_t comm) {
  requirePointer(function, "comm", comm);
  Handles::instance().require(function, comm);
  return comm->communicator;
}

struct Call {
  Collective collective;
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  size_t count;
};

ncclResult_t runCall(const char* function, const Call& call, const void* send, void* recv, ncclComm_t comm,
                     cudaStream_t stream) {
  return guarded([&] {
    auto& communicator = communicatorOf(function, comm);
    if (stream != nullptr) {
      throw Error(ncclInvalidArgument,
                  fmt::format("{}: stream must be NULL on host memory in this version", function));
    }
    // A caller's enumerator may hold any int, and must not wrap into a valid one. Its bytes are copied,
    // because loading it as an enumerator would be undefined.
    const auto byte = [](const auto& enumerator) {
      std::int32_t value = 0;
      static_assert(sizeof(enumerator) == sizeof(value));
      std::memcpy(&value, &enumerator, sizeof(value));
      return static_cast<std::uint8_t>(value < 0 || value > 255 ? 255 : value);
    };
    const Descriptor descriptor{.collective = call.collective,
                                .type = static_cast<DataType>(byte(call.type)),
                                .op = static_cast<RedOp>(byte(call.op)),
                                .root = call.root,
                                .count = call.count};
    communicator.run(descriptor, send, recv);
  });
}

}  // namespace

TUTTI_API(ncclResult_t, ncclGetVersion, int* version) {
  return guarded([&] {
    requirePointer("ncclGetVersion", "version", version);
    *version = NCCL_VERSION_CODE;
  });
}

TUTTI_API(const char*, ncclGetErrorString, ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the Tutti developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
    default:
      return "unknown result code";
  }
}

TUTTI_API(const char*, ncclGetLastError, ncclComm_t) {
  // The thread's own copy: it stays valid while other threads fail.
  thread_local std::array<char, 1024> text{};
  guarded([] {
    const std::string last = Process::instance().lastError();
    text[last.copy(text.data(), text.size() - 1)] = '\0';
  });
  return text.data();
}

TUTTI_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId* uniqueId) {
  return guarded([&] {
    requirePointer("ncclGetUniqueId", "uniqueId", uniqueId);
    const auto& settings = Process::instance().settings();
    *uniqueId = tutti::openRendezvous(settings.bootstrap_port, settings.init_timeout);
  });
}

TUTTI_API(ncclResult_t, ncclCommInitRank, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return guarded([&] {
    requirePointer("ncclCommInitRank", "comm", comm);
    *comm = nullptr;
    if (nranks < 1 || nranks > tutti::kMaxRanks) {
      throw Error(ncclInvalidArgument,
                  fmt::format("ncclCommInitRank: nranks {} is not from 1 to {}, the most that this "
                              "version supports",
                              nranks, tutti::kMaxRanks));
    }
    if (rank < 0 || rank >= nranks) {
      throw Error(ncclInvalidArgument,
                  fmt::format("ncclCommInitRank: rank {} is not one of ranks 0 to {}", rank, nranks - 1));
    }
    auto& process = Process::instance();
    auto made = std::make_unique<ncclComm>(process, process.settings(), nranks, tutti::decode(commId), rank);
    Handles::instance().add(made.get());
    *comm = made.release();
  });
}

TUTTI_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm) {
  return guarded([&] {
    if (comm == nullptr) return;
    if (communicatorOf("ncclCommDestroy", comm).busy()) {
      throw Error(ncclInvalidUsage,
                  "ncclCommDestroy: another thread is inside an operation; use ncclCommAbort");
    }
    Handles::instance().remove("ncclCommDestroy", comm);
    const std::unique_ptr<ncclComm> owned(comm);
    owned->communicator.requireAllReceived();
  });
}

TUTTI_API(ncclResult_t, ncclCommAbort, ncclComm_t comm) {
  return guarded([&] {
    if (comm == nullptr) return;
    Handles::instance().remove("ncclCommAbort", comm);
    if (!comm->communicator.abort()) {
      // Freeing it under the feet of the other thread would be worse than keeping it.
      throw Error(ncclSystemError,
                  "ncclCommAbort: the thread inside the operation did not leave it within 1 s; the "
                  "communicator was not freed");
    }
    delete comm;
  });
}

TUTTI_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded([&] {
    requirePointer("ncclCommGetAsyncError", "asyncError", asyncError);
    const auto& fault = communicatorOf("ncclCommGetAsyncError", comm).fault();
    *asyncError = fault.tripped() ? fault.code() : ncclSuccess;
  });
}

TUTTI_API(ncclResult_t, ncclCommCount, ncclComm_t comm, int* count) {
  return guarded([&] {
    requirePointer("ncclCommCount", "count", count);
    *count = communicatorOf("ncclCommCount", comm).nranks();
  });
}

TUTTI_API(ncclResult_t, ncclCommUserRank, ncclComm_t comm, int* rank) {
  return guarded([&] {
    requirePointer("ncclCommUserRank", "rank", rank);
    *rank = communicatorOf("ncclCommUserRank", comm).rank();
  });
}

TUTTI_API(ncclResult_t, ncclMemAlloc, void** ptr, size_t size) {
  return guarded([&] {
    requirePointer("ncclMemAlloc", "ptr", ptr);
    *ptr = nullptr;
    *ptr = Process::instance().allocate(size);
  });
}

TUTTI_API(ncclResult_t, ncclMemFree, void* ptr) {
  return guarded([&] {
    if (ptr != nullptr) Process::instance().release(ptr);
  });
}

TUTTI_API(ncclResult_t, ncclAllReduce, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return runCall("ncclAllReduce",
                 {.collective = Collective::all_reduce, .type = datatype, .op = op, .count = count}, sendbuff,
                 recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclReduceScatter, const void* sendbuff, void* recvbuff, size_t recvcount,
          ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return runCall("ncclReduceScatter",
                 {.collective = Collective::reduce_scatter, .type = datatype, .op = op, .count = recvcount},
                 sendbuff, recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclAllGather, const void* sendbuff, void* recvbuff, size_t sendcount,
          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return runCall("ncclAllGather",
                 {.collective = Collective::all_gather, .type = datatype, .count = sendcount}, sendbuff,
                 recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclBroadcast, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return runCall("ncclBroadcast",
                 {.collective = Collective::broadcast, .type = datatype, .root = root, .count = count},
                 sendbuff, recvbuff, comm, stream);
}

extern "C" __attribute__((visibility("default"))) ncclResult_t tuttiLaunchFromEnvironment(
    tuttiLaunch_t* launch) {
  return guarded([&] {
    requirePointer("tuttiLaunchFromEnvironment", "launch", launch);
    *launch = tutti::launchFromEnvironment(Process::instance());
  });
}

extern "C" __attribute__((visibility("default"))) ncclResult_t tuttiCommStatistics(
    ncclComm_t comm, tuttiStatistics_t* statistics) {
  return guarded([&] {
    requirePointer("tuttiCommStatistics", "statistics", statistics);
    *statistics = communicatorOf("tuttiCommStatistics", comm).statistics();
  });
}
