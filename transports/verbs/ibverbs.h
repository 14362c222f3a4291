// libibverbs, opened at run time: a machine without it loses RDMA and nothing else.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

namespace tutti {

/// The functions of libibverbs that Tutti calls. What the headers define inline (posting, polling) goes
/// through the device's own table.
struct Ibverbs {
  ibv_device** (*get_device_list)(int*);
  void (*free_device_list)(ibv_device**);
  const char* (*get_device_name)(ibv_device*);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, std::uint8_t, ibv_port_attr*);
  int (*query_gid)(ibv_context*, std::uint8_t, int, ibv_gid*);
  int (*query_pkey)(ibv_context*, std::uint8_t, int, __be16*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
  int (*dereg_mr)(ibv_mr*);
  /// nullptr before rdma-core 34.
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  ibv_comp_channel* (*create_comp_channel)(ibv_context*);
  int (*destroy_comp_channel)(ibv_comp_channel*);
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
  int (*destroy_cq)(ibv_cq*);
  int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void**);
  void (*ack_cq_events)(ibv_cq*, unsigned);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*destroy_qp)(ibv_qp*);
  int (*get_async_event)(ibv_context*, ibv_async_event*);
  void (*ack_async_event)(ibv_async_event*);
  int (*fork_init)();
  const char* (*event_type_str)(ibv_event_type);
};

/// The library, opened once per process and never closed; nullptr with the reason where it cannot be used.
/// Thread-safe.
const Ibverbs* ibverbs(std::string* why_not);

}  // namespace tutti
