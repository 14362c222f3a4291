#include "runtime/topology/bandwidths.h"

#include <algorithm>
#include <string_view>

namespace tutti {
namespace {

// Where nothing else is said, the numbers are those that NCCL 2.30 has in graph/topo.h and topo.cc.

/// NVLink per direction less what its packets' headers take.
struct NvlinkRow {
  int least_capability;
  double gbytes_per_s;
};
constexpr NvlinkRow kNvlinks[] = {{100, 40.1}, {90, 20.6}, {87, 20}, {86, 12}, {80, 20}, {70, 20}, {60, 18}};

/// 12 GB/s of the 15.75 of a Gen 3 x16 link remain: 8 GT/s x 16 lanes / 8 bits x 3/4.
constexpr double kGBytesPerTransferAndLane = 12.0 / (8.0 * 16.0);
/// Gen 1 and 2 send 10 bits for 8; later ones 130 for 128.
constexpr double kOldEncoding = 8.0 / 10.0;

constexpr double kAmdSockets = 16;
constexpr double kArmSockets = 6;
constexpr double kPower9Sockets = 32;
constexpr double kUnknownSockets = 10;  // ours: as Intel's of 2017, where NCCL takes what is no limit

/// By the model as Intel numbers it in family 6. Granite Rapids (NCCL issue 2107) has faster links than the
/// Emerald Rapids before it, but a smaller number.
struct IntelRow {
  int least_model;
  double gbytes_per_s;
};
constexpr IntelRow kIntelSockets[] = {
    {0xcf, 40},              // Emerald Rapids and newer
    {0xaf, 22}, {0xad, 40},  // Granite Rapids
    {0x8f, 22},              // Sapphire Rapids
    {0x55, 10},              // Skylake to Ice Lake
    {0, 6},                  // Broadwell and older: QPI
};

double intelSockets(int family, int model) {
  if (family <= 0) return kUnknownSockets;
  if (family != 6) return family > 15 ? std::begin(kIntelSockets)->gbytes_per_s : 6;  // 15: of the 2000s
  const auto* const row =
      std::ranges::find_if(kIntelSockets, [model](const IntelRow& r) { return model >= r.least_model; });
  return row == std::end(kIntelSockets) ? kUnknownSockets : row->gbytes_per_s;
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
  return transfers * width * kGBytesPerTransferAndLane * (transfers < 8 ? kOldEncoding : 1);
}

double socketGBytes(const CpuDetails& cpu) {
  const std::string_view vendor = cpu.vendor;
  if (cpu.architecture == "ppc64") return kPower9Sockets;
  if (cpu.architecture == "arm64") return kArmSockets;
  if (vendor == "AuthenticAMD") return kAmdSockets;
  if (vendor == "GenuineIntel") return intelSockets(cpu.family, cpu.model);
  return kUnknownSockets;
}

double netGBytes(const NetDetails& net) { return (net.mbits_per_s > 0 ? net.mbits_per_s : 10000) / 8000; }

}  // namespace tutti
