// From the text of an option's value to the value. All throw UsageError with the option, its value and what
// is accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/training.h"

namespace tutti::train {

std::size_t countWithin(const char* name, std::int64_t value, std::int64_t low, std::int64_t high);

/// Whether `value` is `second`; it must be one of the two.
bool choose(const char* name, const std::string& value, const char* first, const char* second);

/// RANK:STEP, with a step of 1 to `steps`.
Fault parseFault(const std::string& text, std::size_t steps);

std::uint64_t parseSeed(const std::string& text);

/// A whole number of 1 to 10^13, also written as 7e9 or 1.3e9.
std::uint64_t parseParameters(const std::string& text);

/// Comma-separated speeds.
std::vector<double> parseLinkGbps(const std::string& text);

}  // namespace tutti::train
