// The C API of operations: collectives, point-to-point, groups, streams, reduction operations of the user.
#include <algorithm>
#include <cstddef>
#include <limits>

#include "runtime/capi_support.h"
#include "runtime/stream.h"
#include "tutti/stream.h"

namespace {

using tutti::Collective;
using tutti::Communicator;
using tutti::DataType;
using tutti::Error;
using tutti::Group;
using tutti::RedOp;
using tutti::Stream;
using tutti::Task;
using namespace tutti::capi;  // NOLINT(google-build-using-namespace): written for these sources

static_assert(static_cast<int>(DataType::float32) == ncclFloat32 &&
              static_cast<int>(DataType::int32) == ncclInt32 &&
              static_cast<int>(DataType::float8e5m2) == ncclFloat8e5m2 &&
              tutti::kDataTypeCount == ncclNumTypes);
static_assert(static_cast<int>(RedOp::max) == ncclMax && static_cast<int>(RedOp::min) == ncclMin &&
              static_cast<int>(RedOp::avg) == ncclAvg && tutti::kRedOpCount == ncclNumOps &&
              static_cast<int>(RedOp::premul_sum) == ncclNumOps);

using StreamHandles = tutti::Handles<Stream>;

const Stream* streamAt(cudaStream_t stream) {
  return reinterpret_cast<const Stream*>(stream);  // NOLINT: an opaque handle of CUDA's type is required
}

[[noreturn]] void refuseStream(const char* function) {
  throw Error(
      ncclInvalidArgument,
      fmt::format("{}: stream is neither NULL nor a stream of tuttiStreamCreate that is alive. On host "
                  "memory, streams of CUDA have no meaning",
                  function));
}

std::shared_ptr<Stream> streamOf(const char* function, cudaStream_t stream) {
  if (stream == nullptr) return nullptr;
  auto found = StreamHandles::instance().find(streamAt(stream));
  if (found == nullptr) refuseStream(function);
  return found;
}

/// Where a task of the communicator goes.
tutti::Placement placeOf(const char* function, const Communicator& communicator, cudaStream_t stream) {
  if (communicator.isOnGpu()) {
    communicator.requireStream(stream);
    return {.gpu = stream};
  }
  return {.host = streamOf(function, stream)};
}

/// Launches a validated task, or records it if the thread is in a group.
void launchOrRecord(const std::shared_ptr<Communicator>& communicator, const Task& task,
                    const tutti::Placement& place) {
  const bool is_to_self = task.peer == communicator->rank();
  // Nothing to do; but the two halves of a transfer to oneself must both be there.
  if (task.descriptor.count == 0 && !is_to_self) return;
  Group& group = Group::ofThisThread();
  if (group.isOpen()) return group.add(communicator, task, place);
  if (place.host == nullptr && !is_to_self && !communicator->isOnGpu()) {
    const auto occupancy = communicator->occupy();
    if (!communicator->turns().pending()) return launchInline(*communicator, task);
  }
  const auto batch = std::make_shared<tutti::Batch>();
  batch->add(communicator, task, place);
  batch->launch();
}

/// The caller's datatype, which must be one.
DataType typeOf(const char* function, const ncclDataType_t& datatype) {
  const int type = valueOf(datatype);
  if (type < 0 || type >= ncclNumTypes) {
    throw Error(ncclInvalidArgument, fmt::format("{}: datatype {} is not an ncclDataType_t", function, type));
  }
  return static_cast<DataType>(type);
}

/// Throws Error(ncclInvalidArgument) for one that NCCL_SIM_INFO_INITIALIZER has not made. A newer header's
/// may be larger.
void requireSimInfo(const ncclSimInfo_t* info) {
  constexpr const char* kFunction = "ncclGroupSimulateEnd";
  constexpr unsigned kMagic = 0x74685283;
  constexpr unsigned kFirstVersion = NCCL_VERSION(2, 22, 0);
  requirePointer(kFunction, "simInfo", info);
  constexpr std::size_t kNeeded = offsetof(ncclSimInfo_t, estimatedTime) + sizeof(info->estimatedTime);
  if (info->size >= kNeeded && info->magic == kMagic && info->version >= kFirstVersion) return;
  throw Error(
      ncclInvalidArgument,
      fmt::format("{}: simInfo has size {}, magic {:#x} and version {}, where at least {}, {:#x} and at "
                  "least {} are needed. Initialize it with NCCL_SIM_INFO_INITIALIZER",
                  kFunction, info->size, info->magic, info->version, kNeeded, kMagic, kFirstVersion));
}

struct Call {
  Collective collective;
  ncclDataType_t type;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  size_t count;
  const char* buffer = nullptr;  ///< what nccl.h calls it, where it is both
};

ncclResult_t runCollective(const char* function, const Call& call, const void* send, void* recv,
                           ncclComm_t comm, cudaStream_t stream) {
  return recorded([&] {
    const auto communicator = communicatorOf(function, comm);
    Task task{.descriptor = {.collective = call.collective,
                             .type = typeOf(function, call.type),
                             .root = call.root,
                             .count = call.count},
              .send = send,
              .recv = recv,
              .function = function};
    if (call.buffer != nullptr) task.send_name = task.recv_name = call.buffer;
    const int op = valueOf(call.op);
    if (op >= 0 && op < ncclNumOps) {
      task.descriptor.op = static_cast<RedOp>(op);
    } else {
      task.scalar = communicator->redOps().scalarOf(op, task.descriptor.type, function);
      task.descriptor.op = RedOp::premul_sum;
    }
    communicator->validate(task);
    communicator->sayCall(function, task, comm, stream);
    launchOrRecord(communicator, task, placeOf(function, *communicator, stream));
  });
}

ncclResult_t runTransfer(const char* function, Task task, size_t count, ncclDataType_t datatype, int peer,
                         ncclComm_t comm, cudaStream_t stream) {
  return recorded([&] {
    const auto communicator = communicatorOf(function, comm);
    const DataType type = typeOf(function, datatype);
    const std::uint64_t size = tutti::sizeOf(type);
    if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / size) {
      throw Error(ncclInvalidArgument, fmt::format("{}: count {} of {} exceeds what memory can hold",
                                                   function, count, tutti::name(type)));
    }
    task.function = function;
    task.descriptor = tutti::transferDescriptor(count * size);
    task.peer = peer;
    communicator->validate(task);
    communicator->sayCall(function, task, comm, stream);
    launchOrRecord(communicator, task, placeOf(function, *communicator, stream));
  });
}

}  // namespace

TUTTI_API(ncclResult_t, ncclAllReduce, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return runCollective("ncclAllReduce",
                       {.collective = Collective::all_reduce, .type = datatype, .op = op, .count = count},
                       sendbuff, recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclReduce, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return runCollective(
      "ncclReduce",
      {.collective = Collective::reduce, .type = datatype, .op = op, .root = root, .count = count}, sendbuff,
      recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclReduceScatter, const void* sendbuff, void* recvbuff, size_t recvcount,
          ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return runCollective(
      "ncclReduceScatter",
      {.collective = Collective::reduce_scatter, .type = datatype, .op = op, .count = recvcount}, sendbuff,
      recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclAllGather, const void* sendbuff, void* recvbuff, size_t sendcount,
          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return runCollective("ncclAllGather",
                       {.collective = Collective::all_gather, .type = datatype, .count = sendcount}, sendbuff,
                       recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclBroadcast, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return runCollective("ncclBroadcast",
                       {.collective = Collective::broadcast, .type = datatype, .root = root, .count = count},
                       sendbuff, recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclBcast, void* buff, size_t count, ncclDataType_t datatype, int root,
          ncclComm_t comm, cudaStream_t stream) {
  return runCollective(
      "ncclBcast",
      {.collective = Collective::broadcast, .type = datatype, .root = root, .count = count, .buffer = "buff"},
      buff, buff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclAlltoAll, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return runCollective("ncclAlltoAll",
                       {.collective = Collective::all_to_all, .type = datatype, .count = count}, sendbuff,
                       recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclGather, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return runCollective("ncclGather",
                       {.collective = Collective::gather, .type = datatype, .root = root, .count = count},
                       sendbuff, recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclScatter, const void* sendbuff, void* recvbuff, size_t count,
          ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return runCollective("ncclScatter",
                       {.collective = Collective::scatter, .type = datatype, .root = root, .count = count},
                       sendbuff, recvbuff, comm, stream);
}

TUTTI_API(ncclResult_t, ncclSend, const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
          ncclComm_t comm, cudaStream_t stream) {
  return runTransfer("ncclSend", {.kind = Task::Kind::send, .send = sendbuff}, count, datatype, peer, comm,
                     stream);
}

TUTTI_API(ncclResult_t, ncclRecv, void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
          ncclComm_t comm, cudaStream_t stream) {
  return runTransfer("ncclRecv", {.kind = Task::Kind::receive, .recv = recvbuff}, count, datatype, peer, comm,
                     stream);
}

TUTTI_API(ncclResult_t, ncclGroupStart) {
  return guarded([] { Group::ofThisThread().start(); });
}

TUTTI_API(ncclResult_t, ncclGroupEnd) {
  return guarded([] { return Group::ofThisThread().end(); });
}

TUTTI_API(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t* simInfo) {
  return guarded([&] {
    float estimate = NCCL_UNDEF_FLOAT;
    Group::ofThisThread().simulateEnd(&estimate);
    requireSimInfo(simInfo);
    if (estimate >= 0) simInfo->estimatedTime = estimate;
  });
}

TUTTI_API(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
          ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded([&] {
    constexpr const char* kFunction = "ncclRedOpCreatePreMulSum";
    requirePointer(kFunction, "op", op);
    requirePointer(kFunction, "scalar", scalar);
    const auto communicator = communicatorOf(kFunction, comm);
    const DataType type = typeOf(kFunction, datatype);
    tutti::Scalar kept;
    switch (valueOf(residence)) {
      case ncclScalarDevice:
        kept.at = scalar;
        break;
      case ncclScalarHostImmediate:
        std::memcpy(kept.value.data(), scalar, tutti::sizeOf(type));
        break;
      default:
        throw Error(ncclInvalidArgument, fmt::format("{}: residence {} is not an ncclScalarResidence_t",
                                                     kFunction, valueOf(residence)));
    }
    const int number = communicator->redOps().create(type, kept);
    std::memcpy(op, &number, sizeof(number));
  });
}

TUTTI_API(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm) {
  return guarded([&] { communicatorOf("ncclRedOpDestroy", comm)->redOps().destroy(valueOf(op)); });
}

TUTTI_EXPORTED ncclResult_t tuttiStreamCreate(tuttiStream_t* stream) {
  return guarded([&] {
    requirePointer("tuttiStreamCreate", "stream", stream);
    *stream = nullptr;
    *stream = reinterpret_cast<cudaStream_t>(StreamHandles::instance().add(std::make_shared<Stream>()));
  });
}

TUTTI_EXPORTED ncclResult_t tuttiStreamDestroy(tuttiStream_t stream) {
  return guarded([&] {
    if (stream == nullptr) return;
    const auto removed = StreamHandles::instance().remove(streamAt(stream));
    if (removed == nullptr) refuseStream("tuttiStreamDestroy");
    removed->close();
  });
}

TUTTI_EXPORTED ncclResult_t tuttiStreamSynchronize(tuttiStream_t stream) {
  return guarded([&] {
    // What has no stream is done already.
    if (const auto found = streamOf("tuttiStreamSynchronize", stream)) found->synchronize();
  });
}

TUTTI_EXPORTED ncclResult_t tuttiStreamQuery(tuttiStream_t stream) {
  return guarded([&] {
    const auto found = streamOf("tuttiStreamQuery", stream);
    return found != nullptr ? found->query() : ncclSuccess;
  });
}
