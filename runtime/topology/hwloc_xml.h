// hwloc's XML, version 2: what lstopo exports.
#pragma once

#include <string>
#include <string_view>

#include "runtime/topology/nccl_xml.h"

namespace tutti {

/// Throws FileError, as readNcclXml. One host.
///
/// NUMA nodes without CPUs of their own (memory of GPUs, HBM, CXL) are left out. GPUs are NVIDIA's display
/// devices and all 3D controllers, numbered as CUDA's objects say, else NVML's, else as they appear. A NIC
/// has the active ports that its RDMA device shows, else its network interfaces; their speeds are unknown. A
/// bridge below which there is one slot only (a root port, a port of a PCI switch) is part of its devices'
/// link, which is then as fast as the slower of both. hwloc gives links in GB/s: the oldest generation with
/// at most 16 lanes that fits is taken.
TopologyFile readHwlocXml(std::string_view text, const std::string& name);

/// Either format, by the root element. Throws FileError; also for files that cannot be opened or are larger
/// than 64 MiB.
TopologyFile readTopologyFile(const std::string& path);

}  // namespace tutti
