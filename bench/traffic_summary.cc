#include "bench/traffic_summary.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "bench/statistics.h"

namespace tutti::perf {

bool wantsTrafficSummary(const Collective& collective) {
  const char* asked = std::getenv("NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY");
  return collective.traffic != nullptr && asked != nullptr && std::strcmp(asked, "0") != 0;
}

std::string trafficSummary(const Collective& collective, const Case& item, int nranks, double time_us) {
  std::string text = fmt::format("# NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY: nranks={} size={} time_usec={:.2f}\n",
                                 nranks, item.span_bytes, time_us);
  for (int rank = 0; rank < nranks; ++rank) {
    const Layout layout = collective.layout(item.asked_bytes, item.element_bytes, nranks, rank);
    const double gbps = gigabytesPerSecond(static_cast<double>(layout.span() * item.element_bytes), time_us);
    text += fmt::format("#   rank={} send_bytes={} recv_bytes={} alg_bw={:.2f} bus_bw={:.2f}\n", rank,
                        layout.send * item.element_bytes, layout.recv * item.element_bytes, gbps,
                        gbps * collective.busFactor(nranks));
  }
  return text;
}

}  // namespace tutti::perf
