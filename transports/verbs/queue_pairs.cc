#include "transports/verbs/queue_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "transports/verbs/path_rules.h"
#include "transports/verbs/wire_header.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::uint32_t kPacketNumbers = 1U << 24;

}  // namespace

QueuePairs::QueuePairs(const VerbsPort& port, std::uint32_t count, QueueDepth depth,
                       const RdmaSettings& settings)
    : port_(port),
      verbs_(port.device->verbs()),
      first_packet_(std::random_device()() % kPacketNumbers),
      reads_(depth.reads) {
  const auto require = [&](const void* made, const char* what, std::uint32_t wanted) {
    if (made != nullptr) return;
    const int error = errno;
    close();
    throw Error(
        ncclSystemError,
        fmt::format("{}: {} with {} entries: {} (errno {}). The device or a limit allows no more: lower "
                    "TUTTI_LANES or NCCL_IB_QPS_PER_CONNECTION, and see that locked memory is not limited "
                    "(ulimit -l)",
                    port_.name(), what, wanted, std::strerror(error), error));
  };
  const std::uint32_t entries = count * (depth.sends + depth.receives);
  completions_ =
      verbs_.create_cq(port_.device->context(), static_cast<int>(entries), this, port_.device->channel(), 0);
  require(completions_, "making a completion queue", entries);
  for (std::uint32_t i = 0; i < count; ++i) {
    ibv_qp_init_attr wanted{};
    wanted.qp_context = this;
    wanted.send_cq = wanted.recv_cq = completions_;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap.max_send_wr = depth.sends;
    wanted.cap.max_recv_wr = depth.receives;
    wanted.cap.max_send_sge = 2;  // a slot's header and its data
    wanted.cap.max_recv_sge = 1;
    wanted.cap.max_inline_data = kInlineBytes;
    ibv_qp* const made = verbs_.create_qp(port_.device->domain(), &wanted);
    require(made, "making a queue pair", depth.sends);
    pairs_.push_back(made);
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.pkey_index = settings.pkey_index;
    init.port_num = port_.number;
    init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | (reads_ != 0 ? IBV_ACCESS_REMOTE_READ : 0);
    const int error =
        verbs_.modify_qp(made, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (error == 0) continue;
    close();
    throw Error(ncclSystemError, fmt::format("{}: queue pair to INIT with the partition key at index {} "
                                             "(NCCL_IB_PKEY): {} (errno {})",
                                             port_.name(), settings.pkey_index, std::strerror(error), error));
  }
}

QueuePairs::~QueuePairs() { close(); }

void QueuePairs::close() {
  for (ibv_qp* pair : pairs_) verbs_.destroy_qp(pair);
  pairs_.clear();
  if (completions_ == nullptr) return;
  if (unacknowledged_ != 0) verbs_.ack_cq_events(completions_, unacknowledged_);
  verbs_.destroy_cq(completions_);
  completions_ = nullptr;
}

QueuePairAddress QueuePairs::address(const Gid& mine) const {
  QueuePairAddress address{.first_packet = first_packet_, .lid = port_.lid};
  address.mtu = static_cast<std::uint8_t>(port_.mtu);
  address.gid = mine;
  address.partition = port_.partition;
  for (std::size_t i = 0; i < pairs_.size(); ++i) address.numbers[i] = pairs_[i]->qp_num;
  return address;
}

void QueuePairs::connect(const Gid& mine, const QueuePairAddress& remote, const RdmaSettings& settings) {
  const auto mtu = commonMtu(port_.mtu, remote.mtu);
  if (!mtu)
    throw Error(ncclSystemError, fmt::format("the peer's packet size makes no sense ({})", remote.mtu));
  const std::string other_partition = whyNotOnePartition(port_.partition, remote.partition);
  if (!other_partition.empty())
    throw Error(ncclSystemError, fmt::format("{}: {}", port_.name(), other_partition));
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const auto modify = [&](ibv_qp_attr& attributes, int mask, const char* to) {
      const int error = verbs_.modify_qp(pairs_[i], &attributes, mask);
      if (error == 0) return;
      throw Error(
          ncclSystemError,
          fmt::format("{}: queue pair to {}: {} (errno {}), from GID {} to GID {}. Do both ports have those "
                      "addresses, and a route to each other (NCCL_IB_GID_INDEX)?",
                      port_.name(), to, std::strerror(error), error, toText(mine), toText(remote.gid)));
    };
    ibv_qp_attr receive{};
    receive.qp_state = IBV_QPS_RTR;
    receive.path_mtu = *mtu;
    receive.dest_qp_num = remote.numbers[i];
    receive.rq_psn = remote.first_packet;
    receive.max_dest_rd_atomic = reads_;
    receive.min_rnr_timer = 12;
    receive.ah_attr.sl = settings.service_level;
    receive.ah_attr.port_num = port_.number;
    receive.ah_attr.dlid = remote.lid;
    receive.ah_attr.is_global =
        needsGlobalHeader(port_.is_ethernet, port_.wants_global_header, mine, remote.gid) ? 1 : 0;
    std::memcpy(receive.ah_attr.grh.dgid.raw, remote.gid.bytes.data(), remote.gid.bytes.size());
    receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(mine.index);
    receive.ah_attr.grh.hop_limit = 255;
    receive.ah_attr.grh.traffic_class = settings.traffic_class;
    modify(receive,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
           "RTR");

    ibv_qp_attr send{};
    send.qp_state = IBV_QPS_RTS;
    send.timeout = settings.timeout;
    send.retry_cnt = settings.retry_count;
    send.rnr_retry = 7;
    send.sq_psn = first_packet_;
    send.max_rd_atomic = reads_;
    modify(send,
           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC,
           "RTS");
  }
}

bool QueuePairs::postReceive(std::uint32_t pair) {
  ibv_recv_wr request{};
  ibv_recv_wr* bad = nullptr;
  return ::ibv_post_recv(pairs_[pair], &request, &bad) == 0;
}

bool QueuePairs::post(std::uint32_t pair, ibv_send_wr& first) {
  ibv_send_wr* bad = nullptr;
  return ::ibv_post_send(pairs_[pair], &first, &bad) == 0;
}

std::span<ibv_wc> QueuePairs::poll(std::span<ibv_wc> room) {
  const int count = ::ibv_poll_cq(completions_, static_cast<int>(room.size()), room.data());
  return room.first(static_cast<std::size_t>(std::max(0, count)));
}

void QueuePairs::arm() {
  if (is_armed_) return;
  is_armed_ = ::ibv_req_notify_cq(completions_, 0) == 0;
}

}  // namespace tutti
