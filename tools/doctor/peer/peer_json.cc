#include "tools/doctor/peer/peer_json.h"

#include <algorithm>
#include <array>

namespace tutti::doctor {
namespace {

using Json = nlohmann::ordered_json;

/// By the number of the outcome.
constexpr std::array kOutcomes{"untried",  "no_route", "no_answer", "refused", "failed",
                               "stranger", "cut",      "stalls",    "ok"};

/// Numbers of a stranger's making must be finite and not negative.
double numberFrom(const Json& json) {
  constexpr double kMost = 1e12;
  const double number = json.get<double>();
  return number >= 0 && number < kMost ? number : 0;
}

}  // namespace

std::string textFrom(const Json& json) {
  constexpr std::size_t kLongest = 600;
  std::string text = json.get<std::string>().substr(0, kLongest);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return text;
}

Json toJson(const PeerSide& side) {
  return {{"host", side.host},
          {"address", side.address},
          {"port", side.port},
          {"interface", side.interface},
          {"mtu", side.mtu},
          {"has_rdma", side.has_rdma},
          {"why_no_rdma", side.why_no_rdma}};
}

PeerSide sideFrom(const Json& json) {
  PeerSide side;
  side.host = textFrom(json.at("host"));
  side.address = textFrom(json.at("address"));
  side.port = json.at("port").get<std::uint16_t>();
  side.interface = textFrom(json.at("interface"));
  side.mtu = json.at("mtu").get<int>();
  side.has_rdma = json.at("has_rdma").get<bool>();
  side.why_no_rdma = textFrom(json.at("why_no_rdma"));
  return side;
}

Json toJson(const TcpTrial& trial) {
  return {{"outcome", kOutcomes[static_cast<std::size_t>(trial.outcome)]},
          {"words", trial.words},
          {"left_by", trial.left_by},
          {"round_trip_us", trial.round_trip_us},
          {"gbps", trial.gbps},
          {"segments", trial.segments},
          {"sent_again", trial.sent_again}};
}

TcpTrial tcpTrialFrom(const Json& json) {
  TcpTrial trial;
  const auto found = std::ranges::find(kOutcomes, json.at("outcome").get<std::string>());
  if (found != kOutcomes.end()) trial.outcome = static_cast<TcpOutcome>(found - kOutcomes.begin());
  trial.words = textFrom(json.at("words"));
  trial.left_by = textFrom(json.at("left_by"));
  trial.round_trip_us = numberFrom(json.at("round_trip_us"));
  trial.gbps = numberFrom(json.at("gbps"));
  trial.segments = json.at("segments").get<std::uint64_t>();
  trial.sent_again = json.at("sent_again").get<std::uint64_t>();
  return trial;
}

Json toJson(const RdmaTrial& trial) {
  return {{"problem", trial.problem},
          {"small_arrived", trial.small_arrived},
          {"small_acknowledged", trial.small_acknowledged},
          {"large_arrived", trial.large_arrived},
          {"large_acknowledged", trial.large_acknowledged},
          {"status", trial.status},
          {"round_trip_us", trial.round_trip_us},
          {"gbps", trial.gbps}};
}

RdmaTrial rdmaTrialFrom(const Json& json) {
  RdmaTrial trial;
  trial.problem = textFrom(json.at("problem"));
  trial.small_arrived = json.at("small_arrived").get<bool>();
  trial.small_acknowledged = json.at("small_acknowledged").get<bool>();
  trial.large_arrived = json.at("large_arrived").get<bool>();
  trial.large_acknowledged = json.at("large_acknowledged").get<bool>();
  trial.status = textFrom(json.at("status"));
  trial.round_trip_us = numberFrom(json.at("round_trip_us"));
  trial.gbps = numberFrom(json.at("gbps"));
  return trial;
}

Json toJson(const PeerFacts& facts) {
  Json json;
  json["caller"] = toJson(facts.caller);
  json["listener"] = toJson(facts.listener);
  json["tcp"] = {{"to_listener", toJson(facts.to_listener)}, {"to_caller", toJson(facts.to_caller)}};
  json["rdma"] = Json::array();
  for (const RdmaRail& rail : facts.rails) {
    json["rdma"].push_back({{"caller", rail.caller},
                            {"listener", rail.listener},
                            {"path", rail.path},
                            {"to_listener", toJson(rail.to_listener)},
                            {"to_caller", toJson(rail.to_caller)}});
  }
  json["ended"] = facts.ended;
  return json;
}

}  // namespace tutti::doctor
