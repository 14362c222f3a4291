// Functions of NCCL that have nothing to act on here. They are exported, so that programs that were linked
// against NCCL load, and say what to use instead.
#include "runtime/capi_support.h"
#include "tutti/nccl_newer.h"

namespace {

ncclResult_t refuse(const char* function, const char* instead) {
  return tutti::capi::recorded([&] {
    throw tutti::Error(ncclInvalidUsage, fmt::format("{} is not supported: {}", function, instead));
  });
}

constexpr const char* kNoWindows =
    "there are no windows. Use ncclSend and ncclRecv; ncclCommRegister lets peers work on a buffer in place";
constexpr const char* kNoDeviceApi =
    "kernels of the program cannot communicate themselves. Call the collective on a stream between two "
    "kernels";
constexpr const char* kNoSuspension =
    "memory of a communicator is not given back while it lives. Destroy it, and make another one when it is "
    "needed again";
constexpr const char* kNoParameters =
    "settings are read from the environment, and listed in docs/environment.md; NCCL_DEBUG=INFO shows what "
    "they "
    "lead to";
constexpr const char* kNoGrowth =
    "a communicator does not grow. Get an id by ncclGetUniqueId, and make a larger communicator of all ranks "
    "by "
    "ncclCommInitRank";

}  // namespace

/// TUTTI_REFUSED(function, instead, types of its arguments)
#define TUTTI_REFUSED(function, instead, ...) \
  TUTTI_API(ncclResult_t, function, __VA_ARGS__) { return refuse(#function, instead); }

TUTTI_REFUSED(ncclCommGetUniqueId, kNoGrowth, ncclComm_t, ncclUniqueId*)

TUTTI_API(ncclResult_t, ncclCommGrow, ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t* newcomm,
          ncclConfig_t*) {
  if (newcomm != nullptr) *newcomm = nullptr;
  return refuse("ncclCommGrow", kNoGrowth);
}

TUTTI_REFUSED(ncclWinGetUserPtr, kNoWindows, ncclComm_t, ncclWindow_t, void**)

// NOLINTNEXTLINE(readability-function-size): NCCL's arguments
TUTTI_REFUSED(ncclPutSignal, kNoWindows, const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int,
              int, unsigned int, ncclComm_t, cudaStream_t)
TUTTI_REFUSED(ncclSignal, kNoWindows, int, int, int, unsigned int, ncclComm_t, cudaStream_t)
TUTTI_REFUSED(ncclWaitSignal, kNoWindows, int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t)
TUTTI_REFUSED(ncclCommSuspend, kNoSuspension, ncclComm_t, int)
TUTTI_REFUSED(ncclCommResume, kNoSuspension, ncclComm_t)
TUTTI_REFUSED(ncclCommMemStats, "tuttiCommStatistics counts what a communicator moved", ncclComm_t,
              ncclCommMemStat_t, uint64_t*)
TUTTI_REFUSED(ncclParamBind, kNoParameters, ncclParamHandle_t*, const char*)
TUTTI_REFUSED(ncclParamGetI8, kNoParameters, ncclParamHandle_t, int8_t*)
TUTTI_REFUSED(ncclParamGetI16, kNoParameters, ncclParamHandle_t, int16_t*)
TUTTI_REFUSED(ncclParamGetI32, kNoParameters, ncclParamHandle_t, int32_t*)
TUTTI_REFUSED(ncclParamGetI64, kNoParameters, ncclParamHandle_t, int64_t*)
TUTTI_REFUSED(ncclParamGetU8, kNoParameters, ncclParamHandle_t, uint8_t*)
TUTTI_REFUSED(ncclParamGetU16, kNoParameters, ncclParamHandle_t, uint16_t*)
TUTTI_REFUSED(ncclParamGetU32, kNoParameters, ncclParamHandle_t, uint32_t*)
TUTTI_REFUSED(ncclParamGetU64, kNoParameters, ncclParamHandle_t, uint64_t*)
TUTTI_REFUSED(ncclParamGetStr, kNoParameters, ncclParamHandle_t, const char**)
TUTTI_REFUSED(ncclParamGet, kNoParameters, ncclParamHandle_t, void*, int, int*)
TUTTI_REFUSED(ncclParamGetParameter, kNoParameters, const char*, const char**, int*)
TUTTI_REFUSED(ncclParamGetAllParameterKeys, kNoParameters, const char***, int*)

TUTTI_API(void, ncclParamDumpAll, void) { refuse("ncclParamDumpAll", kNoParameters); }

TUTTI_REFUSED(ncclDevCommCreate, kNoDeviceApi, ncclComm_t, const ncclDevCommRequirements_t*, ncclDevComm_t*)
TUTTI_REFUSED(ncclDevCommDestroy, kNoDeviceApi, ncclComm_t, const ncclDevComm_t*)
TUTTI_REFUSED(ncclCommQueryProperties, kNoDeviceApi, ncclComm_t, ncclCommProperties_t*)
TUTTI_REFUSED(ncclGetLsaMultimemDevicePointer, kNoDeviceApi, ncclWindow_t, size_t, void**)
TUTTI_REFUSED(ncclGetMultimemDevicePointer, kNoDeviceApi, ncclWindow_t, size_t, ncclMultimemHandle_t, void**)
TUTTI_REFUSED(ncclGetLsaDevicePointer, kNoDeviceApi, ncclWindow_t, size_t, int, void**)
TUTTI_REFUSED(ncclGetPeerDevicePointer, kNoDeviceApi, ncclWindow_t, size_t, int, void**)
TUTTI_REFUSED(ncclLsaBarrierCreateRequirement, kNoDeviceApi, ncclTeam_t, int, ncclLsaBarrierHandle_t*,
              ncclDevResourceRequirements_t*)
TUTTI_REFUSED(ncclGinBarrierCreateRequirement, kNoDeviceApi, ncclComm_t, ncclTeam_t, int,
              ncclGinBarrierHandle_t*, ncclDevResourceRequirements_t*)
TUTTI_REFUSED(ncclGinOutboxCreateRequirement, kNoDeviceApi, int, int, ncclGinOutboxHandle_t*,
              ncclDevResourceRequirements_t*)
TUTTI_REFUSED(ncclGinInboxA2ACreateRequirement, kNoDeviceApi, ncclTeam_t, int, int, ncclGinInboxA2AHandle_t*,
              ncclDevResourceRequirements_t*)
TUTTI_REFUSED(ncclLLA2ACreateRequirement, kNoDeviceApi, int, int, ncclLLA2AHandle_t*,
              ncclDevResourceRequirements_t*)
