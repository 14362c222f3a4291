#include "tools/doctor/host/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace tutti::doctor {

std::string bytesText(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  const bool is_whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  return fmt::format("{:.{}f} {}", value, is_whole ? 0 : 1, kUnits[unit]);
}

Findings judgeSettings(const HostFacts& facts) {
  constexpr const char* kArea = "Settings";
  Findings findings;
  for (const std::string& warning : facts.settings_warnings) {
    findings.push_back({Level::warning, kArea, "environment", warning, "correct it, or remove it"});
  }
  for (const std::string& problem : facts.settings_problems) {
    findings.push_back(
        {Level::failure, kArea, "environment", problem,
         fmt::format("correct {}: every job with it is refused. What follows is for its default",
                     problem.substr(0, problem.find_first_of("=: ")))});
  }
  if (!facts.joining_problem.empty()) {
    findings.push_back({Level::failure, kArea, "rendezvous", facts.joining_problem,
                        "correct that: ranks that are to meet there are refused (docs/hosts.md)"});
  }
  if (!facts.settings.network.faults.empty()) {
    findings.push_back(
        {Level::warning, kArea, "TUTTI_FAULTS",
         fmt::format("\"{}\": links to other hosts are broken on purpose", facts.settings.network.faults),
         "unset TUTTI_FAULTS: it is for tests"});
  }
  if (const auto& ignored = facts.settings.ignored; !ignored.empty()) {
    findings.push_back({Level::note, kArea, "environment",
                        fmt::format("without effect here: {}", fmt::join(ignored, ", ")),
                        "tutti-doctor --env says why"});
  }
  if (findings.empty()) return {{Level::ok, kArea, "environment", "every variable is understood"}};
  return findings;
}

Findings judge(const HostFacts& facts) {
  const bool has_rdma = !facts.rdma.usable.empty();
  const bool has_devices = !facts.rdma.ports.empty() || facts.gpu.pci_devices > 0;
  Findings all;
  const auto add = [&all](Findings more) { all.insert(all.end(), more.begin(), more.end()); };
  add(judgeSettings(facts));
  add(judgeNetwork(facts.network, facts.settings.network));
  add(judgeRdma(facts.rdma, facts.settings));
  add(judgeLimits(facts.limits, has_rdma));
  add(judgeIsolation(facts.isolation));
  add(judgeGpu(facts.gpu, facts.settings.device, has_rdma));
  add(judgePci(facts.pci, has_devices));
  return all;
}

}  // namespace tutti::doctor
