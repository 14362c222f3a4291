#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "tools/doctor/host/gather.h"
#include "tools/doctor/system.h"
#include "transports/link_memory.h"
#include "transports/memory_budget.h"
#include "transports/segment.h"
#include "tutti/error.h"

namespace tutti::doctor {
namespace {

constexpr int kCapIpcLock = 14;
constexpr std::uint32_t kSlotBytes = 131072;  ///< where TUTTI_SLOT_BYTES does not say, between hosts

std::string tryMemfd() {
  constexpr std::size_t kBytes = 1U << 20;
  try {
    Segment::create(randomToken(), kBytes)->reserve(0, kBytes);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::uint64_t systemFreeBytes() {
  const std::string text = fieldIn("/proc/meminfo", "MemAvailable");
  return text.empty() ? UINT64_MAX : std::strtoull(text.c_str(), nullptr, 10) * 1024;
}

}  // namespace

std::uint64_t lockedNeed(const LinkShape& shape, int peers) {
  const std::uint32_t slot_bytes = shape.slot_bytes == 0 ? kSlotBytes : shape.slot_bytes;
  const LinkMemory one(1, shape.slot_count, slot_bytes);
  // One link to each, and one from it, on every lane.
  return one.all().size() * 2 * std::max(1U, shape.lanes) * static_cast<std::uint64_t>(peers);
}

LimitFacts gatherLimits(const LinkShape& shape) {
  LimitFacts facts;
  rlimit limit{};
  const auto capabilities = std::strtoull(fieldIn("/proc/self/status", "CapEff").c_str(), nullptr, 16);
  const bool is_exempt = (capabilities >> kCapIpcLock & 1) != 0;
  if (!is_exempt && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    facts.locked_bytes = limit.rlim_cur;
  facts.locked_need = lockedNeed(shape, kTypicalPeers);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  facts.open_files = limit.rlim_cur;
  facts.most_open_files = limit.rlim_max;
  facts.free_bytes = freeMemoryBytes();
  facts.system_free_bytes = systemFreeBytes();
  facts.memfd_problem = tryMemfd();
  return facts;
}

}  // namespace tutti::doctor
