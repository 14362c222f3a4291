// RDMA in a build that was made without rdma-core's headers.
#include "transports/rdma.h"
#include "tutti/error.h"

namespace tutti {

RdmaPorts findRdmaPorts(const RdmaSettings&) {
  return {.ports = nullptr, .names = {}, .why_not = "built without it, TUTTI_VERBS"};
}

std::unique_ptr<RdmaNetwork> makeRdmaNetwork(const RdmaPorts& ports, RdmaOptions) {
  throw Error(ncclInternalError, ports.why_not);
}

}  // namespace tutti
