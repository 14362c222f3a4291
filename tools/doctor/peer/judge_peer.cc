#include "tools/doctor/peer/judge_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "transports/socket_address.h"

namespace tutti::doctor {
namespace {

constexpr const char* kTcp = "TCP";
constexpr const char* kRdma = "RDMA";

/// "node7 (10.0.0.5)"; of two doctors on one host, which of them.
std::string nameOf(const PeerFacts& facts, const PeerSide& side) {
  if (facts.caller.host == facts.listener.host && facts.caller.address == facts.listener.address)
    return &side == &facts.caller ? "the caller" : "the listener";
  return fmt::format("{} ({})", side.host, side.address);
}

/// What tells a side from the other, as short as can be.
std::string shortName(const PeerFacts& facts, const PeerSide& side) {
  if (facts.caller.host != facts.listener.host) return side.host;
  if (facts.caller.address != facts.listener.address) return side.address;
  return &side == &facts.caller ? "caller" : "listener";
}

std::string wayText(const PeerFacts& facts, const PeerSide& from, const PeerSide& to) {
  return fmt::format("{} -> {}", shortName(facts, from), shortName(facts, to));
}

std::string speedText(double round_trip_us, double gbps) {
  return fmt::format("round trip {:.{}f} us, {:.3g} Gbit/s", round_trip_us, round_trip_us < 10 ? 1 : 0, gbps);
}

/// One direction of TCP, and what is known of the other.
struct Direction {
  Direction(const PeerFacts& facts, bool is_to_listener)
      : from(is_to_listener ? facts.caller : facts.listener),
        to(is_to_listener ? facts.listener : facts.caller),
        trial(is_to_listener ? facts.to_listener : facts.to_caller),
        is_other_ok((is_to_listener ? facts.to_caller : facts.to_listener).outcome == TcpOutcome::ok),
        has_ended(!facts.ended.empty()),
        check(wayText(facts, from, to)),
        from_name(nameOf(facts, from)),
        to_name(nameOf(facts, to)) {}

  const PeerSide& from;
  const PeerSide& to;
  const TcpTrial& trial;
  bool is_other_ok;
  bool has_ended;  ///< the doctors' conversation, too
  std::string check;
  std::string from_name;
  std::string to_name;
};

/// Behind a failure: what the other direction says about whose fault it is.
std::string otherWay(const Direction& d) {
  return d.is_other_ok
             ? fmt::format(
                   "; the other way it works, so the fault is in what {} lets in, or in what {} lets out",
                   d.to_name, d.from_name)
             : "";
}

std::string openPorts(const std::string& name) {
  return fmt::format("on {}, and on the way: let TCP in on the ports of TUTTI_PORT_RANGE (unset: on any)",
                     name);
}

bool isLoopbackText(const std::string& address) {
  const auto numeric = parseNumericHost(address);
  return numeric && isLoopback(*numeric);
}

std::string cutRemedy(const Direction& d) {
  return fmt::format(
      "see whether a doctor was ended, whether the link stays up (ip -s link, dmesg) on {} and "
      "{}, and whether something between them ends connections; try again",
      d.from_name, d.to_name);
}

Finding judgeFailed(const Direction& d) {
  const auto say = [&](const std::string& seen, const std::string& todo) -> Finding {
    return {Level::failure, kTcp, d.check, seen, todo};
  };
  const std::string port = fmt::format("port {}", d.to.port);
  if (isLoopbackText(d.to.address) && !isLoopbackText(d.from.address)) {
    return say(
        fmt::format("{} accepts data on the loopback interface only, which no other host reaches", d.to_name),
        fmt::format("on {}: name the interface that leads to {} in NCCL_SOCKET_IFNAME, or unset it",
                    d.to_name, d.from_name));
  }
  switch (d.trial.outcome) {
    case TcpOutcome::no_route:
      return say(
          fmt::format("{} has no way there: {}{}", d.from_name, d.trial.words, otherWay(d)),
          fmt::format("on {}: ip route get {}; where that is right, a packet filter on {} or between says no "
                      "(firewalld does it so): let TCP in on the ports of TUTTI_PORT_RANGE; else add a "
                      "route, or have both use a network that they share (NCCL_SOCKET_IFNAME)",
                      d.from_name, d.to.address, d.to_name));
    case TcpOutcome::no_answer:
      return say(fmt::format("no answer from {}: filtered{}", port, otherWay(d)),
                 openPorts(d.to_name) + "; a packet filter drops them without a word");
    case TcpOutcome::refused:
      return say(
          fmt::format("{} is refused, though a doctor listens there{}", port, otherWay(d)),
          openPorts(d.to_name) + "; a packet filter rejects them, or another machine has that address");
    case TcpOutcome::stranger:
      return say(
          fmt::format("{} accepts, but nothing comes back{}", port, otherWay(d)),
          fmt::format("see who has {}: a proxy, NAT, or a second machine with that address", d.to.address));
    case TcpOutcome::cut:
      return say(fmt::format("small messages pass, then the connection broke off: {}", d.trial.words),
                 cutRemedy(d));
    case TcpOutcome::stalls:
      if (d.has_ended)
        return say("small messages pass, then nothing any more, on no connection", cutRemedy(d));
      return say(
          fmt::format("small messages pass, 256 KiB do not: large frames are lost on the way (MTU {} at {}, "
                      "{} at {})",
                      d.from.mtu, d.from_name, d.to.mtu, d.to_name),
          "set the same MTU on both hosts and all switches between, no larger than the smallest, and let "
          "ICMP \"fragmentation needed\" through");
    case TcpOutcome::untried:
      return {Level::warning, kTcp, d.check, "not tried: the doctors' conversation had ended", "see below"};
    default:
      return say(fmt::format("connecting to {}: {}", port, d.trial.words),
                 fmt::format("on {}: ip route get {}", d.from_name, d.to.address));
  }
}

Findings judgeTcp(const Direction& d) {
  if (d.trial.outcome != TcpOutcome::ok) return {judgeFailed(d)};
  Findings findings{{Level::ok, kTcp, d.check, speedText(d.trial.round_trip_us, d.trial.gbps)}};
  if (d.trial.left_by != d.from.address) {
    findings.push_back(
        {Level::warning, kTcp, d.check,
         fmt::format("leaves {} by {}, not by {}: the route leads over another interface than the one chosen",
                     d.check.substr(0, d.check.find(' ')), d.trial.left_by, d.from.address),
         fmt::format("on {}: ip route get {}; correct the route, or NCCL_SOCKET_IFNAME", d.from_name,
                     d.to.address)});
  }
  constexpr std::uint64_t kOften = 100;  // one in so many
  constexpr std::uint64_t kEnough = 50;
  if (d.trial.sent_again >= kEnough && d.trial.sent_again * kOften > d.trial.segments) {
    findings.push_back(
        {Level::warning, kTcp, d.check,
         fmt::format("{} of {} segments had to be sent again", d.trial.sent_again, d.trial.segments),
         fmt::format("look for losses: ethtool -S {} on {}, cables, duplex, switch buffers",
                     d.from.interface.empty() ? "INTERFACE" : d.from.interface, d.from.host)});
  }
  return findings;
}

Findings judgeDifferences(const PeerFacts& facts) {
  Findings findings;
  constexpr double kFar = 3;
  const double there = facts.to_listener.gbps;
  const double back = facts.to_caller.gbps;
  const std::string check =
      fmt::format("{} <-> {}", shortName(facts, facts.caller), shortName(facts, facts.listener));
  if (there > 0 && back > 0 && std::max(there, back) > kFar * std::min(there, back)) {
    const PeerSide& slow = there < back ? facts.caller : facts.listener;
    findings.push_back(
        {Level::note, kTcp, check,
         fmt::format("what {} sends is {:.1f} times slower than what it receives", nameOf(facts, slow),
                     std::max(there, back) / std::min(there, back)),
         fmt::format("try again when both are idle; then look at {}: qdisc, duplex, load", slow.host)});
  }
  if (facts.caller.mtu != facts.listener.mtu && facts.caller.mtu > 0 && facts.listener.mtu > 0) {
    findings.push_back({Level::note, kTcp, check,
                        fmt::format("MTU {} at {}, {} at {}", facts.caller.mtu, nameOf(facts, facts.caller),
                                    facts.listener.mtu, nameOf(facts, facts.listener)),
                        "set the same on both, as far as the switches allow"});
  }
  return findings;
}

/// Both directions of a rail; each is told by what arrived and what was acknowledged.
class RailJudge {
 public:
  RailJudge(const PeerFacts& facts, const RdmaRail& rail) : facts_(facts), rail_(rail) {
    check_ = fmt::format("{} <-> {}", rail.caller, rail.listener.empty() ? "none" : rail.listener);
  }

  Findings judge() const {
    if (rail_.listener.empty()) return {unpaired()};
    const RdmaTrial& there = rail_.to_listener;
    const RdmaTrial& back = rail_.to_caller;
    if (!there.problem.empty() || !back.problem.empty()) {
      return {finding(Level::failure, there.problem.empty() ? back.problem : there.problem,
                      "see to what it says; `tutti-doctor` on the host of that device tells more")};
    }
    if (!there.small_arrived && back.small_arrived) return {oneWay(facts_.caller, facts_.listener, back)};
    if (there.small_arrived && !back.small_arrived) return {oneWay(facts_.listener, facts_.caller, there)};
    if (!there.small_arrived) return {noWay()};
    return {direction(facts_.caller, facts_.listener, there),
            direction(facts_.listener, facts_.caller, back)};
  }

 private:
  Finding finding(Level level, const std::string& seen, const std::string& todo) const {
    return {level, kRdma, check_, seen, todo};
  }

  /// The library takes RDMA where every rank has a port, whether they reach each other or not.
  Finding unpaired() const {
    const bool is_any_paired =
        std::ranges::any_of(facts_.rails, [](const RdmaRail& rail) { return !rail.listener.empty(); });
    return finding(
        is_any_paired ? Level::warning : Level::failure,
        fmt::format("no port of {} has an address that goes with it{}", nameOf(facts_, facts_.listener),
                    is_any_paired ? "" : ", nor with another one: jobs fail"),
        "give both ports addresses of one network and family (NCCL_IB_HCA, NCCL_IB_GID_INDEX, "
        "NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE)");
  }

  /// "mlx5_0:1 of node7 (10.0.0.5)".
  std::string portOf(const PeerSide& side) const {
    return fmt::format("{} of {}", &side == &facts_.caller ? rail_.caller : rail_.listener,
                       nameOf(facts_, side));
  }

  /// Nothing arrives at `to`: neither writes nor the acknowledgements of its own.
  Finding oneWay(const PeerSide& from, const PeerSide& to, const RdmaTrial& other) const {
    return finding(
        Level::failure,
        fmt::format("what {} sends does not arrive at {}; the other way writes arrive{} (by {})",
                    portOf(from), portOf(to),
                    other.small_acknowledged ? "" : ", but their acknowledgements are lost", rail_.path),
        fmt::format("open UDP port 4791 (RoCE v2) into {}, and on the way; then see that PFC is set on "
                    "both sides of every switch",
                    portOf(to)));
  }

  Finding noWay() const {
    return finding(
        Level::failure,
        fmt::format("connects, but no data arrives on either side, {}: {}", rail_.path,
                    rail_.to_listener.status),
        "open UDP port 4791 (RoCE v2) on both hosts and between; see that both GIDs are of one network "
        "and VLAN (NCCL_IB_GID_INDEX), and that both ports have the same partition key");
  }

  Finding direction(const PeerSide& from, const PeerSide& to, const RdmaTrial& trial) const {
    const std::string way = wayText(facts_, from, to) + ": ";
    if (trial.large_acknowledged && trial.large_arrived)
      return finding(Level::ok, way + speedText(trial.round_trip_us, trial.gbps), "");
    if (trial.small_acknowledged) {
      return finding(
          Level::failure, way + "8 bytes pass, 256 KiB do not: " + trial.status,
          "the path does not carry the ports' MTU: set the same on both interfaces and all switches, or "
          "lower it on both; then look at PFC");
    }
    return finding(
        Level::failure, way + "writes arrive, but are not acknowledged: " + trial.status,
        fmt::format("look for losses from {} to {}: firewall (UDP 4791), PFC", portOf(to), portOf(from)));
  }

  const PeerFacts& facts_;
  const RdmaRail& rail_;
  std::string check_;
};

Findings judgeRdmaTrials(const PeerFacts& facts) {
  const PeerSide& caller = facts.caller;
  const PeerSide& listener = facts.listener;
  if (caller.has_rdma && listener.has_rdma) {
    Findings findings;
    for (const RdmaRail& rail : facts.rails) {
      for (Finding& finding : RailJudge(facts, rail).judge()) findings.push_back(std::move(finding));
    }
    return findings;
  }
  if (!caller.has_rdma && !listener.has_rdma)
    return {{Level::note, kRdma, "ports", "neither host has one that can be used: TCP carries everything"}};
  const PeerSide& without = caller.has_rdma ? listener : caller;
  return {{Level::warning, kRdma, "ports",
           fmt::format("only one host has RDMA, so TCP carries everything. {}: {}", nameOf(facts, without),
                       without.why_no_rdma),
           fmt::format("run tutti-doctor on {}, which says what it needs", without.host)}};
}

}  // namespace

Findings judgePeers(const PeerFacts& facts) {
  Findings findings = judgeTcp(Direction(facts, true));
  const auto add = [&findings](Findings more) { findings.insert(findings.end(), more.begin(), more.end()); };
  add(judgeTcp(Direction(facts, false)));
  add(judgeDifferences(facts));
  if (facts.ended.empty()) {
    add(judgeRdmaTrials(facts));
  } else {
    add({{Level::failure, kTcp, "conversation", fmt::format("it broke off: {}", facts.ended),
          "correct what is wrong above, and try again; if nothing is, see what the other doctor printed"}});
  }
  return findings;
}

Finding judgeUnreached(TcpOutcome outcome, const std::string& words, const std::string& where) {
  const auto say = [&](const std::string& seen, const std::string& todo) -> Finding {
    return {Level::failure, kTcp, where, seen, todo};
  };
  switch (outcome) {
    case TcpOutcome::refused:
      return say(
          "refused: the host is there, but nobody listens on that port of that address",
          "start `tutti-doctor --listen` there; if it runs, call the address and port that it printed, "
          "and see whether a packet filter rejects: open that port");
    case TcpOutcome::no_answer:
      return say(
          "no answer: the host is down, has another address, or a packet filter drops what comes",
          "ping it; open that port on it and between; on the right network? (NCCL_SOCKET_IFNAME there)");
    case TcpOutcome::no_route:
      return say(fmt::format("there is no way to it: {}", words),
                 "see `ip route get` for its address here, whether it is up on this network, and whether a "
                 "packet filter there or between says no (firewalld does it so): open that port");
    case TcpOutcome::stranger:
      return say(words, "take the line that the listener printed, token included; each is good for one time");
    default:
      return say(words, "correct that, and try again");
  }
}

Finding judgeNoStart(const std::string& words) {
  return {Level::failure, kTcp, "this host", words,
          "correct that, and try again; `tutti-doctor` alone looks at this host"};
}

Finding judgeNobodyCame(const std::string& where, int strangers, long waited_seconds) {
  const std::string waited = fmt::format("no peer came in {} s", waited_seconds);
  if (strangers > 0) {
    return {Level::failure, kTcp, where,
            fmt::format("{}, {} connection(s) did not know the token", waited, strangers),
            "give the peer the token that was printed"};
  }
  return {Level::failure, kTcp, where, waited,
          "run the printed line on the other host; if it says there is no answer, open this port here"};
}

}  // namespace tutti::doctor
