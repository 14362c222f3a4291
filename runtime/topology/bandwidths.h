// How fast things are that no machine tells: the constants, each with its source. Decimal gigabytes per
// second in one direction.
#pragma once

#include "runtime/core/topology.h"

namespace tutti {

/// Of one NVLink by the GPU's compute capability.
double nvlinkGBytes(int compute_capability);

/// Of PCI: transfers, lanes and the encoding, less what packets' headers take. Unknown: as of Gen 3 x16.
double pciGBytes(const PciLink& link);

/// Between the sockets of a host; `cpu` is of one of them.
double socketGBytes(const CpuDetails& cpu);

/// Of a port.
double netGBytes(const NetDetails& net);

/// Inside a GPU, or a socket's memory: what is not a limit.
inline constexpr double kLocalGBytes = 5000;

}  // namespace tutti
