#include "transports/verbs/ibverbs.h"

#include <fmt/format.h>

#include "runtime/core/shared_library.h"

namespace tutti {
namespace {

struct Loaded {
  Ibverbs functions{};
  std::string problem;
};

Loaded load() {
  Loaded loaded;
  SharedLibrary library({"libibverbs.so.1"});
  Ibverbs& f = loaded.functions;
  library.find(f.get_device_list, "ibv_get_device_list");
  library.find(f.free_device_list, "ibv_free_device_list");
  library.find(f.get_device_name, "ibv_get_device_name");
  library.find(f.open_device, "ibv_open_device");
  library.find(f.close_device, "ibv_close_device");
  library.find(f.query_device, "ibv_query_device");
  library.find(f.query_port, "ibv_query_port");
  library.find(f.query_gid, "ibv_query_gid");
  library.find(f.query_pkey, "ibv_query_pkey");
  library.find(f.alloc_pd, "ibv_alloc_pd");
  library.find(f.dealloc_pd, "ibv_dealloc_pd");
  library.find(f.reg_mr, "ibv_reg_mr");
  library.find(f.dereg_mr, "ibv_dereg_mr");
  library.find(f.create_comp_channel, "ibv_create_comp_channel");
  library.find(f.destroy_comp_channel, "ibv_destroy_comp_channel");
  library.find(f.create_cq, "ibv_create_cq");
  library.find(f.destroy_cq, "ibv_destroy_cq");
  library.find(f.get_cq_event, "ibv_get_cq_event");
  library.find(f.ack_cq_events, "ibv_ack_cq_events");
  library.find(f.create_qp, "ibv_create_qp");
  library.find(f.modify_qp, "ibv_modify_qp");
  library.find(f.destroy_qp, "ibv_destroy_qp");
  library.find(f.get_async_event, "ibv_get_async_event");
  library.find(f.ack_async_event, "ibv_ack_async_event");
  library.find(f.fork_init, "ibv_fork_init");
  library.find(f.event_type_str, "ibv_event_type_str");
  library.findIfThere(f.reg_dmabuf_mr, "ibv_reg_dmabuf_mr");
  if (library.problem().empty()) {
    // Pages under a device's hand must not become a child's copies when the program forks.
    f.fork_init();
  } else {
    loaded.problem =
        fmt::format("libibverbs cannot be used ({}); it is part of rdma-core", library.problem());
  }
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
