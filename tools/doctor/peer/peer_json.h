// PeerFacts as JSON: for the doctors' conversation and for --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/doctor/peer/peer_facts.h"

namespace tutti::doctor {

nlohmann::ordered_json toJson(const PeerSide& side);
nlohmann::ordered_json toJson(const TcpTrial& trial);
nlohmann::ordered_json toJson(const RdmaTrial& trial);
nlohmann::ordered_json toJson(const PeerFacts& facts);

/// What another doctor said. They throw nlohmann's exceptions where it makes no sense.
PeerSide sideFrom(const nlohmann::ordered_json& json);
TcpTrial tcpTrialFrom(const nlohmann::ordered_json& json);
RdmaTrial rdmaTrialFrom(const nlohmann::ordered_json& json);

/// A text of the other doctor, for people's eyes: printable, and not long.
std::string textFrom(const nlohmann::ordered_json& json);

}  // namespace tutti::doctor
