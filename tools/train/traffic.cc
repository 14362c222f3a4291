#include "tools/train/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/train/json_report.h"

namespace tutti::train {
namespace {

constexpr std::array kTypes{GradientType{"fp64", 8}, GradientType{"fp32", 4}, GradientType{"bf16", 2},
                            GradientType{"fp16", 2}, GradientType{"fp8", 1}};

std::string humanSeconds(double seconds) {
  if (seconds == 0) return "0 s";
  if (seconds < 1e-6) return fmt::format("{:.3g} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 1000 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.0f} s", seconds);
}

std::string hostText(const TrafficQuestion& question) {
  if (question.hosts == 1) return "";
  const HostTraffic traffic = hostTrafficOf(question);
  const std::uint64_t h = question.hosts;
  return fmt::format(
      "  between hosts  each of {} hosts sends 2(h-1)/h x S = {:.4g} x S = {} where hosts sum inside first,\n"
      "                 all hosts 2(h-1) x S = {}; one ring of all devices: {} from each host\n",
      h, 2.0 * static_cast<double>(h - 1) / static_cast<double>(h),
      humanBytes(traffic.hierarchical_per_host_bytes),
      humanBytes(static_cast<double>(traffic.hierarchical_total_bytes)),
      humanBytes(traffic.ring_per_host_bytes));
}

/// The same by speed of a host's network.
std::string hostTimes(const TrafficQuestion& question) {
  if (question.hosts == 1) return "";
  const HostTraffic traffic = hostTrafficOf(question);
  std::string text =
      fmt::format("\n  {:>12}  {:>10}  {:>13}  {:>16}\n", "host Gbit/s", "GB/s", "hosts, least", "one ring");
  for (const double gbps : question.link_gbps) {
    text += fmt::format("  {:>12}  {:>10.4g}  {:>13}  {:>16}\n", fmt::format("{:g}", gbps), gbps / 8,
                        humanSeconds(secondsOn(gbps, traffic.hierarchical_per_host_bytes)),
                        humanSeconds(secondsOn(gbps, traffic.ring_per_host_bytes)));
  }
  return text;
}

}  // namespace

const GradientType* findGradientType(const std::string& name) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const GradientType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : &*found;
}

std::string gradientTypeNames() {
  std::string names;
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    const char* separator = i == 0 ? "" : (i + 1 == kTypes.size() ? " or " : ", ");
    names += fmt::format("{}{}", separator, kTypes[i].name);
  }
  return names;
}

Traffic trafficOf(const TrafficQuestion& question) {
  Traffic traffic;
  const std::uint64_t others = question.ranks - 1;
  traffic.gradient_bytes = question.parameters * question.type.bytes;
  traffic.ring_messages = 2 * others;
  traffic.ring_total_bytes = 2 * others * traffic.gradient_bytes;
  traffic.ring_per_device_bytes =
      static_cast<double>(traffic.ring_total_bytes) / static_cast<double>(question.ranks);
  traffic.exchange_per_device_bytes = others * traffic.gradient_bytes;
  return traffic;
}

HostTraffic hostTrafficOf(const TrafficQuestion& question) {
  HostTraffic traffic;
  traffic.hierarchical_total_bytes = 2 * (question.hosts - 1) * question.parameters * question.type.bytes;
  traffic.hierarchical_per_host_bytes =
      static_cast<double>(traffic.hierarchical_total_bytes) / static_cast<double>(question.hosts);
  traffic.ring_per_host_bytes = trafficOf(question).ring_per_device_bytes;
  return traffic;
}

double secondsOn(double link_gbps, double bytes) { return bytes * 8 / (link_gbps * 1e9); }

std::string humanBytes(double bytes) {
  constexpr std::array kUnits{"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g} {}", bytes, kUnits[unit]);
}

std::string trafficText(const TrafficQuestion& question) {
  const Traffic traffic = trafficOf(question);
  const auto gradient = static_cast<double>(traffic.gradient_bytes);
  const std::uint64_t n = question.ranks;
  std::string text = fmt::format(
      "tutti-train --explain-traffic: what one step of data-parallel training moves\n"
      "  model          {} parameters, a replica on each of {} device{}\n"
      "  gradient S     {} x {} bytes ({}) = {} per device and step\n",
      question.parameters, n, n == 1 ? "" : "s", question.parameters, question.type.bytes, question.type.name,
      humanBytes(gradient));
  if (n == 1) return text + "  one device     has nobody to average with: nothing crosses the wire\n";
  const double factor = 2.0 * static_cast<double>(n - 1) / static_cast<double>(n);
  text += fmt::format(
      "  ring           each device sends 2(n-1)/n x S = {:.4g} x S = {}, and receives as much,\n"
      "                 in {} messages of S/n = {}; more devices bring it to 2 x S, never beyond\n"
      "  all devices    2(n-1) x S = {} per step\n"
      "  for comparison {} per device, if each sent its gradient to every other: (n-1) x S\n"
      "{}"
      "  no matter      batch size, sequence length and time per step: only S and n count\n\n"
      "  {:>12}  {:>10}  {:>13}  {:>16}\n",
      factor, humanBytes(traffic.ring_per_device_bytes), traffic.ring_messages,
      humanBytes(gradient / static_cast<double>(n)),
      humanBytes(static_cast<double>(traffic.ring_total_bytes)),
      humanBytes(static_cast<double>(traffic.exchange_per_device_bytes)), hostText(question), "link Gbit/s",
      "GB/s", "ring, at least", "all to all");
  for (const double gbps : question.link_gbps) {
    text +=
        fmt::format("  {:>12}  {:>10.4g}  {:>14}  {:>15}\n", fmt::format("{:g}", gbps), gbps / 8,
                    humanSeconds(secondsOn(gbps, traffic.ring_per_device_bytes)),
                    humanSeconds(secondsOn(gbps, static_cast<double>(traffic.exchange_per_device_bytes))));
  }
  return text + hostTimes(question) +
         "\n  Speeds are of one device's link, in each direction. The times are what its bandwidth allows; "
         "latency and\n"
         "  protocols come on top, and averaging while gradients are still computed hides part of it.\n";
}

nlohmann::ordered_json trafficDocument(const TrafficQuestion& question) {
  const Traffic traffic = trafficOf(question);
  nlohmann::ordered_json document = startDocument("explain-traffic");
  document["parameters"] = question.parameters;
  document["dtype"] = question.type.name;
  document["element_bytes"] = question.type.bytes;
  document["ranks"] = question.ranks;
  document["gradient_bytes"] = traffic.gradient_bytes;
  document["ring"] = {{"sent_per_device_bytes", traffic.ring_per_device_bytes},
                      {"sent_by_all_bytes", traffic.ring_total_bytes},
                      {"messages_per_device", traffic.ring_messages}};
  if (question.hosts > 1) {
    const HostTraffic hosts = hostTrafficOf(question);
    document["hosts"] = {{"hosts", question.hosts},
                         {"hierarchical_sent_per_host_bytes", hosts.hierarchical_per_host_bytes},
                         {"hierarchical_sent_by_all_bytes", hosts.hierarchical_total_bytes},
                         {"ring_sent_per_host_bytes", hosts.ring_per_host_bytes}};
  }
  document["exchange"] = {{"sent_per_device_bytes", traffic.exchange_per_device_bytes}};
  document["links"] = nlohmann::ordered_json::array();
  for (const double gbps : question.link_gbps) {
    document["links"].push_back(
        {{"gbps", gbps},
         {"ring_seconds", secondsOn(gbps, traffic.ring_per_device_bytes)},
         {"exchange_seconds", secondsOn(gbps, static_cast<double>(traffic.exchange_per_device_bytes))}});
  }
  return document;
}

}  // namespace tutti::train
