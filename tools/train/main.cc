// tutti-train: shows that data-parallel replicas stay bit-identical.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "tools/train/agreement.h"
#include "tools/train/errors.h"
#include "tools/train/options.h"
#include "tools/train/train.h"
#include "tutti/tutti.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int runRank(const tutti::train::Options& options, const tuttiLaunch_t& launch) {
  tutti::train::checkAgainstRanks(options, static_cast<std::size_t>(launch.nranks));
  const tutti::train::Corpus corpus = tutti::train::loadCorpus(options.data, options.context);
  tutti::Comm comm(launch.nranks, launch.id, launch.rank);
  try {
    tutti::train::requireAgreement(comm, tutti::train::settingsToAgreeOn(options, corpus));
    tutti::train::train(comm, options, corpus);
  } catch (const tutti::train::SharedFailure& failure) {
    if (launch.rank == 0) fmt::print(stderr, "tutti-train: {}\n", failure.what());
    // A launcher stops all ranks when the first one fails: none leaves before rank 0 has spoken.
    comm.barrier();
    return kFailed;
  }
  return 0;
}

int run(int argc, char** argv) {
  tuttiLaunch_t launch{};
  launch.rank = -1;
  try {
    const auto options = tutti::train::parseOptions(argc, argv);
    if (!options) return 0;
    tutti::check(tuttiLaunchFromEnvironment(&launch));
    return runRank(*options, launch);
  } catch (const tutti::train::UsageError& error) {
    fmt::print(stderr, "tutti-train: {}\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    // The library's messages about a communicator begin with "rank R of N" already.
    const bool named = launch.rank < 0 || std::string_view(error.what()).starts_with("rank ");
    const std::string rank = named ? "" : fmt::format("rank {}: ", launch.rank);
    fmt::print(stderr, "tutti-train: {}{}\n", rank, error.what());
    return kFailed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Whole lines reach the launcher as they are printed.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  return run(argc, argv);
}
