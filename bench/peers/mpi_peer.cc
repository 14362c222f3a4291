// MPI: compiled once against Open MPI and once against MPICH. Ranks are started by its own mpiexec.
#include <mpi.h>

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "bench/peers/peer.h"

namespace tutti::peers {
namespace {

/// bfloat16 sum: MPI has no such type, so a user of MPI brings an operation of his own. The natural loop, in
/// fp32, rounded to nearest even, without a branch; compiled for the newer instruction sets too, chosen at
/// run time, so that it is not the compiler's baseline that is compared.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
void addBfloat16(const std::uint16_t* in, std::uint16_t* inout, int count) {
  for (int i = 0; i < count; ++i) {
    const float sum = std::bit_cast<float>(static_cast<std::uint32_t>(in[i]) << 16) +
                      std::bit_cast<float>(static_cast<std::uint32_t>(inout[i]) << 16);
    const auto bits = std::bit_cast<std::uint32_t>(sum);
    const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const bool not_a_number = (bits & 0x7fffffffU) > 0x7f800000U;
    inout[i] = static_cast<std::uint16_t>(not_a_number ? 0x7fffU : rounded);
  }
}

void bfloat16Sum(void* in, void* inout, int* count, MPI_Datatype*) {
  addBfloat16(static_cast<const std::uint16_t*>(in), static_cast<std::uint16_t*>(inout), *count);
}

class MpiPeer final : public Peer {
 public:
  MpiPeer(int* argc, char*** argv) {
    MPI_Init(argc, argv);  // errors end the job, with the library's words: MPI's default
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Op_create(&bfloat16Sum, 1, &bfloat16_sum_);
  }
  MpiPeer(const MpiPeer&) = delete;
  MpiPeer& operator=(const MpiPeer&) = delete;
  ~MpiPeer() override { MPI_Finalize(); }

  std::string version() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string line(text.data(), static_cast<std::size_t>(length));
    for (char& character : line) {
      if (character == '\t' || character == '"' || character == '\\') character = ' ';
    }
    return line.substr(0, line.find_first_of(",\n"));
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  /// MPI_Alloc_mem is what MPI offers for "memory that is special for communication". The collectives of both
  /// libraries treat all memory alike inside a host, so little is to be expected of it.
  std::byte* allocate(std::size_t bytes, bool registered) override {
    if (!registered) return ordinaryMemory(bytes);
    constexpr std::size_t kAlign = 64;
    void* memory = nullptr;
    MPI_Alloc_mem(static_cast<MPI_Aint>(bytes + kAlign), MPI_INFO_NULL, &memory);
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    auto* const first = static_cast<std::byte*>(memory) + (kAlign - address % kAlign) % kAlign;
    for (std::size_t i = 0; i < bytes; ++i) first[i] = std::byte{0x3f};
    return first;
  }

  void call(const Operation& operation, const std::byte* send, std::byte* recv) override {
    const bool is_float = operation.type == Type::kFloat;
    MPI_Datatype type = is_float ? MPI_FLOAT : MPI_UINT16_T;
    MPI_Op sum = is_float ? MPI_SUM : bfloat16_sum_;
    const int count = static_cast<int>(operation.count);
    MPI_Comm world = MPI_COMM_WORLD;
    switch (operation.kind) {
      case Kind::kAllReduce:
        MPI_Allreduce(send == recv ? MPI_IN_PLACE : send, recv, count, type, sum, world);
        return;
      case Kind::kReduceScatter:
        MPI_Reduce_scatter_block(send, recv, count, type, sum, world);
        return;
      case Kind::kAllGather:
        MPI_Allgather(send, count, type, recv, count, type, world);
        return;
      case Kind::kBroadcast:
        MPI_Bcast(recv, count, type, 0, world);
        return;
      case Kind::kReduce:
        MPI_Reduce(send, recv, count, type, sum, 0, world);
        return;
      case Kind::kSendRecv:
        MPI_Sendrecv(send, count, type, (rank_ + 1) % size_, 0, recv, count, type,
                     (rank_ + size_ - 1) % size_, 0, world, MPI_STATUS_IGNORE);
        return;
      case Kind::kAllToAll:
        MPI_Alltoall(send, count, type, recv, count, type, world);
        return;
    }
  }

  double largest(double value) override {
    double result = 0;
    MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return result;
  }

 private:
  int rank_ = 0;
  int size_ = 1;
  MPI_Op bfloat16_sum_ = MPI_OP_NULL;
};

}  // namespace

std::unique_ptr<Peer> join(int* argc, char*** argv) { return std::make_unique<MpiPeer>(argc, argv); }

}  // namespace tutti::peers
