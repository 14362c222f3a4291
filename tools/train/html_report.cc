#include "tools/train/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/train/json_report.h"
#include "tools/train/plots.h"

namespace tutti::train {
namespace {

using Json = nlohmann::ordered_json;

// Colours of series: Okabe and Ito's, which people with any colour vision can tell apart; lighter on dark.
constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1f23; --soft: #5b636d; --grid: #e3e6ea; --panel: #f6f7f9;
  --good: #00694b; --bad: #b3261e; --agrees: #9ecae8; --differs: #d55e00;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b8579a; --c4: #b58900; --c5: #3b9bd1; --c6: #6f4fa8; --c7: #7a7f87; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e8eaed; --soft: #a5adb8; --grid: #2d333b;
  --panel: #1c2126; --good: #5fd3a6; --bad: #ff8a80; --agrees: #2f6f9c; --differs: #ff9d4d;
  --c0: #4fb3ea; --c1: #ff9d4d; --c2: #35d0a0; --c3: #e79ccb; --c4: #e8c04a; --c5: #8fd0f5; --c6: #b79cf0; --c7: #b6bcc5; } }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 860px; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 0 0 6px; }
.soft, figcaption { color: var(--soft); } figcaption { font-size: 14px; margin-top: 6px; }
.verdict { font-size: 18px; padding: 10px 14px; border-left: 5px solid var(--good); background: var(--panel); }
.verdict.bad { border-color: var(--bad); }
table { border-collapse: collapse; width: 100%; margin: 14px 0; font-size: 15px; }
th, td { text-align: left; vertical-align: top; padding: 5px 10px 5px 0; border-bottom: 1px solid var(--grid); font-weight: normal; }
th { color: var(--soft); white-space: nowrap; width: 1%; padding-right: 20px; } td { overflow-wrap: anywhere; }
figure { margin: 34px 0 0; } svg { display: block; width: 100%; height: auto; }
.legend { list-style: none; margin: 0 0 4px; padding: 0; display: flex; flex-wrap: wrap; gap: 2px 18px; font-size: 14px; }
.swatch { display: inline-block; width: 16px; height: 4px; margin-right: 6px; vertical-align: middle; background: currentColor; }
.swatch.dot, .swatch.square, .swatch.triangle, .swatch.agrees, .swatch.differs { height: 11px; width: 11px; }
.swatch.dot { border-radius: 50%; } .swatch.triangle { clip-path: polygon(50% 0, 100% 100%, 0 100%); }
.swatch.dashed { background: none; border-top: 3px dashed currentColor; height: 0; width: 18px; }
.swatch.mean { color: var(--ink); }
text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--soft); }
text.label, text.words { font-size: 13px; fill: var(--ink); }
.grid { stroke: var(--grid); fill: none; } .axis { stroke: var(--soft); fill: none; }
.rule { stroke: var(--soft); stroke-dasharray: 6 4; fill: none; }
.line { fill: none; stroke: currentColor; stroke-linejoin: round; stroke-linecap: round; } .thin { stroke-width: 1.1; opacity: .75; }
.thick { stroke-width: 2.6; } .line.mean { stroke: var(--ink); stroke-width: 2.4; } .line.dashed { stroke-dasharray: 5 3; }
.mark { fill: currentColor; stroke: var(--paper); stroke-width: 1; }
.agrees { fill: var(--agrees); color: var(--agrees); } .differs { fill: var(--differs); color: var(--differs); }
.s0 { color: var(--c0); } .s1 { color: var(--c1); } .s2 { color: var(--c2); } .s3 { color: var(--c3); }
.s4 { color: var(--c4); } .s5 { color: var(--c5); } .s6 { color: var(--c6); } .s7 { color: var(--c7); }
code { font-size: 14px; }
@media (max-width: 600px) { th { white-space: normal; width: 30%; } figure { overflow-x: auto; } svg { min-width: 580px; } }
)";

std::string row(const std::string& name, const std::string& value) {
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escaped(name), escaped(value));
}

/// "16 on each rank", or, where ranks differ, "4, 400, 4, 400 by rank".
std::string countsText(const Json& counts) {
  if (std::all_of(counts.begin(), counts.end(), [&](const Json& count) { return count == counts[0]; })) {
    return counts[0].dump() + " on each rank";
  }
  std::string result;
  for (const Json& count : counts) result += (result.empty() ? "" : ", ") + count.dump();
  return result + " by rank";
}

/// " on 2 hosts", or nothing for one.
std::string onHosts(const Json& document) {
  const Json& hosts = document.at("configuration").at("hosts");
  return hosts == 1 ? "" : fmt::format(" on {} hosts", hosts.dump());
}

std::string verdict(const Json& document) {
  const bool failed = document.at("failure").is_string();
  const std::string failure = failed ? "Failed: " + document.at("failure").get<std::string>() + ". " : "";
  const std::string equal = document.at("replicas").at("identical").get<bool>()
                                ? fmt::format("All {} replicas were bit-identical after each of {} steps.",
                                              document.at("configuration").at("ranks").dump(),
                                              document.at("timing").at("steps").dump())
                                : "";
  return fmt::format("<p class=\"verdict{}\">{}{}</p>\n", failed ? " bad" : "", escaped(failure), equal);
}

std::string payloadText(const Json& payload, std::size_t nranks) {
  const auto least = payload.at("least_step_bytes").get<std::uint64_t>();
  const auto most = payload.at("most_step_bytes").get<std::uint64_t>();
  const auto gradient = payload.at("gradient_bytes").get<std::uint64_t>();
  if (payload.at("equals_ring").get<bool>()) {
    return fmt::format("{} bytes per step over all ranks: exactly 2(n − 1) = {} times the gradient's {}",
                       grouped(most), 2 * (nranks - 1), grouped(gradient));
  }
  return fmt::format("{} to {} bytes per step over all ranks; the gradient has {}, a ring moves {}",
                     grouped(least), grouped(most), grouped(gradient),
                     grouped(payload.at("ring_step_bytes").get<std::uint64_t>()));
}

std::string betweenHostsText(const Json& payload) {
  const Json& between = payload.at("between_hosts");
  const auto least = between.at("least_step_bytes").get<std::uint64_t>();
  const auto most = between.at("most_step_bytes").get<std::uint64_t>();
  const auto hosts = between.at("hosts").get<std::uint64_t>();
  if (between.at("equals_hierarchical").get<bool>()) {
    return fmt::format("{} of them per step between {} hosts: exactly 2(h − 1) = {} times the gradient's {}",
                       grouped(most), hosts, 2 * (hosts - 1),
                       grouped(payload.at("gradient_bytes").get<std::uint64_t>()));
  }
  // Their processes cannot share memory, as in containers of their own.
  if (hosts == 1)
    return fmt::format("{} to {} of them per step, inside one host", grouped(least), grouped(most));
  return fmt::format("{} to {} of them per step between {} hosts; the hierarchical all-reduce moves {}",
                     grouped(least), grouped(most), hosts,
                     grouped(between.at("hierarchical_step_bytes").get<std::uint64_t>()));
}

std::string verifyText(const Json& verify) {
  if (verify.is_null()) return "not asked for (--verify)";
  const Json& largest = verify.at("largest_relative_difference");
  return fmt::format("{}: largest relative difference of a tensor {}, limit {:.0e}; the loss {}",
                     verify.at("equals_whole_batch").get<bool>() ? "equal" : "NOT equal",
                     largest.is_number() ? fmt::format("{:.2e}", largest.get<double>()) : "not a number",
                     verify.at("limit").get<double>(),
                     verify.at("loss").at("fell").get<bool>() ? "fell" : "did NOT fall");
}

std::string factsTable(const Json& document) {
  const Json& configuration = document.at("configuration");
  const Json& network = configuration.at("network");
  const Json& batch = configuration.at("batch");
  const Json& optimizer = configuration.at("optimizer");
  const Json& timing = document.at("timing");
  const auto nranks = configuration.at("ranks").get<std::size_t>();
  std::string table = "<table>\n";
  table +=
      row("Model",
          fmt::format("next character from the {} before it: {} parameters in {} tensors, {}",
                      network.at("context").dump(), grouped(network.at("parameters").get<std::uint64_t>()),
                      network.at("tensors").size(), configuration.at("dtype").get<std::string>()));
  table += row("Data", fmt::format("{} ({} bytes)", configuration.at("data").at("path").get<std::string>(),
                                   grouped(configuration.at("data").at("bytes").get<std::uint64_t>())));
  table += row("Batch", fmt::format("{} sequences of {} predicted {} per step, {}",
                                    batch.at("sequences").dump(), batch.at("sequence").dump(),
                                    batch.at("sequence") == 1 ? "character" : "characters",
                                    countsText(batch.at("sequences_per_rank"))));
  table += row(
      "Optimizer",
      fmt::format("{}, learning rate {}; gradients averaged: {}", optimizer.at("name").get<std::string>(),
                  optimizer.at("learning_rate").dump(), configuration.at("averaging").get<std::string>()));
  const Json& payload = document.at("payload");
  table += row("Payload", payloadText(payload, nranks));
  if (!payload.at("between_hosts").is_null()) table += row("By the network", betweenHostsText(payload));
  table += row("One process on whole batches", verifyText(document.at("verify")));
  const Json& speed = timing.at("samples_per_second");
  table += row("Speed", speed.is_number()
                            ? fmt::format("{:.0f} sequences per second, checks included", speed.get<double>())
                            : "not measured");
  return table + "</table>\n";
}

/// JSON that may stand inside <script>: no markup in its strings, the same values.
std::string embedded(const Json& document) {
  std::string result;
  for (const char c : textOf(document)) {
    if (c == '<' || c == '>' || c == '&') {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        // Control characters of a path are no XML.
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return result;
}

std::string htmlPage(const Json& document) {
  const std::string title =
      fmt::format("tutti-train: {} replicas", document.at("configuration").at("ranks").dump());
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n";
  page += fmt::format(
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>Do the replicas stay identical?</h1>\n",
      escaped(title), kStyle);
  page += fmt::format("<p class=\"soft\">tutti-train {}: data-parallel training on {} ranks{}</p>\n",
                      escaped(document.at("version").get<std::string>()),
                      document.at("configuration").at("ranks").dump(), onHosts(document));
  page += verdict(document) + factsTable(document);
  page +=
      lossFigure(document) + agreementFigure(document) + trafficFigure(document) + divergenceFigure(document);
  page +=
      "<p class=\"soft\">All numbers are in this page, as JSON: "
      "<code>document.getElementById(\"data\")</code>.</p>\n";
  page += "<script type=\"application/json\" id=\"data\">\n" + embedded(document) +
          "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace tutti::train
