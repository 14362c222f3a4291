#include "transports/verbs/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tutti {
namespace {

struct StatusText {
  ibv_wc_status status;
  const char* name;
  const char* words;
  const char* hint;
};

constexpr const char* kUnheard =
    "Is the peer's port up, its cable in, UDP port 4791 open for RoCE v2 (firewall), the MTU the same along "
    "the "
    "way, and PFC set where packets are lost?";
constexpr const char* kOurs = "This is a defect of Tutti or of the device's driver: please report it";
constexpr const char* kUnused =
    "Tutti asks for nothing of that kind: look for a defect of the device's driver";

constexpr std::array kStatuses{
    StatusText{IBV_WC_SUCCESS, "IBV_WC_SUCCESS", "completed", "Nothing is wrong"},
    StatusText{IBV_WC_LOC_LEN_ERR, "IBV_WC_LOC_LEN_ERR", "a message is longer than the memory for it", kOurs},
    StatusText{IBV_WC_LOC_QP_OP_ERR, "IBV_WC_LOC_QP_OP_ERR", "the local queue pair failed while it sent",
               "Is the local port up, and is there still a route to the peer's address?"},
    StatusText{IBV_WC_LOC_EEC_OP_ERR, "IBV_WC_LOC_EEC_OP_ERR", "a local end-to-end context failed", kUnused},
    StatusText{
        IBV_WC_LOC_PROT_ERR, "IBV_WC_LOC_PROT_ERR", "local memory is not registered with the device",
        "Was a registered buffer freed, or unmapped, while an operation used it (ncclCommDeregister comes "
        "first)?"},
    StatusText{IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR", "the queue pair had failed before",
               "The device did not say why: see the kernel's log (dmesg) on both hosts"},
    StatusText{IBV_WC_MW_BIND_ERR, "IBV_WC_MW_BIND_ERR", "a memory window could not be bound", kUnused},
    StatusText{IBV_WC_BAD_RESP_ERR, "IBV_WC_BAD_RESP_ERR",
               "the peer's device answered with what it never should",
               "Do both devices run firmware and drivers that know each other?"},
    StatusText{IBV_WC_LOC_ACCESS_ERR, "IBV_WC_LOC_ACCESS_ERR", "the peer wrote where it may not", kOurs},
    StatusText{IBV_WC_REM_INV_REQ_ERR, "IBV_WC_REM_INV_REQ_ERR", "the peer's device refused the request",
               "Do both ranks run the same version of Tutti, and are the MTUs of both ports the same?"},
    StatusText{
        IBV_WC_REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR", "the peer's device refused the write",
        "Its memory is not registered any more, or the key (rkey) is of another registration: did the peer's "
        "process end, or its device go?"},
    StatusText{IBV_WC_REM_OP_ERR, "IBV_WC_REM_OP_ERR", "the peer's device failed",
               "See the kernel's log (dmesg) on the peer's host"},
    StatusText{
        IBV_WC_RETRY_EXC_ERR, "IBV_WC_RETRY_EXC_ERR", "no acknowledgement after all retries",
        "Is the peer's port up, its cable in, UDP port 4791 open for RoCE v2 (firewall), the MTU the same "
        "along "
        "the way, and PFC set where packets are lost? NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT allow for more"},
    StatusText{IBV_WC_RNR_RETRY_EXC_ERR, "IBV_WC_RNR_RETRY_EXC_ERR", "the peer had no receive posted", kOurs},
    StatusText{IBV_WC_LOC_RDD_VIOL_ERR, "IBV_WC_LOC_RDD_VIOL_ERR", "the reliable datagram domains differ",
               kUnused},
    StatusText{IBV_WC_REM_INV_RD_REQ_ERR, "IBV_WC_REM_INV_RD_REQ_ERR",
               "the peer's device refused a reliable datagram", kUnused},
    StatusText{IBV_WC_REM_ABORT_ERR, "IBV_WC_REM_ABORT_ERR", "the peer's device gave the request up",
               "See the kernel's log (dmesg) on the peer's host"},
    StatusText{IBV_WC_INV_EECN_ERR, "IBV_WC_INV_EECN_ERR", "the end-to-end context has an unknown number",
               kUnused},
    StatusText{IBV_WC_INV_EEC_STATE_ERR, "IBV_WC_INV_EEC_STATE_ERR", "the end-to-end context is not ready",
               kUnused},
    StatusText{IBV_WC_FATAL_ERR, "IBV_WC_FATAL_ERR", "the device failed",
               "See the kernel's log (dmesg); it may need a reset, or newer firmware"},
    StatusText{IBV_WC_RESP_TIMEOUT_ERR, "IBV_WC_RESP_TIMEOUT_ERR", "the peer's device did not answer in time",
               "Is the peer's port up, and the network between not overloaded?"},
    StatusText{IBV_WC_GENERAL_ERR, "IBV_WC_GENERAL_ERR", "the device reports an error without more words",
               "See the kernel's log (dmesg) on both hosts"},
    StatusText{IBV_WC_TM_ERR, "IBV_WC_TM_ERR", "matching of tags failed", kUnused},
    StatusText{IBV_WC_TM_RNDV_INCOMPLETE, "IBV_WC_TM_RNDV_INCOMPLETE", "a rendezvous by tags is incomplete",
               kUnused},
};

struct EventText {
  ibv_event_type type;
  const char* name;
  EventEffect effect;
  const char* words;
  const char* hint;
};

constexpr std::array kEvents{
    EventText{IBV_EVENT_CQ_ERR, "IBV_EVENT_CQ_ERR", EventEffect::pairs_lost, "a completion queue overflowed",
              kOurs},
    EventText{IBV_EVENT_QP_FATAL, "IBV_EVENT_QP_FATAL", EventEffect::pairs_lost, "a queue pair failed",
              "See the kernel's log (dmesg)"},
    EventText{IBV_EVENT_QP_REQ_ERR, "IBV_EVENT_QP_REQ_ERR", EventEffect::pairs_lost,
              "the peer sent a request that makes no sense", "Do both ranks run the same version of Tutti?"},
    EventText{IBV_EVENT_QP_ACCESS_ERR, "IBV_EVENT_QP_ACCESS_ERR", EventEffect::pairs_lost,
              "the peer wrote where it may not, or with a key (rkey) of no registration here", kOurs},
    EventText{IBV_EVENT_COMM_EST, "IBV_EVENT_COMM_EST", EventEffect::none,
              "a connection has its first packet", "Nothing is wrong"},
    EventText{IBV_EVENT_SQ_DRAINED, "IBV_EVENT_SQ_DRAINED", EventEffect::none, "a send queue is empty",
              "Nothing is wrong"},
    EventText{IBV_EVENT_PATH_MIG, "IBV_EVENT_PATH_MIG", EventEffect::none, "a connection took its other path",
              "Nothing is wrong"},
    EventText{IBV_EVENT_PATH_MIG_ERR, "IBV_EVENT_PATH_MIG_ERR", EventEffect::pairs_lost,
              "a connection failed to take its other path", "Is the port's cable in?"},
    EventText{IBV_EVENT_DEVICE_FATAL, "IBV_EVENT_DEVICE_FATAL", EventEffect::device_lost,
              "the device failed, or was removed",
              "See the kernel's log (dmesg); it may need a reset, or newer firmware"},
    EventText{IBV_EVENT_PORT_ACTIVE, "IBV_EVENT_PORT_ACTIVE", EventEffect::port_back, "the port is up",
              "Links may use it again"},
    EventText{IBV_EVENT_PORT_ERR, "IBV_EVENT_PORT_ERR", EventEffect::port_lost, "the port went down",
              "Is the cable in, the switch up, and the interface not set down (`ip link`)?"},
    EventText{IBV_EVENT_LID_CHANGE, "IBV_EVENT_LID_CHANGE", EventEffect::port_changed,
              "the port has another LID", "Did the subnet manager start again?"},
    EventText{IBV_EVENT_PKEY_CHANGE, "IBV_EVENT_PKEY_CHANGE", EventEffect::port_changed,
              "the port's partition keys changed", "NCCL_IB_PKEY is an index into their table"},
    EventText{IBV_EVENT_SM_CHANGE, "IBV_EVENT_SM_CHANGE", EventEffect::none,
              "there is another subnet manager", "Nothing is wrong"},
    EventText{IBV_EVENT_SRQ_ERR, "IBV_EVENT_SRQ_ERR", EventEffect::none, "a shared receive queue failed",
              kUnused},
    EventText{IBV_EVENT_SRQ_LIMIT_REACHED, "IBV_EVENT_SRQ_LIMIT_REACHED", EventEffect::none,
              "a shared receive queue is short of receives", kUnused},
    EventText{IBV_EVENT_QP_LAST_WQE_REACHED, "IBV_EVENT_QP_LAST_WQE_REACHED", EventEffect::none,
              "a queue pair has taken its last receive", kUnused},
    EventText{IBV_EVENT_CLIENT_REREGISTER, "IBV_EVENT_CLIENT_REREGISTER", EventEffect::none,
              "the subnet manager wants to be asked again", "Nothing is wrong"},
    EventText{IBV_EVENT_GID_CHANGE, "IBV_EVENT_GID_CHANGE", EventEffect::port_changed,
              "the port's addresses changed", "Did its interface lose, or change, its IP address?"},
    EventText{IBV_EVENT_WQ_FATAL, "IBV_EVENT_WQ_FATAL", EventEffect::none, "a work queue failed", kUnused},
};

}  // namespace

std::string explain(ibv_wc_status status) {
  const auto* const text = std::ranges::find(kStatuses, status, &StatusText::status);
  if (text == kStatuses.end())
    return fmt::format("completion status {}, which is not known here: see ibv_poll_cq(3)",
                       static_cast<int>(status));
  return fmt::format("{} ({}). {}", text->words, text->name, text->hint);
}

std::string explainSilence(std::chrono::milliseconds limit) {
  return fmt::format("no acknowledgement for {} ms. {}", limit.count(), kUnheard);
}

EventEffect effectOf(ibv_event_type type) {
  const auto* const text = std::ranges::find(kEvents, type, &EventText::type);
  return text == kEvents.end() ? EventEffect::none : text->effect;
}

std::string explain(ibv_event_type type) {
  const auto* const text = std::ranges::find(kEvents, type, &EventText::type);
  if (text == kEvents.end())
    return fmt::format("event {}, which is not known here: see ibv_get_async_event(3)",
                       static_cast<int>(type));
  return fmt::format("{} ({}). {}", text->words, text->name, text->hint);
}

}  // namespace tutti
