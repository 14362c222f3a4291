#include "tests/transports/fake_verbs.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "transports/verbs/faults.h"

namespace tutti::test {
namespace {

/// A descriptor that is readable while a queue has something.
template <class T>
class Events {
 public:
  Events() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { ::close(fd_); }
  int fd() const { return fd_; }
  void push(const T& event) {
    queue_.push_back(event);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof(one));
  }
  bool pop(T& event) {
    std::uint64_t count = 0;
    if (queue_.empty()) {
      [[maybe_unused]] const auto got = ::read(fd_, &count, sizeof(count));
      errno = EAGAIN;
      return false;
    }
    event = queue_.front();
    queue_.pop_front();
    return true;
  }
  template <class Gone>
  void drop(const Gone& gone) {
    std::erase_if(queue_, gone);
  }

 private:
  int fd_;
  std::deque<T> queue_;
};

struct Device : ibv_device {
  bool is_up = true;
  bool loses_next = false;
  bool is_unacknowledged = false;
};
struct Context : ibv_context {
  Device* own = nullptr;
  Events<ibv_async_event> events;
};
struct Channel : ibv_comp_channel {
  Events<ibv_cq*> events;
};
struct Completions : ibv_cq {
  std::deque<ibv_wc> queue;
  bool is_armed = false;
};
/// A request with what it points to.
struct Request {
  ibv_send_wr wr;
  ibv_sge piece{};
  std::vector<std::byte> inlined;

  explicit Request(const ibv_send_wr& from) : wr(from) {
    if (from.num_sge == 0) return;
    piece = *from.sg_list;
    if ((from.send_flags & IBV_SEND_INLINE) == 0) return;
    const auto* const bytes = reinterpret_cast<const std::byte*>(piece.addr);
    inlined.assign(bytes, bytes + piece.length);
  }
  const ibv_send_wr& get() {
    if (!inlined.empty()) piece.addr = reinterpret_cast<std::uint64_t>(inlined.data());
    wr.sg_list = &piece;
    return wr;
  }
};
struct Pair : ibv_qp {
  std::uint32_t peer = 0;
  std::uint32_t sends = 0;     ///< room
  std::uint32_t receives = 0;  ///< room
  std::uint32_t posted_receives = 0;
  std::uint32_t unsignalled = 0;                  ///< posted since the last that is to be acknowledged
  std::map<std::uint64_t, std::uint32_t> covers;  ///< by wr_id: requests that its completion gives room for
  std::uint32_t outstanding = 0;
  bool is_stuck = false;        ///< something was lost: all behind it is, too
  std::deque<Request> waiting;  ///< until the peer is ready, as cards try again
};
struct Region : ibv_mr {};

struct State {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Device>> devices;
  std::set<Context*> contexts;
  std::map<std::uint32_t, Pair*> pairs;
  std::map<std::uint32_t, Region*> regions;
  std::uint32_t next_number = 1;
  std::uint64_t writes = 0;
  std::multimap<std::uint64_t, std::function<void()>> breaks;
  std::vector<std::string> violations;
  int refused_pairs = 0;
  int refused_connections = 0;
  int refusal = 0;
  std::function<void()> on_connect;
};

State& state() {
  static State the_state;
  return the_state;
}

Device& deviceOf(const ibv_context* context) { return *static_cast<const Context*>(context)->own; }

void complain(std::string what) { state().violations.push_back(std::move(what)); }

void complete(ibv_cq* cq, const ibv_wc& completion) {
  auto& completions = *static_cast<Completions*>(cq);
  completions.queue.push_back(completion);
  if (static_cast<int>(completions.queue.size()) > cq->cqe) complain("a completion queue overflowed");
  if (!std::exchange(completions.is_armed, false)) return;
  static_cast<Channel*>(cq->channel)->events.push(cq);
}

ibv_wc completionOf(const Pair& pair, std::uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode) {
  ibv_wc completion{};
  completion.wr_id = id;
  completion.status = status;
  completion.opcode = opcode;
  completion.qp_num = pair.qp_num;
  return completion;
}

/// As cards do: receives are flushed, and their completions may come before the one that tells why.
void breakPair(Pair& pair, std::optional<ibv_wc> cause) {
  if (pair.state == IBV_QPS_ERR) return;
  pair.state = IBV_QPS_ERR;
  for (; pair.posted_receives != 0; --pair.posted_receives)
    complete(pair.recv_cq, completionOf(pair, 0, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV_RDMA_WITH_IMM));
  if (cause) complete(pair.send_cq, *cause);
}

/// Memory of a registration that covers it.
std::byte* resolve(std::uint32_t key, std::uint64_t address, std::uint64_t bytes,
                   const ibv_context* context) {
  const auto found = state().regions.find(key);
  if (found == state().regions.end() || found->second->context != context) return nullptr;
  const Region& region = *found->second;
  const auto begin = reinterpret_cast<std::uint64_t>(region.addr);
  if (address < begin || address + bytes > begin + region.length) return nullptr;
  return reinterpret_cast<std::byte*>(address);
}

/// A write arrives, or not. Returns what its completion says.
ibv_wc_status deliver(Pair& from, Pair& to, const ibv_send_wr& request) {
  const ibv_sge* const piece = request.num_sge != 0 ? request.sg_list : nullptr;
  const std::uint64_t bytes = piece != nullptr ? piece->length : 0;
  if (bytes != 0) {
    const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
    const auto* const source = is_inline ? reinterpret_cast<const std::byte*>(piece->addr)
                                         : resolve(piece->lkey, piece->addr, bytes, from.context);
    if (source == nullptr) return IBV_WC_LOC_PROT_ERR;
    auto* const target = resolve(request.wr.rdma.rkey, request.wr.rdma.remote_addr, bytes, to.context);
    if (target == nullptr) {
      ibv_async_event event{};
      event.event_type = IBV_EVENT_QP_ACCESS_ERR;
      event.element.qp = &to;
      static_cast<Context*>(to.context)->events.push(event);
      breakPair(to, std::nullopt);
      return IBV_WC_REM_ACCESS_ERR;
    }
    std::memcpy(target, source, bytes);
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

Pair* peerOf(const Pair& from) {
  const auto found = state().pairs.find(from.peer);
  return found == state().pairs.end() ? nullptr : found->second;
}

bool isReady(const Pair& pair) { return pair.state == IBV_QPS_RTR || pair.state == IBV_QPS_RTS; }

/// Whether packets get there.
bool reaches(const Pair& from, const Pair& to) {
  const Device& mine = deviceOf(from.context);
  return mine.is_up && deviceOf(to.context).is_up;
}

/// What becomes of a request that is the next of its pair.
void carryOut(Pair& pair, const ibv_send_wr& request) {
  ibv_wc completion = completionOf(pair, request.wr_id, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE);
  if (pair.state == IBV_QPS_ERR) return complete(pair.send_cq, completion);
  Pair* const to = peerOf(pair);
  pair.is_stuck = pair.is_stuck || to == nullptr || to->state == IBV_QPS_ERR || !reaches(pair, *to) ||
                  std::exchange(deviceOf(pair.context).loses_next, false);
  if (pair.is_stuck) return;
  if (!isReady(*to)) {
    pair.waiting.emplace_back(request);
    return;
  }
  completion.status = deliver(pair, *to, request);
  if (completion.status != IBV_WC_SUCCESS) return breakPair(pair, completion);
  const bool is_told =
      (request.send_flags & IBV_SEND_SIGNALED) != 0 && !deviceOf(pair.context).is_unacknowledged;
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

int postSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  std::unique_lock lock(state().mutex);
  auto& pair = *static_cast<Pair*>(qp);
  for (; request != nullptr; request = request->next) {
    ++state().writes;
    runBreaks(lock);
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
  auto& pair = *static_cast<Pair*>(qp);
  if (pair.posted_receives == pair.receives) {
    complain("a receive queue overflowed");
    return ENOMEM;
  }
  ++pair.posted_receives;
  return 0;
}

int pollCompletions(ibv_cq* cq, int room, ibv_wc* to) {
  const std::lock_guard lock(state().mutex);
  auto& queue = static_cast<Completions*>(cq)->queue;
  int taken = 0;
  for (; taken < room && !queue.empty(); ++taken) {
    to[taken] = queue.front();
    queue.pop_front();
    const auto found = state().pairs.find(to[taken].qp_num);
    if (found == state().pairs.end() || to[taken].opcode != IBV_WC_RDMA_WRITE) continue;
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
  static_cast<Completions*>(cq)->is_armed = true;
  return 0;
}

ibv_context* openDevice(ibv_device* device) {
  auto* const context = new Context;
  context->device = device;
  context->own = static_cast<Device*>(device);
  context->async_fd = context->events.fd();
  context->ops.post_send = postSend;
  context->ops.post_recv = postReceive;
  context->ops.poll_cq = pollCompletions;
  context->ops.req_notify_cq = requestNotice;
  const std::lock_guard lock(state().mutex);
  state().contexts.insert(context);
  return context;
}

int closeDevice(ibv_context* context) {
  const std::lock_guard lock(state().mutex);
  state().contexts.erase(static_cast<Context*>(context));
  delete static_cast<Context*>(context);
  return 0;
}

int queryPort(ibv_context* context, std::uint8_t, ibv_port_attr* attributes) {
  const std::lock_guard lock(state().mutex);
  *attributes = {};
  attributes->state = deviceOf(context).is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
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

ibv_mr* registerMemory(ibv_pd* domain, void* address, std::size_t bytes, int) {
  const std::lock_guard lock(state().mutex);
  auto* const region = new Region;
  region->context = domain->context;
  region->addr = address;
  region->length = bytes;
  region->lkey = region->rkey = state().next_number++;
  state().regions[region->lkey] = region;
  return region;
}

int forgetMemory(ibv_mr* region) {
  const std::lock_guard lock(state().mutex);
  state().regions.erase(region->lkey);
  delete static_cast<Region*>(region);
  return 0;
}

ibv_comp_channel* makeChannel(ibv_context* context) {
  auto* const channel = new Channel;
  channel->context = context;
  channel->fd = channel->events.fd();
  return channel;
}

int endChannel(ibv_comp_channel* channel) {
  delete static_cast<Channel*>(channel);
  return 0;
}

ibv_cq* makeCompletions(ibv_context* context, int entries, void* token, ibv_comp_channel* channel, int) {
  auto* const completions = new Completions;
  completions->context = context;
  completions->channel = channel;
  completions->cq_context = token;
  completions->cqe = entries;
  return completions;
}

int endCompletions(ibv_cq* cq) {
  const std::lock_guard lock(state().mutex);
  static_cast<Channel*>(cq->channel)->events.drop([cq](const ibv_cq* other) { return other == cq; });
  delete static_cast<Completions*>(cq);
  return 0;
}

int getCompletionEvent(ibv_comp_channel* channel, ibv_cq** cq, void** token) {
  const std::lock_guard lock(state().mutex);
  if (!static_cast<Channel*>(channel)->events.pop(*cq)) return -1;
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
  auto* const pair = new Pair;
  pair->state = IBV_QPS_RESET;
  pair->context = domain->context;
  pair->qp_context = wanted->qp_context;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->sends = wanted->cap.max_send_wr;
  pair->receives = wanted->cap.max_recv_wr;
  pair->qp_num = state().next_number++;
  state().pairs[pair->qp_num] = pair;
  return pair;
}

int modifyPair(ibv_qp* qp, ibv_qp_attr* attributes, int) {
  std::unique_lock lock(state().mutex);
  auto& pair = *static_cast<Pair*>(qp);
  if (attributes->qp_state == IBV_QPS_RTR) {
    const auto action = state().on_connect;
    lock.unlock();
    if (action) action();
    lock.lock();
    if (state().refused_connections > 0) {
      --state().refused_connections;
      return state().refusal;
    }
    pair.peer = attributes->dest_qp_num;
  }
  if (pair.state == IBV_QPS_ERR) return EINVAL;
  pair.state = attributes->qp_state;
  Pair* const from = peerOf(pair);
  if (from == nullptr || !isReady(pair)) return 0;
  for (auto waiting = std::exchange(from->waiting, {}); !waiting.empty(); waiting.pop_front())
    carryOut(*from, waiting.front().get());
  return 0;
}

int endPair(ibv_qp* qp) {
  const std::lock_guard lock(state().mutex);
  state().pairs.erase(qp->qp_num);
  static_cast<Context*>(qp->context)->events.drop([qp](const ibv_async_event& event) {
    return effectOf(event.event_type) == EventEffect::pairs_lost && event.element.qp == qp;
  });
  delete static_cast<Pair*>(qp);
  return 0;
}

int getEvent(ibv_context* context, ibv_async_event* event) {
  const std::lock_guard lock(state().mutex);
  return static_cast<Context*>(context)->events.pop(*event) ? 0 : -1;
}

template <class Visit>
void forContexts(const std::string& device, const Visit& visit) {
  for (Context* context : state().contexts) {
    if (device == context->device->name) visit(*context);
  }
}

void tellAll(const std::string& device, ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  forContexts(device, [&](Context& context) { context.events.push(event); });
}

}  // namespace

const Ibverbs& fakeVerbs() {
  static const Ibverbs functions = [] {
    Ibverbs verbs{};
    verbs.get_device_name = [](ibv_device* device) -> const char* { return device->name; };
    verbs.open_device = openDevice;
    verbs.close_device = closeDevice;
    verbs.query_port = queryPort;
    verbs.alloc_pd = allocateDomain;
    verbs.dealloc_pd = freeDomain;
    verbs.reg_mr = registerMemory;
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

Fabric& Fabric::the() {
  static Fabric fabric;
  return fabric;
}

void Fabric::reset() {
  const std::lock_guard lock(state().mutex);
  State& s = state();
  s.devices.clear();
  s.breaks.clear();
  s.violations.clear();
  s.writes = 0;
  s.refused_pairs = s.refused_connections = 0;
  s.on_connect = {};
}

VerbsPort Fabric::makePort(const std::string& device, const std::string& ipv4) {
  Device* made = nullptr;
  {
    const std::lock_guard lock(state().mutex);
    auto& place = state().devices[device];
    place = std::make_unique<Device>();
    made = place.get();
  }
  device.copy(made->name, sizeof(made->name) - 1);
  VerbsPort port{.device = std::make_shared<VerbsDevice>(fakeVerbs(), made)};
  port.mtu = IBV_MTU_4096;
  port.is_ethernet = true;
  Gid gid{.index = 1};
  gid.bytes[10] = gid.bytes[11] = 0xff;
  ::inet_pton(AF_INET, ipv4.c_str(), gid.bytes.data() + 12);
  port.gids.push_back(gid);
  return port;
}

void Fabric::breakAt(std::uint64_t writes, std::function<void()> action) {
  const std::lock_guard lock(state().mutex);
  state().breaks.emplace(writes, std::move(action));
}

void Fabric::loseNext(const std::string& device) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->loses_next = true;
}

void Fabric::setUnacknowledged(const std::string& device, bool is_unacknowledged) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->is_unacknowledged = is_unacknowledged;
}

void Fabric::setPort(const std::string& device, bool is_up) {
  const std::lock_guard lock(state().mutex);
  state().devices.at(device)->is_up = is_up;
  tellAll(device, is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void Fabric::fail(const std::string& device, ibv_event_type event) {
  const std::lock_guard lock(state().mutex);
  if (event == IBV_EVENT_DEVICE_FATAL) state().devices.at(device)->is_up = false;
  tellAll(device, event);
}

void Fabric::failPairs(const std::string& device, ibv_wc_status status, bool with_event) {
  const std::lock_guard lock(state().mutex);
  for (const auto& [number, pair] : state().pairs) {
    if (device != pair->context->device->name) continue;
    if (with_event) {
      ibv_async_event event{};
      event.event_type = IBV_EVENT_QP_FATAL;
      event.element.qp = pair;
      static_cast<Context*>(pair->context)->events.push(event);
      pair->is_stuck = true;
    } else {
      breakPair(*pair, completionOf(*pair, 0, status, IBV_WC_RDMA_WRITE));
    }
  }
}

void Fabric::refusePairs(int times, int error) {
  const std::lock_guard lock(state().mutex);
  state().refused_pairs = times;
  state().refusal = error;
}

void Fabric::refuseConnections(int times, int error) {
  const std::lock_guard lock(state().mutex);
  state().refused_connections = times;
  state().refusal = error;
}

void Fabric::onConnect(std::function<void()> action) {
  const std::lock_guard lock(state().mutex);
  state().on_connect = std::move(action);
}

std::uint64_t Fabric::writes() const {
  const std::lock_guard lock(state().mutex);
  return state().writes;
}

std::size_t Fabric::openPairs() const {
  const std::lock_guard lock(state().mutex);
  return state().pairs.size();
}

std::vector<std::string> Fabric::violations() const {
  const std::lock_guard lock(state().mutex);
  return state().violations;
}

}  // namespace tutti::test
