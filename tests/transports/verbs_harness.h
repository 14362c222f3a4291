// Ranks of an RDMA network over devices in memory, as threads of one process.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/transports/conversation.h"
#include "tests/transports/fake_verbs.h"
#include "transports/verbs/verbs_network.h"

namespace tutti::test {

/// Rank r has the ports "rRp0", "rRp1", ..., 10.0.P.(R+1). Letters go from network to network.
class VerbsCluster {
 public:
  /// What becomes of a letter on its way; false: it is lost.
  using Tamper = std::function<bool(int from, int to, RdmaNetwork::Letter& letter)>;

  explicit VerbsCluster(const RdmaOptions& options, int ranks = 2, int ports = 1, bool is_ethernet = true)
      : reports_(index(ranks)) {
    Fabric& fabric = Fabric::fresh();
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<VerbsPort> own;
      own.reserve(index(ports));
      for (int port = 0; port < ports; ++port) {
        own.push_back(fabric.makePort(fmt::format("r{}p{}", rank, port),
                                      fmt::format("10.0.{}.{}", port, rank + 1), is_ethernet));
      }
      RdmaOptions mine = options;
      mine.rank = rank;
      mine.recovery = recoveryFor(mine);
      for (int peer = 0; peer < ranks; ++peer)
        mine.peers.push_back(peer == rank ? "" : fmt::format("rank {} (on host {})", peer, peer));
      Reports& reports = reports_[index(rank)];
      mine.fail = [&reports](ncclResult_t code, const std::string& text) {
        reports.failures.add(code == ncclRemoteError ? text : "wrong code: " + text);
      };
      mine.note = [&reports](const std::string& text) { reports.notes.add(text); };
      networks_.push_back(std::make_unique<VerbsNetwork>(std::move(own), mine));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      networks_[index(rank)]->tellBy([this, rank](int to, RdmaNetwork::Letter letter) {
        if (!tamper || tamper(rank, to, letter)) networks_[index(to)]->hear(rank, letter);
      });
    }
  }

  VerbsNetwork& operator[](int rank) const { return *networks_[index(rank)]; }

  std::vector<std::string> failuresOf(int rank) const { return reports_[index(rank)].failures.all(); }
  std::vector<std::string> failed() const { return gather(&Reports::failures); }
  std::string notes() const {
    std::string all;
    for (const std::string& note : gather(&Reports::notes)) all += note + "\n";
    return all;
  }

  Tamper tamper;

 private:
  struct Reports {
    Failures failures;
    Failures notes;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  std::vector<std::string> gather(Failures Reports::*which) const {
    std::vector<std::string> all;
    for (const Reports& reports : reports_) {
      for (const std::string& text : (reports.*which).all()) all.push_back(text);
    }
    return all;
  }

  std::vector<Reports> reports_;
  std::vector<std::unique_ptr<VerbsNetwork>> networks_;
};

}  // namespace tutti::test
