// Tutti, through the C++ wrapper and the C API. Ranks are started by tutti-run.
#include <cstdio>
#include <cstdlib>
#include <list>

#include "bench/peers/peer.h"
#include "bench/registration.h"
#include "tutti/tutti.h"

namespace tutti::peers {
namespace {

ncclDataType_t typeOf(Type type) { return type == Type::kFloat ? ncclFloat32 : ncclBfloat16; }

struct RegisteredBuffer {
  RegisteredBuffer(ncclComm_t comm, std::size_t bytes)
      : memory(bytes), registration(comm, memory.data(), bytes) {}

  Buffer memory;
  perf::Registration registration;
};

/// The peers are compared on host memory.
Comm onHost() {
  ::setenv("TUTTI_DEVICE", "host", 1);
  return Comm::fromEnvironment();
}

class TuttiPeer final : public Peer {
 public:
  TuttiPeer() : comm_(onHost()), rank_(comm_.rank()), size_(comm_.size()) {}

  std::string version() const override { return TUTTI_PERF_VERSION; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::byte* allocate(std::size_t bytes, bool registered) override {
    if (!registered) return ordinaryMemory(bytes);
    return registered_.emplace_back(comm_.handle(), bytes).memory.data();
  }

  void call(const Operation& operation, const std::byte* send, std::byte* recv) override {
    const ncclDataType_t type = typeOf(operation.type);
    const std::size_t count = operation.count;
    ncclComm_t comm = comm_.handle();
    switch (operation.kind) {
      case Kind::kAllReduce:
        return check(ncclAllReduce(send, recv, count, type, ncclSum, comm, nullptr));
      case Kind::kReduceScatter:
        return check(ncclReduceScatter(send, recv, count, type, ncclSum, comm, nullptr));
      case Kind::kAllGather:
        return check(ncclAllGather(send, recv, count, type, comm, nullptr));
      case Kind::kBroadcast:
        return check(ncclBroadcast(send, recv, count, type, 0, comm, nullptr));
      case Kind::kReduce:
        return check(ncclReduce(send, recv, count, type, ncclSum, 0, comm, nullptr));
      case Kind::kSendRecv:
        check(ncclGroupStart());
        check(ncclSend(send, count, type, (rank_ + 1) % size_, comm, nullptr));
        check(ncclRecv(recv, count, type, (rank_ + size_ - 1) % size_, comm, nullptr));
        return check(ncclGroupEnd());
      case Kind::kAllToAll:
        return comm_.allToAll(send, recv, count, type);
      default:
        break;
    }
  }

  double largest(double value) override {
    double result = 0;
    comm_.allReduce(&value, &result, 1, ncclMax);
    return result;
  }

 private:
  Comm comm_;
  int rank_;
  int size_;
  std::list<RegisteredBuffer> registered_;  // ends before the communicator
};

}  // namespace

std::unique_ptr<Peer> join(int*, char***) {
  std::set_terminate([] {
    // The library's words, and no core file.
    std::fprintf(stderr, "%s\n", ncclGetLastError(nullptr));
    std::_Exit(1);
  });
  return std::make_unique<TuttiPeer>();
}

}  // namespace tutti::peers
