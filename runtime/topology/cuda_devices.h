// The GPUs of this process, as the CUDA runtime numbers them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tutti {

struct CudaDevice {
  std::string bus_id;
  std::string model;
  int compute_capability = 0;
  int numa = -1;  ///< of the host; -1: not told
  bool reached_by_rdma = false;
};

struct CudaView {
  std::vector<CudaDevice> devices = {};  ///< by CUDA's number
  std::vector<std::pair<int, int>> without_peer_access =
      {};               ///< devices that cannot reach each other's memory
  std::string problem;  ///< why there are none; empty: nothing
};

/// Makes no context on any GPU. Throws nothing.
CudaView askCuda();

}  // namespace tutti
