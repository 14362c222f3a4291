// A device of RDMA that is none: what libibverbs would be asked is written down, and memory is "registered"
// up to a limit.
#pragma once

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
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
  int dma_buf_error = EOPNOTSUPP;        ///< what registering by a descriptor that is none gives
  int registered = 0;                    ///< ever
  struct Change {
    ibv_qp_attr attributes;
    int mask;
  };
  std::vector<Change> changes;  ///< of queue pairs, in order

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
      return current()->registerMemory(address, bytes);
    };
    f.dereg_mr = [](ibv_mr* region) {
      current()->regions.erase(region->addr);
      delete region;
      return 0;
    };
    f.reg_dmabuf_mr = [](ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) -> ibv_mr* {
      errno = current()->dma_buf_error;
      return nullptr;
    };
    f.create_cq = [](ibv_context*, int, void*, ibv_comp_channel*, int) { return &current()->completions_; };
    f.destroy_cq = [](ibv_cq*) { return 0; };
    f.create_qp = [](ibv_pd*, ibv_qp_init_attr*) { return &current()->pair_; };
    f.destroy_qp = [](ibv_qp*) { return 0; };
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
  ibv_cq completions_{};
  ibv_qp pair_{};
};

}  // namespace tutti::test
