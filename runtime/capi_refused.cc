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

TUTTI_API(ncclResult_t, ncclCommGetUniqueId, ncclComm_t, ncclUniqueId*) {
  return refuse("ncclCommGetUniqueId", kNoGrowth);
}

TUTTI_API(ncclResult_t, ncclCommGrow, ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t* newcomm,
          ncclConfig_t*) {
  if (newcomm != nullptr) *newcomm = nullptr;
  return refuse("ncclCommGrow", kNoGrowth);
}

TUTTI_API(ncclResult_t, ncclWinGetUserPtr, ncclComm_t, ncclWindow_t, void**) {
  return refuse("ncclWinGetUserPtr", kNoWindows);
}

// NOLINTNEXTLINE(readability-function-size): NCCL's arguments
TUTTI_API(ncclResult_t, ncclPutSignal, const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int,
          int, unsigned int, ncclComm_t, cudaStream_t) {
  return refuse("ncclPutSignal", kNoWindows);
}

TUTTI_API(ncclResult_t, ncclSignal, int, int, int, unsigned int, ncclComm_t, cudaStream_t) {
  return refuse("ncclSignal", kNoWindows);
}

TUTTI_API(ncclResult_t, ncclWaitSignal, int, ncclWaitSignalDesc_t*, ncclComm_t, cudaStream_t) {
  return refuse("ncclWaitSignal", kNoWindows);
}

TUTTI_API(ncclResult_t, ncclCommSuspend, ncclComm_t, int) { return refuse("ncclCommSuspend", kNoSuspension); }

TUTTI_API(ncclResult_t, ncclCommResume, ncclComm_t) { return refuse("ncclCommResume", kNoSuspension); }

TUTTI_API(ncclResult_t, ncclCommMemStats, ncclComm_t, ncclCommMemStat_t, uint64_t*) {
  return refuse("ncclCommMemStats", "tuttiCommStatistics counts what a communicator moved");
}

TUTTI_API(ncclResult_t, ncclParamBind, ncclParamHandle_t*, const char*) {
  return refuse("ncclParamBind", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetI8, ncclParamHandle_t, int8_t*) {
  return refuse("ncclParamGetI8", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetI16, ncclParamHandle_t, int16_t*) {
  return refuse("ncclParamGetI16", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetI32, ncclParamHandle_t, int32_t*) {
  return refuse("ncclParamGetI32", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetI64, ncclParamHandle_t, int64_t*) {
  return refuse("ncclParamGetI64", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetU8, ncclParamHandle_t, uint8_t*) {
  return refuse("ncclParamGetU8", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetU16, ncclParamHandle_t, uint16_t*) {
  return refuse("ncclParamGetU16", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetU32, ncclParamHandle_t, uint32_t*) {
  return refuse("ncclParamGetU32", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetU64, ncclParamHandle_t, uint64_t*) {
  return refuse("ncclParamGetU64", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetStr, ncclParamHandle_t, const char**) {
  return refuse("ncclParamGetStr", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGet, ncclParamHandle_t, void*, int, int*) {
  return refuse("ncclParamGet", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetParameter, const char*, const char**, int*) {
  return refuse("ncclParamGetParameter", kNoParameters);
}

TUTTI_API(ncclResult_t, ncclParamGetAllParameterKeys, const char***, int*) {
  return refuse("ncclParamGetAllParameterKeys", kNoParameters);
}

TUTTI_API(void, ncclParamDumpAll, void) { refuse("ncclParamDumpAll", kNoParameters); }

TUTTI_API(ncclResult_t, ncclDevCommCreate, ncclComm_t, const ncclDevCommRequirements_t*, ncclDevComm_t*) {
  return refuse("ncclDevCommCreate", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclDevCommDestroy, ncclComm_t, const ncclDevComm_t*) {
  return refuse("ncclDevCommDestroy", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclCommQueryProperties, ncclComm_t, ncclCommProperties_t*) {
  return refuse("ncclCommQueryProperties", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclGetLsaMultimemDevicePointer, ncclWindow_t, size_t, void**) {
  return refuse("ncclGetLsaMultimemDevicePointer", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclGetMultimemDevicePointer, ncclWindow_t, size_t, ncclMultimemHandle_t, void**) {
  return refuse("ncclGetMultimemDevicePointer", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclGetLsaDevicePointer, ncclWindow_t, size_t, int, void**) {
  return refuse("ncclGetLsaDevicePointer", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclGetPeerDevicePointer, ncclWindow_t, size_t, int, void**) {
  return refuse("ncclGetPeerDevicePointer", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclLsaBarrierCreateRequirement, ncclTeam_t, int, ncclLsaBarrierHandle_t*,
          ncclDevResourceRequirements_t*) {
  return refuse("ncclLsaBarrierCreateRequirement", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclGinBarrierCreateRequirement, ncclComm_t, ncclTeam_t, int, ncclGinBarrierHandle_t*,
          ncclDevResourceRequirements_t*) {
  return refuse("ncclGinBarrierCreateRequirement", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclGinOutboxCreateRequirement, int, int, ncclGinOutboxHandle_t*,
          ncclDevResourceRequirements_t*) {
  return refuse("ncclGinOutboxCreateRequirement", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclGinInboxA2ACreateRequirement, ncclTeam_t, int, int, ncclGinInboxA2AHandle_t*,
          ncclDevResourceRequirements_t*) {
  return refuse("ncclGinInboxA2ACreateRequirement", kNoDeviceApi);
}

TUTTI_API(ncclResult_t, ncclLLA2ACreateRequirement, int, int, ncclLLA2AHandle_t*,
          ncclDevResourceRequirements_t*) {
  return refuse("ncclLLA2ACreateRequirement", kNoDeviceApi);
}
