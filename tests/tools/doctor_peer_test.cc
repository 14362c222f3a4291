// Two doctors in two network namespaces, and what stands between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/harness/namespaces.h"

namespace tutti::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

using DoctorPeers = NamespaceTest;

struct Outcome {
  CommandResult caller;
  CommandResult listener;
};

std::string afterPeer(const std::string& text) {
  const std::size_t at = text.find("tutti-doctor --peer ");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    result.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

/// The doctor of namespace 0 listens, the one of namespace 1 calls it by the line that was printed.
Outcome meet(const Namespaces& hosts, const std::vector<std::string>& more = {},
             const Namespaces::Environment& environment = {}) {
  std::vector<std::string> listen{"tutti-doctor", "--listen", "4711", "--wait", "30"};
  const auto listener = hosts.start(0, listen, environment);
  EXPECT_TRUE(listener->waitForOutput("--token", seconds(20)));
  // Its output so far cannot be had before its end, so it is asked for by a listener that tells no secret.
  EXPECT_TRUE(listener->waitForOutput("\n\n", seconds(20)));
  Outcome outcome;
  std::vector<std::string> call = words(afterPeer(listener->output()));
  call.insert(call.end(), more.begin(), more.end());
  outcome.caller = hosts.run(1, call, environment);
  outcome.listener = listener->wait(seconds(60));
  return outcome;
}

}  // namespace
}  // namespace tutti::test
