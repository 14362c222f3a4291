// The C API: what concerns the process. Finds the object, converts exceptions into results; no logic of its
// own. The others: capi_comm.cc, capi_operations.cc.
#include <array>
#include <string>

#include "runtime/bootstrap/id_source.h"
#include "runtime/capi_support.h"
#include "runtime/launch.h"
#include "tutti/launch.h"
#include "tutti/statistics.h"
#include "tutti/transport.h"

namespace {

using tutti::Process;
using tutti::capi::guarded;
using tutti::capi::requirePointer;

}  // namespace

TUTTI_API(ncclResult_t, ncclGetVersion, int* version) {
  return guarded([&] {
    requirePointer("ncclGetVersion", "version", version);
    *version = Process::instance().ncclVersion();
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

TUTTI_API(void, ncclResetDebugInit, void) {}

TUTTI_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId* uniqueId) {
  return guarded([&] {
    requirePointer("ncclGetUniqueId", "uniqueId", uniqueId);
    *uniqueId = tutti::newUniqueId(Process::instance());
  });
}

TUTTI_API(ncclResult_t, ncclMemAlloc, void** ptr, size_t size) {
  return guarded([&] {
    requirePointer("ncclMemAlloc", "ptr", ptr);
    *ptr = nullptr;
    Process& process = Process::instance();
    std::string why;
    tutti::Accelerator* gpus = process.gpus().wanted(process.settings().device, &why);
    *ptr = gpus != nullptr ? gpus->allocate(size) : process.allocate(size);
  });
}

TUTTI_API(ncclResult_t, ncclMemFree, void* ptr) {
  return guarded([&] {
    if (ptr == nullptr) return;
    tutti::Accelerator* gpus = Process::instance().gpus().opened();
    const bool was_freed = gpus != nullptr && gpus->free(ptr);
    if (!was_freed) Process::instance().release(ptr);  // NOLINT(clang-analyzer-unix.Malloc): free() refused
  });
}

TUTTI_EXPORTED ncclResult_t tuttiLaunchFromEnvironment(tuttiLaunch_t* launch) {
  return guarded([&] {
    requirePointer("tuttiLaunchFromEnvironment", "launch", launch);
    *launch = tutti::launchFromEnvironment(Process::instance());
  });
}

TUTTI_EXPORTED ncclResult_t tuttiCommStatistics(ncclComm_t comm, tuttiStatistics_t* statistics) {
  return guarded([&] {
    tutti::capi::requirePointer("tuttiCommStatistics", "statistics", statistics);
    *statistics = tutti::capi::communicatorOf("tuttiCommStatistics", comm)->statistics();
  });
}

TUTTI_EXPORTED ncclResult_t tuttiCommTransport(ncclComm_t comm, int peer, tuttiTransport_t* transport) {
  return guarded([&] {
    tutti::capi::requirePointer("tuttiCommTransport", "transport", transport);
    *transport = tutti::capi::communicatorOf("tuttiCommTransport", comm)->transport(peer);
  });
}
