// tutti-train: shows that data-parallel replicas stay bit-identical.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "tools/device/choice.h"
#include "tools/train/errors.h"
#include "tools/train/options.h"
#include "tools/train/program.h"
#include "tutti/tutti.h"

namespace {

using tutti::train::Mode;

int run(int argc, char** argv) {
  tuttiLaunch_t launch{};
  launch.rank = -1;
  try {
    const auto options = tutti::train::parseOptions(argc, argv);
    if (!options) return 0;
    if (options->mode == Mode::kScaling) return tutti::train::runScaling(*options);
    if (options->mode == Mode::kExplainTraffic) return tutti::train::runExplainTraffic(*options);
    const tutti::device::Devices& devices = tutti::device::chooseDevices(options->device);
    tutti::check(tuttiLaunchFromEnvironment(&launch));
    return tutti::train::runTraining(*options, devices, launch);
  } catch (const tutti::train::UsageError& error) {
    fmt::print(stderr, "tutti-train: {}\n", error.what());
    return tutti::train::kUsage;
  } catch (const std::exception& error) {
    // The library's messages about a communicator begin with "rank R of N" already.
    const bool named = launch.rank < 0 || std::string_view(error.what()).starts_with("rank ");
    const std::string rank = named ? "" : fmt::format("rank {}: ", launch.rank);
    fmt::print(stderr, "tutti-train: {}{}\n", rank, error.what());
    return tutti::train::kFailed;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Whole lines reach the launcher as they are printed.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  return run(argc, argv);
}
