// Writes by RDMA between two doctors, on every pair of ports that ranks would use.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/core/settings.h"
#include "tools/doctor/peer/conversation.h"
#include "tools/doctor/peer/peer_facts.h"

namespace tutti::doctor {

/// This host's ports. Builds without RDMA have none, and jobs that use TCP use none.
class RdmaTrials {
 public:
  explicit RdmaTrials(const Settings& settings);
  RdmaTrials(const RdmaTrials&) = delete;
  RdmaTrials& operator=(const RdmaTrials&) = delete;
  ~RdmaTrials();

  bool hasPorts() const;
  const std::string& whyNone() const { return why_none_; }

  /// Both doctors call it at the same point of their conversation. Throws BrokenOff.
  void run(Conversation& conversation, bool is_caller, std::vector<RdmaRail>& rails);

 private:
  struct Ports;

  RdmaSettings settings_;
  std::string why_none_;
  std::unique_ptr<Ports> ports_;
};

}  // namespace tutti::doctor
