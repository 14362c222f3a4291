// Time, bandwidth and correctness of an all-to-all with blocks of different sizes: ncclSend to and ncclRecv
// from every rank, in one group. traffic.h says how the sizes are chosen.
#include <stdexcept>

#include "bench/in_group.h"
#include "bench/program.h"
#include "bench/traffic.h"

namespace {

ncclResult_t exchange(const tutti::perf::Invocation& call) {
  const std::size_t element_bytes = tutti::perf::elementBytes(call.type);
  const std::vector<std::size_t>& send_blocks = call.layout.send_blocks;
  const std::vector<std::size_t>& recv_blocks = call.layout.recv_blocks;
  return tutti::perf::inGroup([&] {
    const auto* from = static_cast<const std::byte*>(call.send);
    auto* to = static_cast<std::byte*>(call.recv);
    for (std::size_t peer = 0; peer < send_blocks.size(); ++peer) {
      const int rank = static_cast<int>(peer);
      const ncclResult_t sent = ncclSend(from, send_blocks[peer], call.type, rank, call.comm, call.stream);
      if (sent != ncclSuccess) return sent;
      const ncclResult_t received = ncclRecv(to, recv_blocks[peer], call.type, rank, call.comm, call.stream);
      if (received != ncclSuccess) return received;
      from += send_blocks[peer] * element_bytes;
      to += recv_blocks[peer] * element_bytes;
    }
    return ncclSuccess;
  });
}

}  // namespace

int main(int argc, char** argv) {
  tutti::perf::Collective collective = tutti::perf::kAllToAllV;
  try {
    const auto traffic = tutti::perf::Traffic::fromEnvironment();
    collective.traffic = &traffic;
    return tutti::perf::runProgram(argc, argv, collective, exchange);
  } catch (const std::invalid_argument& error) {
    return tutti::perf::refuseArguments(collective, error.what());
  }
}
