#include "tools/findings/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tutti {
namespace {

constexpr std::size_t kLineWidth = 110;
constexpr std::size_t kMostCheckWidth = 28;
constexpr std::size_t kLevelWidth = 7;

const char* nameOf(Level level) {
  switch (level) {
    case Level::ok:
      return "ok";
    case Level::note:
      return "note";
    case Level::warning:
      return "warning";
    case Level::failure:
      return "failure";
  }
  return "";
}

std::size_t countOf(const Findings& findings, Level level) {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &Finding::level));
}

/// `text` in lines that end at kLineWidth, all but the first indented.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column != indent && column + 1 + word.size() > kLineWidth) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column != indent) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return result;
}

std::string lineOf(const Finding& finding, std::size_t check_width) {
  const std::size_t indent = 2 + kLevelWidth + 2 + check_width + 2;
  std::string text = fmt::format("  {:<{}}  {:<{}}  {}\n", nameOf(finding.level), kLevelWidth, finding.check,
                                 check_width, wrapped(finding.seen, indent));
  if (!finding.todo.empty())
    text += fmt::format("{:{}}> {}\n", "", indent, wrapped(finding.todo, indent + 2));
  return text;
}

std::size_t checkWidth(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.check.size());
  return std::min(width, kMostCheckWidth);
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string summary(const Findings& findings) {
  std::string text =
      fmt::format("{}, {}, {}, {} ok.", counted(countOf(findings, Level::failure), "failure"),
                  counted(countOf(findings, Level::warning), "warning"),
                  counted(countOf(findings, Level::note), "note"), countOf(findings, Level::ok));
  if (worst(findings) < Level::warning) return text + " Nothing to do.\n";
  const std::size_t bad = countOf(findings, Level::failure) + countOf(findings, Level::warning);
  if (bad == findings.size()) return text + '\n';  // they are in sight
  text += " What to do, the worst first:\n";
  for (const Level level : {Level::failure, Level::warning}) {
    for (const Finding& finding : findings) {
      if (finding.level != level) continue;
      const std::string head = fmt::format("  {:<{}}  ", nameOf(level), kLevelWidth);
      text += head +
              wrapped(fmt::format("{}, {}: {}", finding.area, finding.check, finding.todo), head.size()) +
              '\n';
    }
  }
  return text;
}

}  // namespace

Level worst(const Findings& findings) {
  const auto found = std::ranges::max_element(findings, {}, &Finding::level);
  return found == findings.end() ? Level::ok : found->level;
}

int exitStatus(const Findings& findings) {
  constexpr int kWarnings = 1;
  constexpr int kFailures = 2;
  if (worst(findings) == Level::failure) return kFailures;
  return worst(findings) == Level::warning ? kWarnings : 0;
}

std::string toText(const std::string& title, const Findings& findings) {
  std::string text = title + '\n';
  std::vector<std::string> areas;
  for (const Finding& finding : findings) {
    if (std::ranges::find(areas, finding.area) == areas.end()) areas.push_back(finding.area);
  }
  const std::size_t width = checkWidth(findings);
  for (const std::string& area : areas) {
    text += '\n' + area + '\n';
    for (const Finding& finding : findings) {
      if (finding.area == area) text += lineOf(finding, width);
    }
  }
  return text + '\n' + summary(findings);
}

nlohmann::ordered_json toJson(const std::string& host, const std::string& kind, const Findings& findings) {
  nlohmann::ordered_json json;
  json["format"] = 1;
  json["version"] = TUTTI_VERSION;
  json["host"] = host;
  json["kind"] = kind;
  json["status"] = worst(findings) < Level::warning ? "ok" : nameOf(worst(findings));
  json["exit_status"] = exitStatus(findings);
  for (const Level level : {Level::ok, Level::note, Level::warning, Level::failure})
    json["counts"][nameOf(level)] = countOf(findings, level);
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json["findings"].push_back({{"level", nameOf(finding.level)},
                                {"area", finding.area},
                                {"check", finding.check},
                                {"seen", finding.seen},
                                {"todo", finding.todo}});
  }
  return json;
}

}  // namespace tutti
