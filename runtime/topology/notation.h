// How the files write bus ids, link speeds and sets of CPUs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// "0000:3b:00.0" from what files and tools write: upper case, no domain, a domain of eight digits. nullopt:
/// none.
std::optional<std::string> busIdOf(std::string_view text);

/// Transfers per lane (10^9 per second) from "16.0 GT/s PCIe", "8 GT/s"; 0: empty or "Unknown ...". nullopt:
/// not a speed.
std::optional<double> linkSpeedOf(std::string_view text);

/// CPUs from words of 32 bits in base 16, the highest first ("000000ff,ffff0000"), each also with "0x", empty
/// words being zero. nullopt: not a mask, or of more than 65536 CPUs.
std::optional<std::vector<int>> cpusOfMask(std::string_view text);
/// The reverse, eight digits a word.
std::string maskOfCpus(const std::vector<int>& cpus);

/// CPUs from "0-7,64-71". nullopt: not a list, not ascending, or of a CPU above 65535.
std::optional<std::vector<int>> cpusOfList(std::string_view text);
std::string listOfCpus(const std::vector<int>& cpus);

}  // namespace tutti
