// NCCL_ALGO, NCCL_PROTO and TUTTI_PLAN.
//
// NCCL's grammar: LIST for all collectives, or FUNCTION:LIST for one, several of them with ; between, the
// later before the earlier. A LIST is names with commas between, all that are allowed; with ^ before it, all
// others.
//
// NCCL knows algorithms that Tutti lacks, and the reverse. Ring is the same in both; NCCL's others stand for
// all that is not a ring here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "runtime/core/setting_row.h"

namespace tutti {
namespace {

using Pick = PlanOverride::Pick;
using Form = PlanOverride::Form;

constexpr std::array<std::string_view, 7> kAlgorithms{
    "Ring", "Tree", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, 3> kProtocols{"Simple", "LL", "LL128"};
constexpr std::array<std::pair<std::string_view, Pick>, 4> kPicks{{{"ring", Pick::ring},
                                                                   {"direct", Pick::direct},
                                                                   {"one_shot", Pick::one_shot},
                                                                   {"hierarchical", Pick::hierarchical}}};

std::string collectiveNames() {
  std::string names;
  for (int i = 0; i < kCollectiveCount; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", name(static_cast<Collective>(i)));
  }
  return names;
}

/// The names of a list, one bit each.
unsigned readList(const SettingRow& row, std::string_view value, std::string_view list,
                  std::span<const std::string_view> names) {
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const unsigned all = (1U << names.size()) - 1;
  unsigned named = 0;
  for (const std::string_view part : split(list, ',')) {
    const std::size_t at = placeOf(part, names);
    if (at == names.size()) {
      refuse(row, value,
             fmt::format("names among {}, with commas between, ^ before them for all others, such as "
                         "\"{}\" or \"allreduce:{};broadcast:^{}\"; \"{}\" is none",
                         fmt::join(names, ", "), names[0], names[0], names[1], part));
    }
    named |= 1U << at;
  }
  const unsigned allowed = excludes ? all & ~named : named;
  if (allowed == 0) refuse(row, value, "a list that leaves something to choose");
  return allowed;
}

/// Calls `take(override, allowed)` for the collectives that each list is about.
template <class Take>
void readLists(Settings& settings, const SettingRow& row, std::string_view value,
               std::span<const std::string_view> names, const Take& take) {
  for (const std::string_view part : split(value, ';')) {
    if (part.empty()) continue;
    const std::size_t colon = part.find(':');
    const bool is_for_one = colon != std::string_view::npos;
    const unsigned allowed = readList(row, value, is_for_one ? part.substr(colon + 1) : part, names);
    bool is_known = !is_for_one;
    for (int i = 0; i < kCollectiveCount; ++i) {
      if (is_for_one && !equalIgnoringCase(part.substr(0, colon), name(static_cast<Collective>(i)))) continue;
      is_known = true;
      take(settings.plans[static_cast<std::size_t>(i)], allowed);
    }
    if (!is_known) refuse(row, value, fmt::format("before a colon one of {}", collectiveNames()));
  }
}

}  // namespace

void readAlgorithms(Settings& settings, const ActingRow& row, std::string_view value) {
  for (const auto& [text, pick] : kPicks) {  // Tutti's own names
    if (!equalIgnoringCase(text, value)) continue;
    for (PlanOverride& plan : settings.plans) plan.algorithm = pick;
    return;
  }
  constexpr unsigned kRing = 1;
  readLists(settings, row, value, kAlgorithms, [](PlanOverride& plan, unsigned allowed) {
    plan.algorithm = allowed == kRing         ? Pick::ring
                     : (allowed & kRing) == 0 ? Pick::not_ring
                                              : Pick::automatic;
  });
}

void readProtocols(Settings& settings, const ActingRow& row, std::string_view value) {
  constexpr unsigned kSimple = 1;
  readLists(settings, row, value, kProtocols, [](PlanOverride& plan, unsigned allowed) {
    plan.slots = allowed == kSimple         ? Form::plain
                 : (allowed & kSimple) == 0 ? Form::packets
                                            : Form::automatic;
  });
}

/// ALGORITHM, or ALGORITHM/FORM, or /FORM.
void readPlan(Settings& settings, const ActingRow& row, std::string_view value) {
  constexpr std::string_view kAccepted =
      "ring, direct, one_shot or hierarchical, and perhaps /slots or /packets after it, such as direct/slots";
  if (value.empty()) return;
  const std::size_t slash = std::min(value.find('/'), value.size());
  const std::string_view algorithm = value.substr(0, slash);
  const auto pick = std::ranges::find_if(
      kPicks, [algorithm](const auto& known) { return equalIgnoringCase(known.first, algorithm); });
  if (!algorithm.empty() && pick == kPicks.end()) refuse(row, value, kAccepted);
  const std::string_view form = slash == value.size() ? "" : value.substr(slash + 1);
  const bool is_plain = equalIgnoringCase(form, "slots");
  if (slash != value.size() && !is_plain && !equalIgnoringCase(form, "packets"))
    refuse(row, value, kAccepted);
  for (PlanOverride& plan : settings.plans) {
    if (!algorithm.empty()) plan.algorithm = pick->second;
    if (slash != value.size()) plan.slots = is_plain ? Form::plain : Form::packets;
  }
}

}  // namespace tutti
