#include "transports/verbs/ibverbs.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

namespace tutti {
namespace {

struct Loaded {
  Ibverbs functions{};
  std::string problem;
};

Loaded load() {
  Loaded loaded;
  void* library = ::dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.problem = fmt::format("libibverbs cannot be loaded ({}); it is part of rdma-core", ::dlerror());
    return loaded;
  }
  const auto find = [&](auto& function, const char* name) {
    // Where there are several versions of it, the newest, which is the one that the headers mean.
    void* const symbol = ::dlsym(library, name);
    if (symbol == nullptr && loaded.problem.empty())
      loaded.problem = fmt::format("libibverbs.so.1 has no {}", name);
    std::memcpy(&function, &symbol, sizeof(symbol));
  };
  Ibverbs& f = loaded.functions;
  find(f.get_device_list, "ibv_get_device_list");
  find(f.free_device_list, "ibv_free_device_list");
  find(f.get_device_name, "ibv_get_device_name");
  find(f.open_device, "ibv_open_device");
  find(f.close_device, "ibv_close_device");
  find(f.query_device, "ibv_query_device");
  find(f.query_port, "ibv_query_port");
  find(f.query_gid, "ibv_query_gid");
  find(f.query_pkey, "ibv_query_pkey");
  find(f.alloc_pd, "ibv_alloc_pd");
  find(f.dealloc_pd, "ibv_dealloc_pd");
  find(f.reg_mr, "ibv_reg_mr");
  find(f.dereg_mr, "ibv_dereg_mr");
  find(f.create_comp_channel, "ibv_create_comp_channel");
  find(f.destroy_comp_channel, "ibv_destroy_comp_channel");
  find(f.create_cq, "ibv_create_cq");
  find(f.destroy_cq, "ibv_destroy_cq");
  find(f.get_cq_event, "ibv_get_cq_event");
  find(f.ack_cq_events, "ibv_ack_cq_events");
  find(f.create_qp, "ibv_create_qp");
  find(f.modify_qp, "ibv_modify_qp");
  find(f.destroy_qp, "ibv_destroy_qp");
  find(f.get_async_event, "ibv_get_async_event");
  find(f.ack_async_event, "ibv_ack_async_event");
  find(f.fork_init, "ibv_fork_init");
  find(f.event_type_str, "ibv_event_type_str");
  void* const dma_buf = ::dlsym(library, "ibv_reg_dmabuf_mr");
  std::memcpy(&f.reg_dmabuf_mr, &dma_buf, sizeof(dma_buf));
  // Pages under a device's hand must not become a child's copies when the program forks.
  if (loaded.problem.empty()) f.fork_init();
  return loaded;
}

}  // namespace

const Ibverbs* ibverbs(std::string* why_not) {
  static const Loaded loaded = load();
  if (loaded.problem.empty()) return &loaded.functions;
  *why_not = loaded.problem;
  return nullptr;
}

}  // namespace tutti
