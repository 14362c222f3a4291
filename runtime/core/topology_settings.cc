// The values of NCCL's variables about paths and rings.
#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

PathClass pathLevel(const ActingRow& row, std::string_view value) {
  const auto level = pathClassOf(value);
  if (!level || *level > PathClass::sys) {
    refuse(row, value, "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS, or a number from 0 on");
  }
  return *level;
}

}  // namespace

void readPeerLevel(Settings& settings, const ActingRow& row, std::string_view value) {
  if (value.empty()) return;
  settings.topology.p2p_level = pathLevel(row, value);
  if (settings.topology.p2p_level == PathClass::loc) settings.uses_peer_access = false;
}

void readRdmaLevel(Settings& settings, const ActingRow& row, std::string_view value) {
  if (value.empty()) return;
  settings.topology.rdma_level = pathLevel(row, value);
  settings.rdma.gpu_level = settings.topology.rdma_level;
}

void readCrossNic(Settings& settings, const ActingRow& row, std::string_view value) {
  settings.topology.cross_nic = static_cast<TopologyRules::CrossNic>(wholeNumber(row, value, 0, 2));
}

void readLeastChannels(Settings& settings, const ActingRow& row, std::string_view value) {
  if (value.empty()) return;
  settings.topology.least_channels = static_cast<std::uint32_t>(wholeNumber(row, value, 1, 1024));
}

void readMostChannels(Settings& settings, const ActingRow& row, std::string_view value) {
  if (value.empty()) return;
  settings.topology.most_channels = static_cast<std::uint32_t>(wholeNumber(row, value, 1, 1024));
}

}  // namespace tutti
