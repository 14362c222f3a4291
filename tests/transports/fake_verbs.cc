#include "tests/transports/fake_verbs.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/transports/fake_objects.h"
#include "transports/verbs/faults.h"

namespace tutti::test {
namespace {

constexpr int kTableEntries = 16;

ibv_context* openDevice(ibv_device* device) {
  auto* const context = new FakeContext;
  context->device = device;
  context->own = static_cast<FakeDevice*>(device)->shared_from_this();
  context->async_fd = context->events.fd();
  setTrafficCalls(context->ops);
  const std::lock_guard lock(state().mutex);
  state().contexts.insert(context);
  return context;
}

int closeDevice(ibv_context* context) {
  const std::lock_guard lock(state().mutex);
  state().contexts.erase(static_cast<FakeContext*>(context));
  delete static_cast<FakeContext*>(context);
  return 0;
}

int queryPort(ibv_context* context, std::uint8_t, ibv_port_attr* attributes) {
  const std::lock_guard lock(state().mutex);
  const FakeDevice& device = deviceOf(context);
  *attributes = {};
  attributes->state = device.is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attributes->active_mtu = FakeDevice::kMtu;
  attributes->link_layer = device.is_ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  attributes->lid = device.lid;
  attributes->gid_tbl_len = kTableEntries;
  attributes->pkey_tbl_len = 1;
  return 0;
}

int queryGid(ibv_context* context, std::uint8_t, int index, ibv_gid* to) {
  const std::lock_guard lock(state().mutex);
  const auto& gids = deviceOf(context).gids;
  const auto found = std::ranges::find(gids, index, &Gid::index);
  if (found == gids.end()) return -1;
  std::ranges::copy(found->bytes, to->raw);
  return 0;
}

int queryPartition(ibv_context*, std::uint8_t, int, __be16* key) {
  *key = htons(0xffff);
  return 0;
}

ibv_pd* allocateDomain(ibv_context* context) {
  auto* const domain = new ibv_pd{};
  domain->context = context;
  return domain;
}

int freeDomain(ibv_pd* domain) {
  delete domain;
  return 0;
}

ibv_mr* makeRegion(ibv_pd* domain, void* address, std::size_t bytes, int error) {
  const std::lock_guard lock(state().mutex);
  FakeDevice& device = deviceOf(domain->context);
  errno = error == 0 && device.regions.size() >= device.most_regions ? ENOMEM : error;
  if (errno != 0) return nullptr;
  auto* const region = new FakeRegion;
  region->context = domain->context;
  region->addr = address;
  region->length = bytes;
  region->lkey = region->rkey = state().next_number++;
  region->is_gpu = std::ranges::any_of(state().gpu_memory, [address](const auto& memory) {
    return memory.data() <= address && address < memory.data() + memory.size();
  });
  state().regions[region->lkey] = region;
  device.regions[address] = bytes;
  ++device.registered;
  return region;
}

ibv_mr* registerMemory(ibv_pd* domain, void* address, std::size_t bytes, int) {
  return makeRegion(domain, address, bytes, deviceOf(domain->context).address_error);
}

ibv_mr* registerDmaBuf(ibv_pd* domain, std::uint64_t, std::size_t bytes, std::uint64_t address, int, int) {
  return makeRegion(domain, std::bit_cast<void*>(address), bytes, deviceOf(domain->context).dma_buf_error);
}

int forgetMemory(ibv_mr* region) {
  const std::lock_guard lock(state().mutex);
  deviceOf(region->context).regions.erase(region->addr);
  state().regions.erase(region->lkey);
  delete static_cast<FakeRegion*>(region);
  return 0;
}

ibv_comp_channel* makeChannel(ibv_context* context) {
  auto* const channel = new FakeChannel;
  channel->context = context;
  channel->fd = channel->events.fd();
  return channel;
}

int endChannel(ibv_comp_channel* channel) {
  delete static_cast<FakeChannel*>(channel);
  return 0;
}

ibv_cq* makeCompletions(ibv_context* context, int entries, void* token, ibv_comp_channel* channel, int) {
  auto* const completions = new FakeCompletions;
  completions->context = context;
  completions->channel = channel;
  completions->cq_context = token;
  completions->cqe = entries;
  return completions;
}

int endCompletions(ibv_cq* cq) {
  const std::lock_guard lock(state().mutex);
  static_cast<FakeChannel*>(cq->channel)->events.drop([cq](const ibv_cq* other) { return other == cq; });
  delete static_cast<FakeCompletions*>(cq);
  return 0;
}

int getCompletionEvent(ibv_comp_channel* channel, ibv_cq** cq, void** token) {
  const std::lock_guard lock(state().mutex);
  if (!static_cast<FakeChannel*>(channel)->events.pop(*cq)) return -1;
  *token = (*cq)->cq_context;
  return 0;
}

ibv_qp* makePair(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const std::lock_guard lock(state().mutex);
  if (state().refused_pairs > 0) {
    --state().refused_pairs;
    errno = state().refusal;
    return nullptr;
  }
  auto* const pair = new FakePair;
  pair->state = IBV_QPS_RESET;
  pair->context = domain->context;
  pair->qp_context = wanted->qp_context;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->sends = wanted->cap.max_send_wr;
  pair->receives = wanted->cap.max_recv_wr;
  pair->pieces = wanted->cap.max_send_sge;
  pair->inlined = wanted->cap.max_inline_data;
  pair->qp_num = state().next_number++;
  state().pairs[pair->qp_num] = pair;
  return pair;
}

/// To ready-to-receive. Returns what is wrong, as an errno.
int connectPair(FakePair& pair, const ibv_qp_attr& attributes, std::unique_lock<std::mutex>& lock) {
  const auto action = state().on_connect;
  lock.unlock();
  if (action) action();
  lock.lock();
  if (state().refused_connections > 0) {
    --state().refused_connections;
    return state().refusal;
  }
  pair.peer = attributes.dest_qp_num;
  pair.peer_lid = attributes.ah_attr.dlid;
  if (attributes.ah_attr.is_global == 0) return 0;
  const auto& gids = deviceOf(pair.context).gids;
  const auto mine = std::ranges::find(gids, attributes.ah_attr.grh.sgid_index, &Gid::index);
  if (mine == gids.end()) return EINVAL;
  pair.gids.emplace(mine->bytes, std::to_array(attributes.ah_attr.grh.dgid.raw));
  return 0;
}

int modifyPair(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  std::unique_lock lock(state().mutex);
  auto& pair = *static_cast<FakePair*>(qp);
  deviceOf(qp->context).changes.push_back({*attributes, mask});
  const int error = attributes->qp_state == IBV_QPS_RTR ? connectPair(pair, *attributes, lock) : 0;
  if (error != 0) return error;
  if (pair.state == IBV_QPS_ERR) return EINVAL;
  pair.state = attributes->qp_state;
  resumePeerOf(pair);
  return 0;
}

int endPair(ibv_qp* qp) {
  const std::lock_guard lock(state().mutex);
  land(*static_cast<FakePair*>(qp));
  state().pairs.erase(qp->qp_num);
  static_cast<FakeContext*>(qp->context)->events.drop([qp](const ibv_async_event& event) {
    return effectOf(event.event_type) == EventEffect::pairs_lost && event.element.qp == qp;
  });
  delete static_cast<FakePair*>(qp);
  return 0;
}

int getEvent(ibv_context* context, ibv_async_event* event) {
  const std::lock_guard lock(state().mutex);
  return static_cast<FakeContext*>(context)->events.pop(*event) ? 0 : -1;
}

}  // namespace

const Ibverbs& fakeVerbs() {
  static const Ibverbs functions = [] {
    Ibverbs verbs{};
    verbs.get_device_name = [](ibv_device* device) -> const char* { return device->name; };
    verbs.open_device = openDevice;
    verbs.close_device = closeDevice;
    verbs.query_port = queryPort;
    verbs.query_gid = queryGid;
    verbs.query_pkey = queryPartition;
    verbs.alloc_pd = allocateDomain;
    verbs.dealloc_pd = freeDomain;
    verbs.reg_mr = registerMemory;
    verbs.reg_dmabuf_mr = registerDmaBuf;
    verbs.dereg_mr = forgetMemory;
    verbs.create_comp_channel = makeChannel;
    verbs.destroy_comp_channel = endChannel;
    verbs.create_cq = makeCompletions;
    verbs.destroy_cq = endCompletions;
    verbs.get_cq_event = getCompletionEvent;
    verbs.ack_cq_events = [](ibv_cq*, unsigned) {};
    verbs.create_qp = makePair;
    verbs.modify_qp = modifyPair;
    verbs.destroy_qp = endPair;
    verbs.get_async_event = getEvent;
    verbs.ack_async_event = [](ibv_async_event*) {};
    return verbs;
  }();
  return functions;
}

}  // namespace tutti::test
