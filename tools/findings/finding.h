// What a program that checks says: one line about one thing that was looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

/// In the order of their weight.
enum class Level : std::uint8_t {
  ok,
  note,     ///< works, and is worth knowing
  warning,  ///< works, but slowly or not for every job
  failure,  ///< jobs fail, or do without what this host has
};

struct Finding {
  Level level = Level::ok;
  std::string area;   ///< "Network", "RDMA", ...: findings of one area stand together
  std::string check;  ///< "MTU of eth0"
  std::string seen;
  std::string todo = {};  ///< what to do about it; empty where nothing is to be done
};

using Findings = std::vector<Finding>;

}  // namespace tutti
