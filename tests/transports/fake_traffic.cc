// What becomes of requests that are posted on invented devices.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tests/transports/fake_objects.h"

namespace tutti::test {
namespace {

void complain(std::string what) { state().violations.push_back(std::move(what)); }

std::span<const ibv_sge> piecesOf(const ibv_send_wr& request) {
  return {request.sg_list, static_cast<std::size_t>(request.num_sge)};
}

/// What the pair has no room for in a request.
void checkPieces(const FakePair& pair, const ibv_send_wr& request) {
  std::uint64_t bytes = 0;
  for (const ibv_sge& piece : piecesOf(request)) bytes += piece.length;
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  if (piecesOf(request).size() > pair.pieces) complain("too many pieces for a request");
  if (is_inline && bytes > pair.inlined) complain("too many bytes inside a request");
}

/// The registration that covers it.
const FakeRegion* resolve(std::uint32_t key, std::uint64_t address, std::uint64_t bytes,
                          const ibv_context* context) {
  const auto found = state().regions.find(key);
  if (found == state().regions.end() || found->second->context != context) return nullptr;
  const FakeRegion& region = *found->second;
  const auto begin = reinterpret_cast<std::uint64_t>(region.addr);
  return address < begin || address + bytes > begin + region.length ? nullptr : &region;
}

ibv_wc_status refuseAccess(FakePair& to) {
  ibv_async_event event{};
  event.event_type = IBV_EVENT_QP_ACCESS_ERR;
  event.element.qp = &to;
  static_cast<FakeContext*>(to.context)->events.push(event);
  breakPair(to, std::nullopt);
  return IBV_WC_REM_ACCESS_ERR;
}

/// A write or a read gets there, or not. Returns what its completion says.
ibv_wc_status deliver(FakePair& from, FakePair& to, const ibv_send_wr& request) {
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  std::vector<std::byte> data;
  for (const ibv_sge& piece : piecesOf(request)) {
    const bool has_local =
        is_inline || resolve(piece.lkey, piece.addr, piece.length, from.context) != nullptr;
    if (!has_local) return IBV_WC_LOC_PROT_ERR;
    const auto* const source = reinterpret_cast<const std::byte*>(piece.addr);
    data.insert(data.end(), source, source + piece.length);
  }
  const std::uint64_t bytes = data.size();
  if (bytes != 0) {
    const FakeRegion* const remote =
        resolve(request.wr.rdma.rkey, request.wr.rdma.remote_addr, bytes, to.context);
    if (remote == nullptr) return refuseAccess(to);
    // Nobody looks at what is read.
    if (request.opcode == IBV_WR_RDMA_READ) return IBV_WC_SUCCESS;
    auto* const target = reinterpret_cast<std::byte*>(request.wr.rdma.remote_addr);
    if (remote->is_gpu) {
      to.arriving.push_back({target, std::move(data)});
    } else {
      std::memcpy(target, data.data(), bytes);
    }
  }
  if (request.opcode != IBV_WR_RDMA_WRITE_WITH_IMM) return IBV_WC_SUCCESS;
  if (to.posted_receives == 0) {
    complain("no receive was posted");
    return IBV_WC_RNR_RETRY_EXC_ERR;
  }
  --to.posted_receives;
  ibv_wc completion = completionOf(to, 0, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
  completion.imm_data = request.imm_data;
  complete(to.recv_cq, completion);
  return IBV_WC_SUCCESS;
}

FakePair* peerOf(const FakePair& from) {
  const auto found = state().pairs.find(from.peer);
  return found == state().pairs.end() ? nullptr : found->second;
}

bool isReady(const FakePair& pair) { return pair.state == IBV_QPS_RTR || pair.state == IBV_QPS_RTS; }

bool hasAddress(const FakeDevice& device, const FakePair::GidBytes& gid) {
  return std::ranges::find(device.gids, gid, &Gid::bytes) != device.gids.end();
}

/// Whether packets get there, and back.
bool reaches(const FakePair& from, const FakePair& to) {
  const FakeDevice& mine = deviceOf(from.context);
  const FakeDevice& theirs = deviceOf(to.context);
  if (!mine.is_up || !theirs.is_up) return false;
  if (!from.gids) return from.peer_lid == theirs.lid;
  return hasAddress(mine, from.gids->first) && hasAddress(theirs, from.gids->second);
}

/// What becomes of a request that is the next of its pair.
void carryOut(FakePair& pair, const ibv_send_wr& request) {
  FakeDevice& device = deviceOf(pair.context);
  const bool is_read = request.opcode == IBV_WR_RDMA_READ;
  ibv_wc completion =
      completionOf(pair, request.wr_id, IBV_WC_WR_FLUSH_ERR, is_read ? IBV_WC_RDMA_READ : IBV_WC_RDMA_WRITE);
  if (pair.state == IBV_QPS_ERR) return complete(pair.send_cq, completion);
  FakePair* const to = peerOf(pair);
  pair.is_stuck = pair.is_stuck || to == nullptr || to->state == IBV_QPS_ERR || !reaches(pair, *to) ||
                  std::exchange(device.loses_next, false);
  if (pair.is_stuck) return;
  if (!isReady(*to)) {
    pair.waiting.emplace_back(request);
    return;
  }
  completion.status = deliver(pair, *to, request);
  if (is_read && device.holds_reads) return pair.held_reads.push_back(completion);
  if (is_read && device.read_status != IBV_WC_SUCCESS) completion.status = device.read_status;
  if (completion.status != IBV_WC_SUCCESS) return breakPair(pair, completion);
  if (is_read) landAll(device);
  const bool is_told = (request.send_flags & IBV_SEND_SIGNALED) != 0 && !device.is_unacknowledged;
  if (is_told) complete(pair.send_cq, completion);
}

void runBreaks(std::unique_lock<std::mutex>& lock) {
  State& s = state();
  while (!s.breaks.empty() && s.breaks.begin()->first <= s.writes) {
    const auto action = std::move(s.breaks.begin()->second);
    s.breaks.erase(s.breaks.begin());
    lock.unlock();
    action();
    lock.lock();
  }
}

void count(FakeDevice& device, const ibv_send_wr& request, std::unique_lock<std::mutex>& lock) {
  if (request.opcode == IBV_WR_RDMA_READ) {
    ++device.reads;
    return;
  }
  ++device.writes;
  ++state().writes;
  runBreaks(lock);
}

int postSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  std::unique_lock lock(state().mutex);
  auto& pair = *static_cast<FakePair*>(qp);
  for (; request != nullptr; request = request->next) {
    count(deviceOf(pair.context), *request, lock);
    checkPieces(pair, *request);
    if (pair.outstanding == pair.sends) {
      complain("a send queue overflowed");
      *bad = request;
      return ENOMEM;
    }
    ++pair.outstanding;
    ++pair.unsignalled;
    const bool is_signalled = (request->send_flags & IBV_SEND_SIGNALED) != 0;
    if (is_signalled) pair.covers[request->wr_id] = std::exchange(pair.unsignalled, 0);
    if (pair.waiting.empty()) {
      carryOut(pair, *request);
    } else {
      pair.waiting.emplace_back(*request);
    }
  }
  return 0;
}

int postReceive(ibv_qp* qp, ibv_recv_wr*, ibv_recv_wr**) {
  const std::lock_guard lock(state().mutex);
  auto& pair = *static_cast<FakePair*>(qp);
  if (pair.posted_receives == pair.receives) {
    complain("a receive queue overflowed");
    return ENOMEM;
  }
  ++pair.posted_receives;
  return 0;
}

int pollCompletions(ibv_cq* cq, int room, ibv_wc* to) {
  const std::lock_guard lock(state().mutex);
  auto& queue = static_cast<FakeCompletions*>(cq)->queue;
  int taken = 0;
  for (; taken < room && !queue.empty(); ++taken) {
    to[taken] = queue.front();
    queue.pop_front();
    const auto found = state().pairs.find(to[taken].qp_num);
    if (found == state().pairs.end() || (to[taken].opcode & IBV_WC_RECV) != 0) continue;
    auto& covers = found->second->covers;
    const auto covered = covers.find(to[taken].wr_id);
    if (covered == covers.end()) continue;
    found->second->outstanding -= covered->second;
    covers.erase(covered);
  }
  return taken;
}

int requestNotice(ibv_cq* cq, int) {
  const std::lock_guard lock(state().mutex);
  static_cast<FakeCompletions*>(cq)->is_armed = true;
  return 0;
}

}  // namespace

void complete(ibv_cq* cq, const ibv_wc& completion) {
  auto& completions = *static_cast<FakeCompletions*>(cq);
  completions.queue.push_back(completion);
  if (static_cast<int>(completions.queue.size()) > cq->cqe) complain("a completion queue overflowed");
  if (!std::exchange(completions.is_armed, false)) return;
  static_cast<FakeChannel*>(cq->channel)->events.push(cq);
}

ibv_wc completionOf(const FakePair& pair, std::uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode) {
  ibv_wc completion{};
  completion.wr_id = id;
  completion.status = status;
  completion.opcode = opcode;
  completion.qp_num = pair.qp_num;
  return completion;
}

void breakPair(FakePair& pair, std::optional<ibv_wc> cause) {
  if (pair.state == IBV_QPS_ERR) return;
  pair.state = IBV_QPS_ERR;
  for (; pair.posted_receives != 0; --pair.posted_receives)
    complete(pair.recv_cq, completionOf(pair, 0, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV_RDMA_WITH_IMM));
  if (cause) complete(pair.send_cq, *cause);
}

void land(FakePair& pair) {
  for (const auto& [target, data] : std::exchange(pair.arriving, {}))
    std::memcpy(target, data.data(), data.size());
}

void landAll(const FakeDevice& device) {
  for (const auto& [number, pair] : state().pairs) {
    if (&deviceOf(pair->context) == &device) land(*pair);
  }
}

void resumePeerOf(const FakePair& pair) {
  FakePair* const from = peerOf(pair);
  if (from == nullptr || !isReady(pair)) return;
  for (auto waiting = std::exchange(from->waiting, {}); !waiting.empty(); waiting.pop_front())
    carryOut(*from, waiting.front().get());
}

void setTrafficCalls(ibv_context_ops& calls) {
  calls.post_send = postSend;
  calls.post_recv = postReceive;
  calls.poll_cq = pollCompletions;
  calls.req_notify_cq = requestNotice;
}

}  // namespace tutti::test
