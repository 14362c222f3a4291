#include "tools/doctor/peer/peer_check.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>

#include "runtime/core/environment.h"
#include "tools/doctor/peer/judge_peer.h"
#include "tools/doctor/peer/peer_json.h"
#include "tools/doctor/peer/rdma_trial.h"
#include "tools/doctor/peer/tcp_trial.h"
#include "tools/doctor/system.h"
#include "transports/interfaces.h"
#include "transports/listener.h"
#include "transports/socket_address.h"
#include "transports/tcp/sockets.h"
#include "tutti/error.h"

namespace tutti::doctor {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr int kFormat = 1;
constexpr milliseconds kConnectLimit{5000};
constexpr milliseconds kProofLimit{5000};
/// Of the caller, who may come while a stranger has the listener's ear.
constexpr milliseconds kCallerProofLimit{3 * kProofLimit};
/// Longer than a trial may take on the other side.
constexpr milliseconds kTrialLimit{30000};

Settings settingsHere() { return readSettings(Environment::ofProcess()); }

/// What ranks would listen on. Throws Error where the settings leave nothing.
NetAddress chosenAddress(const NetworkSettings& settings) {
  return chooseInterfaces(interfacesHere(), settings).usable.front().address;
}

/// Where ranks of this host would listen: on the way to the other, unless the settings say otherwise.
NetAddress dataAddress(int conversation, const NetworkSettings& settings) {
  NetAddress address = localAddress(conversation);
  address.port = 0;
  if (settings.interfaces.empty() && settings.family.empty()) return address;
  const auto usable = chooseInterfaces(interfacesHere(), settings).usable;
  const bool is_usable = std::ranges::find(usable, address, &Interface::address) != usable.end();
  return is_usable ? address : usable.front().address;
}

PeerSide sideHere(const NetAddress& address, const RdmaTrials& rdma) {
  PeerSide side{.host = hostName(), .address = hostText(address), .port = address.port};
  for (const Interface& interface : interfacesHere()) {
    NetAddress with_port = interface.address;
    with_port.port = address.port;
    if (with_port == address) side.interface = interface.name;
  }
  side.mtu = static_cast<int>(numberIn(fmt::format("/sys/class/net/{}/mtu", side.interface), 0));
  side.has_rdma = rdma.hasPorts();
  side.why_no_rdma = rdma.whyNone();
  return side;
}

DataKey keyFrom(const Json& json) {
  DataKey key{};
  const auto bytes = json.get<std::vector<std::uint8_t>>();
  std::copy_n(bytes.begin(), std::min(bytes.size(), key.size()), key.begin());
  return key;
}

/// The doctors' conversation, from the greeting to the end.
class PeerCheck {
 public:
  PeerCheck(Conversation& conversation, bool is_caller, const Settings& settings)
      : conversation_(conversation), is_caller_(is_caller), settings_(settings), rdma_(settings) {}

  PeerFacts run() {
    try {
      NetAddress address = dataAddress(conversation_.fd(), settings_.network);
      UniqueFd listener =
          listenOn(address, {settings_.network.first_port, settings_.network.last_port}, "TUTTI_PORT_RANGE");
      const DataKey key = makeDataKey();
      const DataServer server(std::move(listener), key);
      greet(address, key);
      tryTcpBothWays();
      if (mine().has_rdma && theirs().has_rdma) rdma_.run(conversation_, is_caller_, facts_.rails);
      part();
    } catch (const std::exception& error) {
      facts_.ended = error.what();
    }
    return std::move(facts_);
  }

 private:
  PeerSide& mine() { return is_caller_ ? facts_.caller : facts_.listener; }
  PeerSide& theirs() { return is_caller_ ? facts_.listener : facts_.caller; }

  void greet(const NetAddress& address, const DataKey& key) {
    mine() = sideHere(address, rdma_);
    theirs().host = theirs().address = hostText(peerAddress(conversation_.fd()));
    conversation_.send({{"format", kFormat},
                        {"version", TUTTI_VERSION},
                        {"side", toJson(mine())},
                        {"data", std::vector<std::uint8_t>(key.begin(), key.end())}});
    const Json greeting = conversation_.receive();
    if (greeting.at("format").get<int>() != kFormat) {
      throw BrokenOff(fmt::format("the other doctor is of Tutti {}, this one of {}: use the same on both",
                                  textFrom(greeting.at("version")), TUTTI_VERSION));
    }
    theirs() = sideFrom(greeting.at("side"));
    their_key_ = keyFrom(greeting.at("data"));
  }

  void tryTcpBothWays() {
    for (const bool is_callers_turn : {true, false}) {
      TcpTrial& trial = is_callers_turn ? facts_.to_listener : facts_.to_caller;
      if (is_callers_turn == is_caller_) {
        NetAddress to = parseNumericHost(theirs().address).value_or(peerAddress(conversation_.fd()));
        // A link-local address means something only with an interface of this host.
        if (isLinkLocal(to)) to = peerAddress(conversation_.fd());
        to.port = theirs().port;
        trial = tryTcp(to, their_key_);
        conversation_.send(toJson(trial));
      } else {
        trial = tcpTrialFrom(conversation_.receive(kTrialLimit));
      }
    }
  }

  /// Neither ends before the other has everything.
  void part() {
    conversation_.send({{"bye", true}});
    conversation_.receive();
  }

  Conversation& conversation_;
  bool is_caller_;
  const Settings& settings_;
  RdmaTrials rdma_;
  DataKey their_key_{};
  PeerFacts facts_;
};

PeerResult resultOf(Conversation& conversation, bool is_caller, const Settings& settings) {
  PeerResult result{
      .findings = {}, .have_met = true, .facts = PeerCheck(conversation, is_caller, settings).run()};
  result.findings = judgePeers(result.facts);
  return result;
}

TcpOutcome outcomeOf(int error) {
  if (error == ECONNREFUSED) return TcpOutcome::refused;
  if (error == ETIMEDOUT) return TcpOutcome::no_answer;
  return error == EHOSTUNREACH || error == ENETUNREACH ? TcpOutcome::no_route : TcpOutcome::failed;
}

}  // namespace

PeerResult listenForPeer(const Options& options, const std::function<void(const std::string&)>& announce) {
  const Settings settings = settingsHere();
  const NetAddress shown = chosenAddress(settings.network);
  NetAddress address = anyAddress(shown);
  address.port = options.port;
  const UniqueFd listener = listenOn(address, {}, "port behind --listen");
  NetAddress reached = shown;
  reached.port = address.port;
  const std::string token = makeToken();
  announce(fmt::format("tutti-doctor --peer {} --token {}", toText(reached), token));

  const auto deadline = Clock::now() + options.patience;
  int strangers = 0;
  while (pollOnce(listener.get(), POLLIN, deadline)) {
    UniqueFd socket = acceptFrom(listener.get());
    if (!socket) continue;
    try {
      Conversation conversation(std::move(socket), token, SecureChannel::Role::server, kProofLimit);
      return resultOf(conversation, false, settings);
    } catch (const BrokenOff&) {
      ++strangers;
    }
  }
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(options.patience);
  return {.findings = {judgeNobodyCame(toText(reached), strangers, waited.count())}};
}

PeerResult callPeer(const Options& options) {
  const Settings settings = settingsHere();
  chosenAddress(settings.network);  // the other doctor is not called in vain
  const int family = settings.network.family == "AF_INET"    ? AF_INET
                     : settings.network.family == "AF_INET6" ? AF_INET6
                                                             : AF_UNSPEC;
  NetAddress to;
  try {
    to = withScopeHere(resolve(options.peer, family, "--peer"), settings.network);
  } catch (const Error& error) {
    return {.findings = {judgeUnreached(TcpOutcome::failed, error.what(), options.peer.host)}};
  }
  const auto unreached = [&](TcpOutcome outcome, const std::string& words) -> PeerResult {
    return {.findings = {judgeUnreached(outcome, words, toText(to))}};
  };
  const auto deadline = Clock::now() + kConnectLimit;
  int error = 0;
  UniqueFd socket = startConnect(to, &error);
  while (socket && (error = connectResult(socket.get())) == EINPROGRESS) {
    if (!pollOnce(socket.get(), POLLOUT, deadline)) return unreached(TcpOutcome::no_answer, "");
  }
  if (error != 0) return unreached(outcomeOf(error), std::strerror(error));
  try {
    Conversation conversation(std::move(socket), options.token, SecureChannel::Role::client,
                              kCallerProofLimit);
    return resultOf(conversation, true, settings);
  } catch (const BrokenOff& broken) {
    return unreached(TcpOutcome::stranger, broken.what());
  }
}

}  // namespace tutti::doctor
