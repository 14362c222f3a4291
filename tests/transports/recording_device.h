// A device of RDMA that is none: what libibverbs would be asked is written down, and memory is "registered"
// up to a limit.
#pragma once

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transports/verbs/device.h"

namespace tutti::test {

/// What one test sees of its device; one at a time. The functions of Ibverbs carry no context of their own.
class RecordingDevice {
 public:
  static constexpr ibv_mtu kMtu = IBV_MTU_4096;

  RecordingDevice() { current() = this; }
  RecordingDevice(const RecordingDevice&) = delete;
  RecordingDevice& operator=(const RecordingDevice&) = delete;
  ~RecordingDevice() { current() = nullptr; }

  std::shared_ptr<VerbsDevice> open() { return std::make_shared<VerbsDevice>(functions(), &device_); }

  VerbsPort port(bool is_ethernet = true) {
    VerbsPort port{.device = open(), .number = 3, .mtu = kMtu, .is_ethernet = is_ethernet, .lid = 17};
    return port;
  }

  std::size_t most_regions = 1000;       ///< then registering fails with ENOMEM
  std::map<void*, std::size_t> regions;  ///< registered now, by address
  int dma_buf_error = EOPNOTSUPP;        ///< what registering by a descriptor gives; 0: a region
  int address_error = 0;                 ///< likewise by an address
  int registered = 0;                    ///< ever
  struct Change {
    ibv_qp_attr attributes;
    int mask;
  };
  std::vector<Change> changes;  ///< of queue pairs, in order

  int writes = 0;  ///< requests, also of credits
  int reads = 0;   ///< RDMA reads that were begun
  /// Reads come back by returnReads(), else at once. Nothing else completes by itself.
  bool holds_reads = false;
  ibv_wc_status read_status = IBV_WC_SUCCESS;  ///< of those that are back at once
  void returnReads(ibv_wc_status status = IBV_WC_SUCCESS) {
    for (ibv_cq* queue : std::exchange(held_, {})) {
      ibv_wc completion{};
      completion.status = status;
      completion.opcode = IBV_WC_RDMA_READ;
      queueOf(queue).completions.push_back(completion);
    }
  }
  /// A write with this immediate has come to the queue pairs that were made last.
  void receive(std::uint32_t immediate) {
    ibv_wc completion{};
    completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    completion.imm_data = htonl(immediate);
    queues_.back().completions.push_back(completion);
  }

 private:
  static RecordingDevice*& current() {
    static RecordingDevice* fake = nullptr;
    return fake;
  }

  static Ibverbs makeFunctions() {
    Ibverbs f{};
    f.get_device_name = [](ibv_device*) { return "fake"; };
    f.open_device = [](ibv_device*) { return &current()->context_; };
    f.close_device = [](ibv_context*) { return 0; };
    f.alloc_pd = [](ibv_context*) { return &current()->domain_; };
    f.dealloc_pd = [](ibv_pd*) { return 0; };
    f.create_comp_channel = [](ibv_context*) { return &current()->channel_; };
    f.destroy_comp_channel = [](ibv_comp_channel*) { return 0; };
    f.reg_mr = [](ibv_pd*, void* address, std::size_t bytes, int) {
      errno = current()->address_error;
      return errno != 0 ? nullptr : current()->registerMemory(address, bytes);
    };
    f.dereg_mr = [](ibv_mr* region) {
      current()->regions.erase(region->addr);
      delete region;
      return 0;
    };
    f.reg_dmabuf_mr = [](ibv_pd*, std::uint64_t, std::size_t bytes, std::uint64_t address, int, int) {
      errno = current()->dma_buf_error;
      return errno != 0 ? nullptr : current()->registerMemory(std::bit_cast<void*>(address), bytes);
    };
    f.query_port = [](ibv_context*, std::uint8_t, ibv_port_attr* attributes) {
      attributes->state = IBV_PORT_ACTIVE;
      return 0;
    };
    f.create_cq = [](ibv_context*, int, void*, ibv_comp_channel*, int) { return current()->makeQueue(); };
    f.destroy_cq = [](ibv_cq* queue) {
      current()->queues_.remove_if([queue](const Queue& other) { return &other.handle == queue; });
      return 0;
    };
    f.create_qp = [](ibv_pd*, ibv_qp_init_attr* wanted) { return current()->makePair(*wanted); };
    f.destroy_qp = [](ibv_qp* pair) {
      delete pair;
      return 0;
    };
    f.modify_qp = [](ibv_qp*, ibv_qp_attr* attributes, int mask) {
      current()->changes.push_back({*attributes, mask});
      return 0;
    };
    return f;
  }

  /// Devices refer to it for as long as they live.
  static const Ibverbs& functions() {
    static const Ibverbs made = makeFunctions();
    return made;
  }

  struct Queue {
    ibv_cq handle{};
    std::deque<ibv_wc> completions;
  };
  Queue& queueOf(const ibv_cq* handle) {
    return *std::ranges::find_if(queues_, [handle](const Queue& queue) { return &queue.handle == handle; });
  }

  ibv_cq* makeQueue() {
    Queue& made = queues_.emplace_back();
    made.handle.context = &context_;
    return &made.handle;
  }

  /// What the headers define inline goes through the context's table.
  ibv_qp* makePair(const ibv_qp_init_attr& wanted) {
    context_.ops.poll_cq = [](ibv_cq* queue, int most, ibv_wc* to) {
      auto& completions = current()->queueOf(queue).completions;
      int count = 0;
      for (; count < most && !completions.empty(); completions.pop_front()) to[count++] = completions.front();
      return count;
    };
    context_.ops.post_send = [](ibv_qp* pair, ibv_send_wr* first, ibv_send_wr**) {
      for (const ibv_send_wr* request = first; request != nullptr; request = request->next)
        current()->send(*pair, *request);
      return 0;
    };
    context_.ops.post_recv = [](ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
    auto* const made = new ibv_qp{};
    made->context = &context_;
    made->send_cq = wanted.send_cq;
    made->qp_num = ++pairs_;
    return made;
  }

  void send(const ibv_qp& pair, const ibv_send_wr& request) {
    if (request.opcode != IBV_WR_RDMA_READ) {
      ++writes;
      return;
    }
    ++reads;
    held_.push_back(pair.send_cq);
    if (!holds_reads) returnReads(read_status);
  }

  ibv_mr* registerMemory(void* address, std::size_t bytes) {
    if (regions.size() >= most_regions) {
      errno = ENOMEM;
      return nullptr;
    }
    regions[address] = bytes;
    auto* const region = new ibv_mr{};
    region->addr = address;
    region->lkey = region->rkey = static_cast<std::uint32_t>(++registered);
    return region;
  }

  ibv_device device_{};
  ibv_context context_{};
  ibv_pd domain_{};
  ibv_comp_channel channel_{.context = nullptr, .fd = -1, .refcnt = 0};
  std::list<Queue> queues_;
  std::vector<ibv_cq*> held_;  ///< where reads complete that are not back
  std::uint32_t pairs_ = 0;
};

}  // namespace tutti::test
