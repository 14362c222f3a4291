#include "tools/doctor/peer/rdma_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "tools/doctor/peer/peer_json.h"
#include "tools/doctor/peer/rdma_end.h"
#include "tutti/error.h"

namespace tutti::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPorts = 16;
constexpr std::size_t kMostGids = 16;

/// Fixed layouts travel in hexadecimal.
template <class T>
std::string toHex(const T& value) {
  std::string text;
  std::array<std::uint8_t, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

template <class T>
T fromHex(const std::string& text) {
  std::array<std::uint8_t, sizeof(T)> bytes{};
  if (text.size() != 2 * bytes.size()) throw BrokenOff("what the other doctor says makes no sense");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(std::strtoul(text.substr(2 * i, 2).c_str(), nullptr, 16));
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// A port as both doctors know it.
struct KnownPort {
  std::string name;
  bool is_ethernet = false;
  std::vector<Gid> gids;
};

Json portsToJson(const std::vector<VerbsPort>& ports) {
  Json json = Json::array();
  for (const VerbsPort& port : ports) {
    if (json.size() == kMostPorts) break;
    Json gids = Json::array();
    for (const Gid& gid : std::span(port.gids).first(std::min(port.gids.size(), kMostGids)))
      gids.push_back(toHex(gid));
    json.push_back({{"name", port.name()}, {"is_ethernet", port.is_ethernet}, {"gids", gids}});
  }
  return json;
}

std::vector<KnownPort> portsFrom(const Json& json) {
  std::vector<KnownPort> ports;
  for (const Json& port : json) {
    KnownPort known{
        .name = textFrom(port.at("name")), .is_ethernet = port.at("is_ethernet").get<bool>(), .gids = {}};
    for (const Json& gid : port.at("gids")) known.gids.push_back(fromHex<Gid>(gid.get<std::string>()));
    ports.push_back(std::move(known));
  }
  return ports;
}

/// A pair of ports, by their numbers, and the addresses they talk by.
struct Plan {
  std::size_t caller = 0;
  std::optional<std::size_t> listener = {};
  GidPair gids = {};
};

/// For each port of the caller the one that it reaches best. Both doctors come to the same.
std::vector<Plan> planRails(const std::vector<KnownPort>& caller, const std::vector<KnownPort>& listener) {
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < caller.size(); ++i) {
    Plan plan{.caller = i};
    for (std::size_t k = 0; k < listener.size(); ++k) {
      if (caller[i].is_ethernet != listener[k].is_ethernet) continue;
      auto gids = chooseGids(caller[i].gids, listener[k].gids);
      if (!gids || (plan.listener && gids->common_bits <= plan.gids.common_bits)) continue;
      plan.listener = k;
      plan.gids = *std::move(gids);
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

/// One direction of one rail, by fresh queue pairs: one that failed is of no use any more.
RdmaTrial tryDirection(Conversation& conversation, const VerbsPort& port, const Gid& gid,
                       const RdmaSettings& settings, bool is_sender) {
  RdmaTrial trial;
  std::unique_ptr<RdmaEnd> end;
  // Says how far this side came, and hears how far the other did; false where one of them failed.
  const auto agree = [&](const std::function<Json()>& step, Json* theirs) {
    Json mine = {{"problem", ""}};
    try {
      mine["step"] = step();
    } catch (const Error& error) {
      const std::string what = error.what();
      const bool names_port = what.find(port.name().substr(0, port.name().find(':'))) != std::string::npos;
      mine["problem"] = names_port ? what : fmt::format("{}: {}", port.name(), what);
    }
    conversation.send(mine);
    *theirs = conversation.receive();
    const std::string own = mine.at("problem").get<std::string>();
    const std::string other = textFrom(theirs->at("problem"));
    // The sender's first, on both sides.
    const std::string& first = is_sender ? own : other;
    trial.problem = first.empty() ? (is_sender ? other : own) : first;
    return trial.problem.empty();
  };
  Json theirs;
  const auto open = [&] {
    end = std::make_unique<RdmaEnd>(port, gid, settings);
    return Json(toHex(end->target()));
  };
  const auto connect = [&, &heard = theirs] {
    end->connect(fromHex<RdmaTarget>(heard.at("step").get<std::string>()));
    return Json("connected");
  };
  if (!agree(open, &theirs) || !agree(connect, &theirs)) return trial;
  if (is_sender) {
    end->measure(trial);
    conversation.send(toJson(trial));
    return rdmaTrialFrom(conversation.receive());  // with what arrived
  }
  trial = rdmaTrialFrom(conversation.receive());
  end->noteArrived(trial);
  conversation.send(toJson(trial));
  return trial;
}

}  // namespace

struct RdmaTrials::Ports {
  std::vector<VerbsPort> ports;
};

RdmaTrials::RdmaTrials(const Settings& settings)
    : settings_(settings.rdma), ports_(std::make_unique<Ports>()) {
  if (settings.network_choice == NetworkChoice::sockets) {
    why_none_ = "NCCL_NET=Socket or NCCL_IB_DISABLE=1";
    return;
  }
  try {
    VerbsPorts found = findVerbsPorts(settings_);
    ports_->ports = std::move(found.ports);
    why_none_ = found.why_not;
  } catch (const Error& error) {
    why_none_ = error.what();
  }
}

RdmaTrials::~RdmaTrials() = default;

bool RdmaTrials::hasPorts() const { return !ports_->ports.empty(); }

void RdmaTrials::run(Conversation& conversation, bool is_caller, std::vector<RdmaRail>& rails) {
  const Json own = portsToJson(ports_->ports);
  conversation.send(own);
  const std::vector<KnownPort> mine = portsFrom(own);
  const std::vector<KnownPort> theirs = portsFrom(conversation.receive());
  const auto& caller = is_caller ? mine : theirs;
  const auto& listener = is_caller ? theirs : mine;
  for (const Plan& plan : planRails(caller, listener)) {
    RdmaRail& rail = rails.emplace_back();
    rail.caller = caller[plan.caller].name;
    if (!plan.listener) continue;
    rail.listener = listener[*plan.listener].name;
    rail.path = fmt::format("{} and {}", toText(plan.gids.mine), toText(plan.gids.theirs));
    const VerbsPort& port = ports_->ports.at(is_caller ? plan.caller : *plan.listener);
    const Gid& gid = is_caller ? plan.gids.mine : plan.gids.theirs;
    rail.to_listener = tryDirection(conversation, port, gid, settings_, is_caller);
    rail.to_caller = tryDirection(conversation, port, gid, settings_, !is_caller);
  }
}

}  // namespace tutti::doctor
