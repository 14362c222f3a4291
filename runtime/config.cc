#include "runtime/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr unsigned kMagic = 0xcafebeef;

/// A whole-number field: which values there are, and since which version.
struct Field {
  const char* name;
  int ncclConfig_t::*member;
  int since;
  int least;
  int most;
};

constexpr Field kFields[] = {
    {"blocking", &ncclConfig_t::blocking, NCCL_VERSION(2, 14, 0), 0, 1},
    {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, NCCL_VERSION(2, 17, 0), 0, INT_MAX},
    {"minCTAs", &ncclConfig_t::minCTAs, NCCL_VERSION(2, 17, 0), 1, INT_MAX},
    {"maxCTAs", &ncclConfig_t::maxCTAs, NCCL_VERSION(2, 17, 0), 1, INT_MAX},
    {"splitShare", &ncclConfig_t::splitShare, NCCL_VERSION(2, 17, 0), 0, 1},
    {"trafficClass", &ncclConfig_t::trafficClass, NCCL_VERSION(2, 25, 0), 0, INT_MAX},
    {"collnetEnable", &ncclConfig_t::collnetEnable, NCCL_VERSION(2, 27, 0), 0, 1},
    {"CTAPolicy", &ncclConfig_t::CTAPolicy, NCCL_VERSION(2, 27, 0), 0,
     NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO},
    {"shrinkShare", &ncclConfig_t::shrinkShare, NCCL_VERSION(2, 27, 0), 0, 1},
    {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, NCCL_VERSION(2, 27, 0), 1, INT_MAX},
    {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, NCCL_VERSION(2, 28, 0), 1, INT_MAX},
    {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, NCCL_VERSION(2, 28, 0), 0, 1},
};

struct TextField {
  const char* name;
  const char* ncclConfig_t::*member;
  int since;
};

constexpr TextField kTextFields[] = {
    {"netName", &ncclConfig_t::netName, NCCL_VERSION(2, 17, 0)},
    {"commName", &ncclConfig_t::commName, NCCL_VERSION(2, 25, 0)},
};

[[noreturn]] void refuse(const char* function, const std::string& text) {
  throw Error(ncclInvalidArgument, fmt::format("{}: config: {}", function, text));
}

/// The caller's structure in this version's layout: what it lacks is unset, what is newer is dropped.
ncclConfig_t copyKnown(const char* function, const ncclConfig_t& given) {
  constexpr std::size_t kLeast = offsetof(ncclConfig_t, cgaClusterSize);
  if (given.magic != kMagic || given.size < kLeast) {
    refuse(function, "it was not initialized. Write ncclConfig_t config = NCCL_CONFIG_INITIALIZER;");
  }
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  std::memcpy(&known, &given, std::min(given.size, sizeof(known)));
  return known;
}

}  // namespace

CommConfig readConfig(const char* function, const ncclConfig_t* config, std::optional<bool> blocks) {
  CommConfig result;
  result.is_blocking = blocks.value_or(true);
  if (config == nullptr) return result;
  const ncclConfig_t known = copyKnown(function, *config);
  const int version = static_cast<int>(known.version);
  for (const Field& field : kFields) {
    const int value = known.*field.member;
    if (value == NCCL_CONFIG_UNDEF_INT || version < field.since) continue;
    if (value < field.least || value > field.most) {
      refuse(function, field.most == INT_MAX
                           ? fmt::format("{} is {}, but must be {} or more", field.name, value, field.least)
                           : fmt::format("{} is {}, but must be from {} to {}", field.name, value,
                                         field.least, field.most));
    }
    if (field.member != &ncclConfig_t::blocking) {
      result.ignored.push_back(fmt::format("{} = {}", field.name, value));
    }
  }
  if (version >= NCCL_VERSION(2, 17, 0) && known.minCTAs != NCCL_CONFIG_UNDEF_INT &&
      known.maxCTAs != NCCL_CONFIG_UNDEF_INT && known.minCTAs > known.maxCTAs) {
    refuse(function, fmt::format("minCTAs {} exceeds maxCTAs {}", known.minCTAs, known.maxCTAs));
  }
  for (const TextField& field : kTextFields) {
    if (known.*field.member == nullptr || version < field.since) continue;
    result.ignored.push_back(fmt::format("{} = {}", field.name, known.*field.member));
  }
  if (known.blocking != NCCL_CONFIG_UNDEF_INT && !blocks) result.is_blocking = known.blocking == 1;
  return result;
}

}  // namespace tutti
