// The C API of communicators: making, asking, ending.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/bootstrap/id_source.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/capi_support.h"

namespace {

using tutti::CommConfig;
using tutti::CommInit;
using tutti::Error;
using tutti::Group;
using tutti::Process;
using namespace tutti::capi;  // NOLINT(google-build-using-namespace): written for these sources

struct Join {
  int nranks;
  ncclUniqueId id;
  int rank;
  std::optional<int> device = std::nullopt;  ///< else the current one
};

void requireRank(const char* function, int nranks, int rank) {
  if (nranks < 1 || nranks > tutti::kMaxRanks) {
    throw Error(ncclInvalidArgument,
                fmt::format("{}: nranks {} is not from 1 to {}, the most that this version supports",
                            function, nranks, tutti::kMaxRanks));
  }
  if (rank < 0 || rank >= nranks) {
    throw Error(ncclInvalidArgument,
                fmt::format("{}: rank {} is not one of ranks 0 to {}", function, rank, nranks - 1));
  }
}

void sayWhatIsIgnored(const CommConfig& config, int rank) {
  if (config.ignored.empty()) return;
  Process::instance().log().write(
      tutti::LogLevel::info, rank,
      fmt::format("accepted in ncclConfig_t, but nothing acts on it on host memory: {}",
                  fmt::join(config.ignored, ", ")));
}

/// The GPUs, if communicators are to work on them.
tutti::Accelerator* wantedGpus() {
  Process& process = Process::instance();
  std::string why;
  tutti::Accelerator* gpus = process.gpus().wanted(process.settings().device, &why);
  if (gpus == nullptr && !why.empty()) process.sayHostMemory(why);
  process.sayIgnored(gpus != nullptr);
  return gpus;
}

void discard(ncclComm_t* comm, ncclComm_t handle) {
  CommHandles::instance().remove(handle);
  *comm = nullptr;
}

tutti::UniqueId idOf(const char* function, const ncclUniqueId& id) {
  try {
    return tutti::decode(id);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: commId: {}", function, error.what()));
  }
}

/// Prepares a communicator: *comm is its handle from here on, unless it is discarded.
CommInit prepare(const char* function, ncclComm_t* comm, const Join& join, const CommConfig& config) {
  requireRank(function, join.nranks, join.rank);
  const tutti::UniqueId id = idOf(function, join.id);
  sayWhatIsIgnored(config, join.rank);
  tutti::Accelerator* gpus = wantedGpus();
  const int current = gpus != nullptr ? gpus->currentDevice() : 0;
  auto handle = std::make_shared<ncclComm>(config, join.device.value_or(current));
  *comm = CommHandles::instance().add(handle);
  return {.handle = handle,
          .membership =
              [join, id] {
                return tutti::Membership{.nranks = join.nranks, .rank = join.rank, .id = id, .check = {}};
              },
          .is_blocking = config.is_blocking,
          .gpus = gpus,
          .discard = [comm, raw = handle.get()] { discard(comm, raw); }};
}

/// At once, or at the end of the group that the thread is in.
ncclResult_t makeOrRecord(CommInit init) {
  Group& group = Group::ofThisThread();
  if (!group.isOpen()) return tutti::makeCommunicators({std::move(init)});
  group.add(std::move(init));
  return ncclSuccess;
}

ncclResult_t initRank(const char* function, ncclComm_t* comm, const Join& join, const ncclConfig_t* config) {
  return recorded([&] {
    requirePointer(function, "comm", comm);
    *comm = nullptr;
    return makeOrRecord(prepare(function, comm, join, configOf(function, config)));
  });
}

void requireDevices(const std::vector<int>& devices) {
  const tutti::Accelerator* gpus = wantedGpus();
  if (gpus == nullptr) return;
  std::string why;
  const int count = gpus->deviceCount(&why);
  for (const int device : devices) {
    if (device < count) continue;
    throw Error(ncclInvalidArgument,
                fmt::format("ncclCommInitAll: there is no GPU {}: this process sees {}", device, count));
  }
}

std::vector<int> devicesOf(int ndev, const int* devlist) {
  std::vector<int> devices;
  devices.reserve(static_cast<std::size_t>(ndev));
  for (int i = 0; i < ndev; ++i) devices.push_back(devlist != nullptr ? devlist[i] : i);
  std::set<int> seen;
  for (const int device : devices) {
    if (device < 0) {
      throw Error(ncclInvalidArgument, fmt::format("ncclCommInitAll: device {} is negative", device));
    }
    if (!seen.insert(device).second) {
      throw Error(ncclInvalidUsage, fmt::format("ncclCommInitAll: device {} is listed twice", device));
    }
  }
  requireDevices(devices);
  return devices;
}

/// Outside a group at once, inside it at its end.
ncclResult_t atGroupEnd(std::function<ncclResult_t()> ending) {
  Group& group = Group::ofThisThread();
  if (!group.isOpen()) return ending();
  group.addEnding(std::move(ending));
  return ncclSuccess;
}

ncclResult_t finalize(ncclComm_t comm) {
  const auto handle = handleOf("ncclCommFinalize", comm);
  tutti::Communicator& communicator = handle->require("ncclCommFinalize");
  communicator.finalize();
  if (!handle->isBlocking()) return communicator.turns().pending() ? ncclInProgress : ncclSuccess;
  communicator.turns().awaitAll();
  return ncclSuccess;
}

/// In a group, after the splits that the same group has begun.
ncclResult_t finalizeInGroup(ncclComm_t comm) {
  const auto handle = handleOf("ncclCommFinalize", comm);
  tutti::Communicator* communicator = handle->communicator();
  const bool is_put_off =
      communicator != nullptr && handle->afterBackground([communicator] { communicator->finalize(); });
  return is_put_off ? ncclInProgress : finalize(comm);
}

/// What others are being made out of in the background ends after that: its handle is gone at once.
ncclResult_t destroy(ncclComm_t comm) {
  const auto handle = handleOf("ncclCommDestroy", comm);
  if (handle->isStarting()) {
    throw Error(ncclInvalidArgument,
                "ncclCommDestroy: the communicator is still being made; use ncclCommAbort, or wait until "
                "ncclCommGetAsyncError no longer says ncclInProgress");
  }
  tutti::Communicator* communicator = handle->communicator();
  if (communicator != nullptr) {
    if (!handle->isInBackground() && communicator->busy()) {
      throw Error(ncclInvalidUsage,
                  "ncclCommDestroy: another thread is inside an operation; use ncclCommAbort");
    }
    communicator->turns().awaitAll();
  }
  if (CommHandles::instance().remove(comm) == nullptr) refuseComm("ncclCommDestroy");
  if (communicator == nullptr) return ncclSuccess;
  const bool is_put_off = handle->afterBackground([communicator] { communicator->requireAllReceived(); });
  if (!is_put_off) communicator->requireAllReceived();
  return ncclSuccess;
}

}  // namespace

TUTTI_API(ncclResult_t, ncclCommInitRank, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return initRank("ncclCommInitRank", comm, {.nranks = nranks, .id = commId, .rank = rank}, nullptr);
}

TUTTI_API(ncclResult_t, ncclCommInitRankConfig, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
          ncclConfig_t* config) {
  return initRank("ncclCommInitRankConfig", comm, {.nranks = nranks, .id = commId, .rank = rank}, config);
}

TUTTI_API(ncclResult_t, ncclCommInitRankScalable, ncclComm_t* newcomm, int nranks, int myrank, int nId,
          ncclUniqueId* commIds, ncclConfig_t* config) {
  constexpr const char* kFunction = "ncclCommInitRankScalable";
  const ncclResult_t checked = recorded([&] {
    requirePointer(kFunction, "newcomm", newcomm);
    *newcomm = nullptr;
    requirePointer(kFunction, "commIds", commIds);
    if (nId >= 1 && nId <= nranks) return;
    throw Error(ncclInvalidArgument,
                fmt::format("{}: nId {} is not from 1 to nranks, which is {}", kFunction, nId, nranks));
  });
  if (checked != ncclSuccess) return checked;
  // The ranks meet in a tree: one rendezvous has no more to do for many of them than a few messages.
  return initRank(kFunction, newcomm, {.nranks = nranks, .id = commIds[0], .rank = myrank}, config);
}

TUTTI_API(ncclResult_t, ncclCommInitAll, ncclComm_t* comm, int ndev, const int* devlist) {
  return recorded([&] {
    requirePointer("ncclCommInitAll", "comm", comm);
    if (ndev < 0 || ndev > tutti::kMaxRanks) {
      throw Error(ncclInvalidArgument,
                  fmt::format("ncclCommInitAll: ndev {} is not from 0 to {}, the most that this version "
                              "supports",
                              ndev, tutti::kMaxRanks));
    }
    const std::vector<int> devices = devicesOf(ndev, devlist);
    if (devices.empty()) return ncclSuccess;
    const ncclUniqueId id = tutti::localUniqueId(Process::instance());
    std::vector<CommInit> inits;
    inits.reserve(devices.size());
    for (int rank = 0; rank < ndev; ++rank) {
      inits.push_back(
          prepare("ncclCommInitAll", comm + rank,
                  {.nranks = ndev, .id = id, .rank = rank, .device = devices[static_cast<std::size_t>(rank)]},
                  configOf("ncclCommInitAll", nullptr)));
    }
    Group& group = Group::ofThisThread();
    if (!group.isOpen()) return tutti::makeCommunicators(std::move(inits));
    for (CommInit& init : inits) group.add(std::move(init));
    return ncclSuccess;
  });
}

TUTTI_API(ncclResult_t, ncclCommFinalize, ncclComm_t comm) {
  return recorded([&] {
    if (comm == nullptr) return ncclSuccess;
    handleOf("ncclCommFinalize", comm);
    if (!Group::ofThisThread().isOpen()) return finalize(comm);
    return atGroupEnd([comm] { return finalizeInGroup(comm); });
  });
}

TUTTI_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm) {
  return recorded([&] {
    if (comm == nullptr) return ncclSuccess;
    handleOf("ncclCommDestroy", comm);
    return atGroupEnd([comm] { return destroy(comm); });
  });
}

TUTTI_API(ncclResult_t, ncclCommAbort, ncclComm_t comm) {
  return guarded([&] {
    if (comm == nullptr) return;
    handleOf("ncclCommAbort", comm);
    const auto handle = CommHandles::instance().remove(comm);
    if (handle == nullptr) refuseComm("ncclCommAbort");
    handle->abandon();
    tutti::Communicator* communicator = handle->communicator();
    if (communicator != nullptr && !communicator->abort()) {
      throw Error(ncclSystemError,
                  "ncclCommAbort: the thread inside the operation did not leave it within 10 s. Its buffers "
                  "may still be in use; the communicator is freed when it leaves");
    }
  });
}

TUTTI_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded([&] {
    requirePointer("ncclCommGetAsyncError", "asyncError", asyncError);
    *asyncError = handleOf("ncclCommGetAsyncError", comm)->asyncError();
  });
}

TUTTI_API(ncclResult_t, ncclCommCount, ncclComm_t comm, int* count) {
  return guarded([&] {
    requirePointer("ncclCommCount", "count", count);
    *count = communicatorOf("ncclCommCount", comm)->nranks();
  });
}

TUTTI_API(ncclResult_t, ncclCommCuDevice, ncclComm_t comm, int* device) {
  return guarded([&] {
    requirePointer("ncclCommCuDevice", "device", device);
    const auto handle = handleOf("ncclCommCuDevice", comm);
    handle->require("ncclCommCuDevice");
    *device = handle->device();
  });
}

TUTTI_API(ncclResult_t, ncclCommUserRank, ncclComm_t comm, int* rank) {
  return guarded([&] {
    requirePointer("ncclCommUserRank", "rank", rank);
    *rank = communicatorOf("ncclCommUserRank", comm)->rank();
  });
}

TUTTI_API(ncclResult_t, ncclCommRegister, ncclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded([&] {
    requirePointer("ncclCommRegister", "handle", handle);
    *handle = nullptr;
    *handle = communicatorOf("ncclCommRegister", comm)->registerBuffer(buff, size);
  });
}

TUTTI_API(ncclResult_t, ncclCommDeregister, ncclComm_t comm, void* handle) {
  return guarded([&] {
    const auto communicator = communicatorOf("ncclCommDeregister", comm);
    if (handle != nullptr) communicator->deregisterBuffer(handle);
  });
}

TUTTI_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
          int winFlags) {
  return guarded([&] {
    constexpr const char* kFunction = "ncclCommWindowRegister";
    requirePointer(kFunction, "win", win);
    *win = nullptr;
    communicatorOf(kFunction, comm);
    requirePointer(kFunction, "buff", buff);
    if (size == 0) throw Error(ncclInvalidArgument, fmt::format("{}: size is 0", kFunction));
    if (winFlags != NCCL_WIN_DEFAULT && winFlags != NCCL_WIN_COLL_SYMMETRIC) {
      throw Error(ncclInvalidArgument,
                  fmt::format("{}: winFlags {:#x} are neither NCCL_WIN_DEFAULT nor NCCL_WIN_COLL_SYMMETRIC",
                              kFunction, winFlags));
    }
    if (reinterpret_cast<std::uintptr_t>(buff) % NCCL_WIN_REQUIRED_ALIGNMENT == 0) return;
    throw Error(ncclInvalidArgument,
                fmt::format("{}: buff {} is not aligned to {} bytes, as memory of ncclMemAlloc is", kFunction,
                            buff, NCCL_WIN_REQUIRED_ALIGNMENT));
  });
}

TUTTI_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win) {
  return guarded([&] {
    handleOf("ncclCommWindowDeregister", comm);
    if (win == nullptr) return;
    throw Error(ncclInvalidArgument,
                "ncclCommWindowDeregister: win is no window: ncclCommWindowRegister made none");
  });
}
