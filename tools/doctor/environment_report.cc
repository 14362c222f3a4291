#include "tools/doctor/environment_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tutti::doctor {
namespace {

VariableReport reportOf(const SettingRow& row, const Environment& environment, bool is_idle) {
  const Environment::Value* given = environment.find(row.name);
  // What is set, but empty, is the default.
  const bool is_default = given == nullptr || given->text.empty();
  VariableReport report{.name = std::string(row.name),
                        .value = is_default ? std::string(row.default_value) : given->text,
                        .origin = given == nullptr ? "default" : given->origin,
                        .acts = !is_idle};
  if (is_idle) report.remark = row.meaning;
  if (is_default) return report;
  const SettingEffect effect = effectOf(row.name, given->text);
  report.acts = effect.acts;
  report.is_refused = !effect.problem.empty();
  if (report.is_refused) report.remark = effect.problem;
  if (!effect.acts && report.remark.empty()) report.remark = "this value has no counterpart here";
  return report;
}

VariableReport reportUnknown(const std::string& name, const Environment::Value& given) {
  const std::string_view meant = closestSetting(name);
  return {.name = name,
          .value = given.text,
          .origin = given.origin,
          .acts = false,
          .remark = meant.empty() ? "unknown" : fmt::format("unknown; did you mean {}?", meant)};
}

}  // namespace

std::vector<VariableReport> reportEnvironment(const Environment& environment) {
  std::vector<VariableReport> reports;
  for (const SettingRow& row : actingSettings()) reports.push_back(reportOf(row, environment, false));
  for (const SettingRow& row : idleSettings()) reports.push_back(reportOf(row, environment, true));
  for (const std::string& name : environment.unknown())
    reports.push_back(reportUnknown(name, *environment.find(name)));
  return reports;
}

std::string toText(const std::vector<VariableReport>& reports) {
  std::size_t name = 0;
  std::size_t value = 0;
  std::size_t origin = 0;
  constexpr std::size_t kWidest = 40;
  for (const VariableReport& report : reports) {
    name = std::max(name, report.name.size());
    value = std::clamp(report.value.size(), value, kWidest);
    origin = std::clamp(report.origin.size(), origin, kWidest);
  }
  std::string text =
      fmt::format("{:{}}  {:{}}  {:{}}  acts\n", "variable", name, "value", value, "from", origin);
  for (const VariableReport& report : reports) {
    const char* acts = report.is_refused ? "REFUSED" : (report.acts ? "yes" : "no");
    text += fmt::format("{:{}}  {:{}}  {:{}}  {}{}{}\n", report.name, name, report.value, value,
                        report.origin, origin, acts, report.remark.empty() ? "" : ": ", report.remark);
  }
  return text;
}

nlohmann::ordered_json toJson(const std::vector<VariableReport>& reports) {
  auto list = nlohmann::ordered_json::array();
  for (const VariableReport& report : reports) {
    list.push_back({{"name", report.name},
                    {"value", report.value},
                    {"from", report.origin},
                    {"acts", report.acts},
                    {"refused", report.is_refused},
                    {"remark", report.remark}});
  }
  return list;
}

}  // namespace tutti::doctor
