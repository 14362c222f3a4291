// From what two doctors found out to findings. Pure: both sides come to the same.
#pragma once

#include <string>

#include "tools/doctor/peer/peer_facts.h"
#include "tools/findings/finding.h"

namespace tutti::doctor {

Findings judgePeers(const PeerFacts& facts);

/// The caller's connection to the listener did not come about. `where`: "10.0.0.5:29400".
Finding judgeUnreached(TcpOutcome outcome, const std::string& words, const std::string& where);

/// This side cannot take part.
Finding judgeNoStart(const std::string& words);

/// Nobody came. `strangers`: connections that did not prove the token.
Finding judgeNobodyCame(const std::string& where, int strangers, long waited_seconds);

}  // namespace tutti::doctor
