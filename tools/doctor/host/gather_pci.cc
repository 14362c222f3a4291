#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tools/doctor/host/gather.h"
#include "tools/doctor/system.h"

namespace tutti::doctor {
namespace {

constexpr std::size_t kExtended = 0x100;  ///< where extended capabilities begin
constexpr std::size_t kWhole = 0x1000;
constexpr unsigned kAcs = 0x000D;
constexpr unsigned kRequestRedirect = 1U << 2;
constexpr unsigned kCompletionRedirect = 1U << 3;
constexpr long kBridge = 0x0604;

unsigned numberAt(const std::string& bytes, std::size_t at, std::size_t length) {
  unsigned value = 0;
  for (std::size_t i = length; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::string contentsOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool isPassthrough() {
  std::istringstream words(firstLine("/proc/cmdline"));
  for (std::string word; words >> word;) {
    if (word == "iommu=pt" || word == "iommu.passthrough=1") return true;
  }
  return false;
}

}  // namespace

bool redirectsPeers(const std::string& configuration, bool* is_whole) {
  *is_whole = configuration.size() >= kWhole;
  // A list in which each entry names the next, and which a broken device could make endless.
  std::size_t at = kExtended;
  for (int steps = 0; *is_whole && at >= kExtended && at + 8 <= kWhole && steps < 128; ++steps) {
    const unsigned head = numberAt(configuration, at, 4);
    if ((head & 0xffff) == kAcs)
      return (numberAt(configuration, at + 6, 2) & (kRequestRedirect | kCompletionRedirect)) != 0;
    at = head >> 20;
  }
  return false;
}

PciFacts gatherPci() {
  PciFacts facts;
  facts.has_iommu = !entriesOf("/sys/kernel/iommu_groups").empty();
  facts.is_passthrough = isPassthrough();
  for (const auto& device : entriesOf("/sys/bus/pci/devices")) {
    const long kind = std::strtol(firstLine(device / "class").c_str(), nullptr, 16) >> 8;
    if (kind != kBridge) continue;
    bool is_whole = true;
    if (redirectsPeers(contentsOf(device / "config"), &is_whole))
      facts.redirecting.push_back(device.filename().string());
    // Conventional PCI has 256 bytes for everybody; 64 are what a user without rights gets.
    constexpr std::size_t kOfUsers = 64;
    facts.could_read = facts.could_read && (is_whole || contentsOf(device / "config").size() != kOfUsers);
  }
  return facts;
}

}  // namespace tutti::doctor
