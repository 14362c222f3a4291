#include "runtime/topology/bandwidths.h"

#include <algorithm>
#include <string_view>

namespace tutti {
namespace {

/// NVLink per direction less what its packets' headers take, as NCCL's graph/topo.h has it; 10.0 by the
/// same ratio from 50 GB/s.
struct NvlinkRow {
  int least_capability;
  double gbytes_per_s;
};
constexpr NvlinkRow kNvlinks[] = {{100, 40.1}, {90, 20.6}, {86, 12}, {80, 20}, {70, 20}, {60, 18}};

/// As NCCL: 12 GB/s of the 15.75 of a Gen 3 x16 link remain.
constexpr double kGBytesPerTransferAndLane = 12.0 / (8.0 * 16.0);

constexpr double kAmdSockets = 16;
constexpr double kArmSockets = 6;
constexpr double kPower9Sockets = 32;

/// By generation: Broadwell and older, Skylake to Cascade Lake, Ice Lake on (UPI of 11.2 GT/s), Sapphire
/// Rapids on (16 GT/s). Models as Intel numbers them in family 6.
double intelSockets(int family, int model) {
  if (family != 6 || model >= 0xcf) return 40;
  if (model >= 0x8f) return 40;
  if (model >= 0x6a) return 22;
  if (model >= 0x55) return 10;
  return 6;
}

}  // namespace

double nvlinkGBytes(int compute_capability) {
  const auto* const row = std::ranges::find_if(kNvlinks, [compute_capability](const NvlinkRow& r) {
    return compute_capability >= r.least_capability;
  });
  return row == std::end(kNvlinks) ? 20 : row->gbytes_per_s;
}

double pciGBytes(const PciLink& link) {
  const double transfers = link.gtransfers_per_s > 0 ? link.gtransfers_per_s : 8;
  const int width = link.width > 0 ? link.width : 16;
  return transfers * width * kGBytesPerTransferAndLane;
}

double socketGBytes(const CpuDetails& cpu) {
  const std::string_view vendor = cpu.vendor;
  if (cpu.architecture == "ppc64") return kPower9Sockets;
  if (cpu.architecture == "arm64") return kArmSockets;
  if (vendor == "AuthenticAMD") return kAmdSockets;
  if (vendor == "GenuineIntel") return intelSockets(cpu.family, cpu.model);
  return 10;
}

double netGBytes(const NetDetails& net) { return (net.mbits_per_s > 0 ? net.mbits_per_s : 10000) / 8000; }

}  // namespace tutti
