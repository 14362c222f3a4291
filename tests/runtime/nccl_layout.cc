// Sizes, offsets, values and signatures of NCCL 2.28.9 on a 64-bit system: compiled against this project's
// nccl.h, and against NVIDIA's where there is one. That it compiles is the test.
#include TUTTI_NCCL_HEADER

#include <cstddef>
#include <type_traits>

static_assert(NCCL_VERSION_CODE == 22809 && NCCL_MAJOR == 2 && NCCL_MINOR == 28 && NCCL_PATCH == 9);
static_assert(NCCL_VERSION(2, 8, 4) == 2804 && NCCL_VERSION(2, 30, 7) == 23007);

static_assert(sizeof(ncclUniqueId) == 128 && NCCL_UNIQUE_ID_BYTES == 128);
static_assert(sizeof(ncclResult_t) == 4 && sizeof(ncclDataType_t) == 4 && sizeof(ncclRedOp_t) == 4);
static_assert(sizeof(ncclScalarResidence_t) == 4);

static_assert(sizeof(ncclConfig_t) == 80 && std::is_same_v<ncclConfig_t, ncclConfig_v22800>);
static_assert(offsetof(ncclConfig_t, size) == 0 && offsetof(ncclConfig_t, magic) == 8);
static_assert(offsetof(ncclConfig_t, version) == 12 && offsetof(ncclConfig_t, blocking) == 16);
static_assert(offsetof(ncclConfig_t, cgaClusterSize) == 20 && offsetof(ncclConfig_t, minCTAs) == 24);
static_assert(offsetof(ncclConfig_t, maxCTAs) == 28 && offsetof(ncclConfig_t, netName) == 32);
static_assert(offsetof(ncclConfig_t, splitShare) == 40 && offsetof(ncclConfig_t, trafficClass) == 44);
static_assert(offsetof(ncclConfig_t, commName) == 48 && offsetof(ncclConfig_t, collnetEnable) == 56);
static_assert(offsetof(ncclConfig_t, CTAPolicy) == 60 && offsetof(ncclConfig_t, shrinkShare) == 64);
static_assert(offsetof(ncclConfig_t, nvlsCTAs) == 68 && offsetof(ncclConfig_t, nChannelsPerNetPeer) == 72);
static_assert(offsetof(ncclConfig_t, nvlinkCentricSched) == 76);
constexpr ncclConfig_t kConfig = NCCL_CONFIG_INITIALIZER;
static_assert(kConfig.size == 80 && kConfig.magic == 0xcafebeef && kConfig.version == 22809);
static_assert(kConfig.blocking == NCCL_CONFIG_UNDEF_INT && kConfig.netName == NCCL_CONFIG_UNDEF_PTR);
static_assert(kConfig.commName == NCCL_CONFIG_UNDEF_PTR &&
              kConfig.nvlinkCentricSched == NCCL_CONFIG_UNDEF_INT);

static_assert(sizeof(ncclSimInfo_t) == 24 && std::is_same_v<ncclSimInfo_t, ncclSimInfo_v22200>);
static_assert(offsetof(ncclSimInfo_t, magic) == 8 && offsetof(ncclSimInfo_t, version) == 12);
static_assert(offsetof(ncclSimInfo_t, estimatedTime) == 16);
constexpr ncclSimInfo_t kSimInfo = NCCL_SIM_INFO_INITIALIZER;
static_assert(kSimInfo.size == 24 && kSimInfo.magic == 0x74685283 && kSimInfo.estimatedTime == -1.0F);

static_assert(ncclSuccess == 0 && ncclUnhandledCudaError == 1 && ncclSystemError == 2 &&
              ncclInternalError == 3);
static_assert(ncclInvalidArgument == 4 && ncclInvalidUsage == 5 && ncclRemoteError == 6 &&
              ncclInProgress == 7);
static_assert(ncclNumResults == 8 && ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 &&
              ncclAvg == 4);
static_assert(ncclNumOps == 5 && ncclMaxRedOp == 0x7fffffff);
static_assert(ncclInt8 == 0 && ncclChar == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclInt == 2 &&
              ncclUint32 == 3);
static_assert(ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclHalf == 6 && ncclFloat32 == 7);
static_assert(ncclFloat == 7 && ncclFloat64 == 8 && ncclDouble == 8 && ncclBfloat16 == 9 &&
              ncclFloat8e4m3 == 10);
static_assert(ncclFloat8e5m2 == 11 && ncclNumTypes == 12);
static_assert(ncclScalarDevice == 0 && ncclScalarHostImmediate == 1);
static_assert(NCCL_SPLIT_NOCOLOR == -1 && NCCL_WIN_DEFAULT == 0 && NCCL_WIN_COLL_SYMMETRIC == 1);
static_assert(NCCL_WIN_REQUIRED_ALIGNMENT == 4096 && NCCL_SHRINK_DEFAULT == 0 && NCCL_SHRINK_ABORT == 1);
static_assert(NCCL_REVOKE_DEFAULT == 0 && NCCL_CTA_POLICY_DEFAULT == 0 && NCCL_CTA_POLICY_EFFICIENCY == 1);
static_assert(NCCL_CTA_POLICY_ZERO == 2 && NCCL_UNDEF_FLOAT == -1.0F);

template <class Expected, class Function>
constexpr bool is(const Function& /*function*/) {
  return std::is_same_v<Expected, Function>;
}
static_assert(is<ncclResult_t(int*)>(ncclGetVersion));
static_assert(is<const char*(ncclResult_t)>(ncclGetErrorString));
static_assert(is<const char*(ncclComm_t)>(ncclGetLastError));
static_assert(is<ncclResult_t(ncclUniqueId*)>(ncclGetUniqueId));
static_assert(is<ncclResult_t(ncclComm_t*, int, ncclUniqueId, int)>(ncclCommInitRank));
static_assert(is<ncclResult_t(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*)>(ncclCommInitRankConfig));
static_assert(
    is<ncclResult_t(ncclComm_t*, int, int, int, ncclUniqueId*, ncclConfig_t*)>(ncclCommInitRankScalable));
static_assert(is<ncclResult_t(ncclComm_t*, int, const int*)>(ncclCommInitAll));
static_assert(is<ncclResult_t(ncclComm_t)>(ncclCommFinalize));
static_assert(is<ncclResult_t(ncclComm_t)>(ncclCommDestroy));
static_assert(is<ncclResult_t(ncclComm_t)>(ncclCommAbort));
static_assert(is<ncclResult_t(ncclComm_t, int)>(ncclCommRevoke));
static_assert(is<ncclResult_t(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*)>(ncclCommSplit));
static_assert(is<ncclResult_t(ncclComm_t, int*, int, ncclComm_t*, ncclConfig_t*, int)>(ncclCommShrink));
static_assert(is<ncclResult_t(ncclComm_t, ncclResult_t*)>(ncclCommGetAsyncError));
static_assert(is<ncclResult_t(const ncclComm_t, int*)>(ncclCommCount));
static_assert(is<ncclResult_t(const ncclComm_t, int*)>(ncclCommCuDevice));
static_assert(is<ncclResult_t(const ncclComm_t, int*)>(ncclCommUserRank));
static_assert(is<ncclResult_t(void**, size_t)>(ncclMemAlloc));
static_assert(is<ncclResult_t(void*)>(ncclMemFree));
static_assert(is<ncclResult_t(const ncclComm_t, void*, size_t, void**)>(ncclCommRegister));
static_assert(is<ncclResult_t(const ncclComm_t, void*)>(ncclCommDeregister));
static_assert(is<ncclResult_t(ncclComm_t, void*, size_t, ncclWindow_t*, int)>(ncclCommWindowRegister));
static_assert(is<ncclResult_t(ncclComm_t, ncclWindow_t)>(ncclCommWindowDeregister));
static_assert(is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                              cudaStream_t)>(ncclAllReduce));
static_assert(is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                              cudaStream_t)>(ncclReduce));
static_assert(is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                              cudaStream_t)>(ncclReduceScatter));
static_assert(
    is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t)>(ncclAllGather));
static_assert(is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>(
    ncclBroadcast));
static_assert(is<ncclResult_t(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>(ncclBcast));
static_assert(
    is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t)>(ncclAlltoAll));
static_assert(
    is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>(ncclGather));
static_assert(
    is<ncclResult_t(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>(ncclScatter));
static_assert(is<ncclResult_t(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>(ncclSend));
static_assert(is<ncclResult_t(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>(ncclRecv));
static_assert(is<ncclResult_t(ncclRedOp_t*, void*, ncclDataType_t, ncclScalarResidence_t, ncclComm_t)>(
    ncclRedOpCreatePreMulSum));
static_assert(is<ncclResult_t(ncclRedOp_t, ncclComm_t)>(ncclRedOpDestroy));
static_assert(is<ncclResult_t()>(ncclGroupStart));
static_assert(is<ncclResult_t()>(ncclGroupEnd));
static_assert(is<ncclResult_t(ncclSimInfo_t*)>(ncclGroupSimulateEnd));
