// --explain-traffic: what averaging the gradients of a model moves between devices. Arithmetic only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tutti::train {

struct GradientType {
  const char* name;
  std::size_t bytes;
};

/// The type of that name (fp64, fp32, bf16, fp16, fp8), nullptr for any other.
const GradientType* findGradientType(const std::string& name);
/// "fp64, fp32, bf16, fp16 or fp8"
std::string gradientTypeNames();

struct TrafficQuestion {
  std::uint64_t parameters = 0;
  GradientType type{"fp32", 4};
  std::uint64_t ranks = 0;
  std::uint64_t hosts = 1;        ///< with equally many of the devices each
  std::vector<double> link_gbps;  ///< 10^9 bits per second, in each direction
};

/// Bytes of one averaged step. `per device` are equal on all devices but for the rounding of n blocks.
struct Traffic {
  std::uint64_t gradient_bytes = 0;    ///< S
  double ring_per_device_bytes = 0;    ///< sent, and as many received: 2 (n - 1) / n S
  std::uint64_t ring_total_bytes = 0;  ///< sent by all: 2 (n - 1) S
  std::uint64_t ring_messages = 0;     ///< steps of the ring: 2 (n - 1)
  std::uint64_t exchange_per_device_bytes =
      0;  ///< if each device sent its gradient to every other: (n - 1) S
};

/// Bytes of one averaged step through the networks of several hosts. `per host` are sent, and as many
/// received.
struct HostTraffic {
  double hierarchical_per_host_bytes = 0;      ///< 2 (h - 1) / h S: hosts sum inside, then pass parts round
  std::uint64_t hierarchical_total_bytes = 0;  ///< sent by all hosts: 2 (h - 1) S
  double ring_per_host_bytes = 0;  ///< 2 (n - 1) / n S: one ring of all devices, hosts one after the other
};
HostTraffic hostTrafficOf(const TrafficQuestion& question);

/// Patarasuk, Yuan: "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009.
Traffic trafficOf(const TrafficQuestion& question);

/// The least time that a link needs for `bytes`: latencies and the devices' own work come on top.
double secondsOn(double link_gbps, double bytes);

std::string trafficText(const TrafficQuestion& question);
nlohmann::ordered_json trafficDocument(const TrafficQuestion& question);

/// "14 GB", "176.2 kB", "12 bytes": powers of 1000, up to four digits.
std::string humanBytes(double bytes);

}  // namespace tutti::train
