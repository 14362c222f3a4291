// NCCL's variables that nothing here acts on: a person who brings them from NCCL is told so, and why.
#include <algorithm>
#include <array>

#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

constexpr bool kNumber = true;
constexpr std::string_view kOneConnection = "each pair of ranks has one connection, served by whoever waits";
constexpr std::string_view kRetries = "TUTTI_INIT_TIMEOUT and TUTTI_NET_RECOVERY say how long is tried";
constexpr std::string_view kNoPlugins = "there are no plugins";
constexpr std::string_view kNoTopology =
    "no search for rings and trees, so no topology that could be given or dumped";
constexpr std::string_view kNoSwitches = "GPUs reduce, switches and networks do not";
constexpr std::string_view kFixed = "fixed here";
constexpr std::string_view kLazy = "network links are connected at first use, in any case";
constexpr std::string_view kNoRas =
    "no such service; TUTTI_TIMEOUT and TUTTI_STALL_TIMEOUT name who is to blame";
constexpr std::string_view kSystem = "the system's default is used";
constexpr std::string_view kOrder = "work of one communicator is in order by stream events, in any case";

constexpr IdleRow kRows[] = {
    {{"NCCL_SOCKET_NTHREADS", "", kOneConnection}, kNumber},
    {{"NCCL_NSOCKS_PERTHREAD", "", kOneConnection}, kNumber},
    {{"NCCL_SOCKET_RETRY_CNT", "", kRetries}, kNumber},
    {{"NCCL_SOCKET_RETRY_SLEEP_MSEC", "", kRetries}, kNumber},
    {{"NCCL_SOCKET_POLL_TIMEOUT_MSEC", "", "waits give their core away by themselves"}, kNumber},
    {{"NCCL_SOCKET_RCVBUF", "", kSystem}, kNumber},
    {{"NCCL_SOCKET_SNDBUF", "", kSystem}, kNumber},
    {{"NCCL_NET_PLUGIN", "", kNoPlugins}},
    {{"NCCL_TUNER_PLUGIN", "", kNoPlugins}},
    {{"NCCL_PROFILER_PLUGIN", "", kNoPlugins}},
    {{"NCCL_ENV_PLUGIN", "", kNoPlugins}},
    {{"NCCL_OOB_NET_ENABLE", "", "the rendezvous goes over TCP"}, kNumber},
    {{"NCCL_OOB_NET_IFNAME", "", "NCCL_SOCKET_IFNAME chooses for the rendezvous, too"}},
    {{"NCCL_IB_FIFO_TC", "", "NCCL_IB_TC is for all packets"}, kNumber},
    {{"NCCL_IB_SPLIT_DATA_ON_QPS", "", "a slot travels on one queue pair, slots take turns"}, kNumber},
    {{"NCCL_IB_ROCE_VERSION_NUM", "", "RoCE v2 is preferred, NCCL_IB_GID_INDEX chooses"}, kNumber},
    {{"NCCL_IB_AR_THRESHOLD", "", "a write brings its own notice"}, kNumber},
    {{"NCCL_IB_ADAPTIVE_ROUTING", "", "a write brings its own notice"}, kNumber},
    {{"NCCL_IB_PCI_RELAXED_ORDERING", "", kFixed}, kNumber},
    {{"NCCL_IB_MERGE_NICS", "", "each port is used by itself"}, kNumber},
    {{"NCCL_IB_RETURN_ASYNC_EVENTS", "", "a port that fails is replaced, or the error names it"}, kNumber},
    {{"NCCL_IB_ECE_ENABLE", "", kFixed}, kNumber},
    {{"NCCL_P2P_DIRECT_DISABLE", "", "NCCL_P2P_DISABLE is for threads and processes"}, kNumber},
    {{"NCCL_P2P_USE_CUDA_MEMCPY", "", "kernels copy"}, kNumber},
    {{"NCCL_NET_GDR_READ", "", "NCCL_NET_GDR_LEVEL is for both directions"}, kNumber},
    {{"NCCL_NET_GDR_C2C", "", kNoTopology}, kNumber},
    {{"NCCL_GDRCOPY_ENABLE", "", kFixed}, kNumber},
    {{"NCCL_MIN_P2P_NCHANNELS", "", "a transfer is one lane"}, kNumber},
    {{"NCCL_MAX_P2P_NCHANNELS", "", "a transfer is one lane"}, kNumber},
    {{"NCCL_NCHANNELS_PER_NET_PEER", "", "a transfer is one lane"}, kNumber},
    {{"NCCL_NTHREADS", "", kFixed}, kNumber},
    {{"NCCL_LL128_NTHREADS", "", kFixed}, kNumber},
    {{"NCCL_LL_BUFFSIZE", "", "the size of packets is fixed"}, kNumber},
    {{"NCCL_LL128_BUFFSIZE", "", "the size of packets is fixed"}, kNumber},
    {{"NCCL_P2P_NET_CHUNKSIZE", "", "chunks are slots: TUTTI_SLOT_BYTES"}, kNumber},
    {{"NCCL_P2P_PCI_CHUNKSIZE", "", "chunks are slots: TUTTI_SLOT_BYTES"}, kNumber},
    {{"NCCL_P2P_NVL_CHUNKSIZE", "", "chunks are slots: TUTTI_SLOT_BYTES"}, kNumber},
    {{"NCCL_P2P_LL_THRESHOLD", "", "transfers use slots"}, kNumber},
    {{"NCCL_NVLS_ENABLE", "", kNoSwitches}, kNumber},
    {{"NCCL_COLLNET_ENABLE", "", kNoSwitches}, kNumber},
    {{"NCCL_PAT_ENABLE", "", "no such algorithm"}, kNumber},
    {{"NCCL_PXN_DISABLE", "", "network data is not relayed by other GPUs"}, kNumber},
    {{"NCCL_MNNVL_ENABLE", "", "NVLink is used inside a host"}, kNumber},
    {{"NCCL_CUMEM_ENABLE", "", "memory is shared by CUDA IPC"}, kNumber},
    {{"NCCL_CUMEM_HOST_ENABLE", "", "host memory is shared by memfd"}, kNumber},
    {{"NCCL_LOCAL_REGISTER", "", "what ncclCommRegister registers is used where it pays"}, kNumber},
    {{"NCCL_GRAPH_REGISTER", "", "what ncclCommRegister registers is used where it pays"}, kNumber},
    {{"NCCL_RUNTIME_CONNECT", "", kLazy}, kNumber},
    {{"NCCL_LAUNCH_MODE", "", kOrder}},
    {{"NCCL_LAUNCH_ORDER_IMPLICIT", "", kOrder}, kNumber},
    {{"NCCL_GRAPH_MIXING_SUPPORT", "", "graphs and other work may be mixed"}, kNumber},
    {{"NCCL_CGA_CLUSTER_SIZE", "", kFixed}, kNumber},
    {{"NCCL_IGNORE_NET_MISMATCH", "", "hosts may have different ports"}, kNumber},
    {{"NCCL_UID_STAGGER_THRESHOLD", "", "ranks meet in a tree"}, kNumber},
    {{"NCCL_UID_STAGGER_RATE", "", "ranks meet in a tree"}, kNumber},
    {{"NCCL_RAS_ENABLE", "", kNoRas}, kNumber},
    {{"NCCL_RAS_ADDR", "", kNoRas}},
    {{"NCCL_RAS_TIMEOUT_FACTOR", "", kNoRas}, kNumber},
    {{"NCCL_SET_THREAD_NAME", "", kFixed}, kNumber},
    {{"NCCL_WORK_FIFO_BYTES", "", kFixed}, kNumber},
    {{"NCCL_PROXY_APPEND_BATCH_SIZE", "", kFixed}, kNumber},
    {{"NCCL_CONNECT_ROUND_MAX_PEERS", "", kLazy}, kNumber},
    {{"NCCL_REPORT_CONNECT_PROGRESS", "", kLazy}, kNumber},
    {{"NCCL_IPC_USE_ABSTRACT_SOCKET", "", "abstract sockets are used"}, kNumber},
    {{"NCCL_MULTI_RANK_GPU_ENABLE", "", "ranks may share a GPU, with a warning"}, kNumber},
    {{"NCCL_SUSPEND_MEM", "", "memory is not given back before the communicator ends"}, kNumber},
    {{"NCCL_WARN_ENABLE_DEBUG_INFO", "", "NCCL_DEBUG says what is logged"}, kNumber},
};

}  // namespace

std::span<const IdleRow> idleRows() { return kRows; }

std::span<const SettingRow> idleSettings() {
  static const auto rows = [] {
    std::array<SettingRow, std::size(kRows)> result;
    std::ranges::copy(kRows, result.begin());
    return result;
  }();
  return rows;
}

void requireForm(const IdleRow& row, std::string_view value) {
  if (!row.is_number) return;
  if (value.starts_with('-')) value.remove_prefix(1);
  wholeNumber(row, value, 0, ~std::uint64_t{0});
}

}  // namespace tutti
