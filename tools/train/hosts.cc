#include "tools/train/hosts.h"

#include <array>
#include <fstream>
#include <span>
#include <string>

#include "runtime/core/environment.h"
#include "tools/train/replica_hash.h"

namespace tutti::train {
namespace {

std::string hostName() {
  std::string name = readSettings(Environment::ofProcess()).network.host_id;
  if (name.empty()) std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
  return name;
}

}  // namespace

std::size_t countHosts(World& world) {
  const std::string name = hostName();
  return countDistinct(world.gatherWords(std::array{hashOf(std::as_bytes(std::span(name)))}));
}

}  // namespace tutti::train
