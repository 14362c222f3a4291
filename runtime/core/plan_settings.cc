// NCCL_ALGO, NCCL_PROTO and TUTTI_PLAN.
//
// NCCL's grammar: LIST for all collectives, or FUNCTION:LIST for one, several of them with ; between, of
// which only the first may be for all: the others are exceptions. A LIST is names with commas between, all
// that are allowed; with ^ before it, all others.
//
// NCCL knows algorithms that Tutti lacks, and the reverse. Ring is the same in both; NCCL's others stand for
// all that is not a ring here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

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

/// A variable whose value is being read, for messages.
struct Reading {
  const SettingRow& row;
  std::string_view value;
  std::span<const std::string_view> names;
};

/// `at`: where in the value, from 0.
[[noreturn]] void refuseAt(const Reading& reading, std::size_t at, std::string_view problem) {
  const auto names = reading.names;
  refuse(reading.row, reading.value,
         fmt::format("names among {}, with commas between, ^ before them for all others, such as \"{}\" or "
                     "\"allreduce:{};broadcast:^{}\"; at character {}: {}",
                     fmt::join(names, ", "), names[0], names[0], names[1], at + 1, problem));
}

/// Calls `take(part, at)` for what stands between separators; `at`: where that begins in the value.
template <class Take>
void forEachPart(std::string_view text, char separator, std::size_t at, const Take& take) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::string_view part = trimmed(text.substr(begin, end - begin));
    take(part, at + (part.empty() ? begin : static_cast<std::size_t>(part.data() - text.data())));
    begin = end + 1;
  }
}

/// The names of a list that begins at `at`, one bit each.
unsigned readList(const Reading& reading, std::string_view list, std::size_t at) {
  const bool excludes = list.starts_with('^');
  if (excludes) list.remove_prefix(1);
  const unsigned all = (1U << reading.names.size()) - 1;
  unsigned named = 0;
  forEachPart(list, ',', at + (excludes ? 1 : 0), [&](std::string_view part, std::size_t where) {
    if (part.empty()) refuseAt(reading, where, "a name is missing");
    const std::size_t place = placeOf(part, reading.names);
    if (place == reading.names.size()) refuseAt(reading, where, fmt::format("\"{}\" is none", part));
    if ((named >> place & 1U) != 0) refuseAt(reading, where, fmt::format("\"{}\" is there twice", part));
    named |= 1U << place;
  });
  const unsigned allowed = excludes ? all & ~named : named;
  if (allowed == 0) refuseAt(reading, at, "the list leaves nothing to choose");
  return allowed;
}

int collectiveOf(const Reading& reading, std::string_view text, std::size_t at) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    if (equalIgnoringCase(text, name(static_cast<Collective>(i)))) return i;
  }
  refuseAt(reading, at, fmt::format("before a colon one of {}", collectiveNames()));
}

/// Calls `take(override, allowed)` for the collectives that each list is about.
template <class Take>
void readLists(Settings& settings, const Reading& reading, const Take& take) {
  if (reading.value.empty()) return;
  unsigned seen = 0;
  bool is_next = false;
  forEachPart(reading.value, ';', 0, [&](std::string_view part, std::size_t at) {
    const bool is_first = !std::exchange(is_next, true);
    if (part.empty() && !is_first && at == reading.value.size()) return;  // a ; at the end
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) {
      if (part.empty()) refuseAt(reading, at, "a list is missing");
      if (!is_first) {
        refuseAt(reading, at,
                 fmt::format("\"{}\" has no collective and colon before it, as all lists but the first must",
                             part));
      }
      const unsigned allowed = readList(reading, part, at);
      for (PlanOverride& plan : settings.plans) take(plan, allowed);
      return;
    }
    const int collective = collectiveOf(reading, trimmed(part.substr(0, colon)), at);
    if ((seen >> collective & 1U) != 0) refuseAt(reading, at, "a second list for the same collective");
    seen |= 1U << collective;
    take(settings.plans[static_cast<std::size_t>(collective)],
         readList(reading, trimmed(part.substr(colon + 1)), at + colon + 1));
  });
}

}  // namespace

void readAlgorithms(Settings& settings, const ActingRow& row, std::string_view value) {
  for (const auto& [text, pick] : kPicks) {  // Tutti's own names
    if (!equalIgnoringCase(text, value)) continue;
    for (PlanOverride& plan : settings.plans) plan.algorithm = pick;
    return;
  }
  constexpr unsigned kRing = 1;
  readLists(settings, {row, value, kAlgorithms}, [](PlanOverride& plan, unsigned allowed) {
    plan.algorithm = allowed == kRing         ? Pick::ring
                     : (allowed & kRing) == 0 ? Pick::not_ring
                                              : Pick::automatic;
  });
}

void readProtocols(Settings& settings, const ActingRow& row, std::string_view value) {
  constexpr unsigned kSimple = 1;
  readLists(settings, {row, value, kProtocols}, [](PlanOverride& plan, unsigned allowed) {
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
