// Before the first step: do all ranks have the same settings and the same data?
#pragma once

#include <string>
#include <vector>

#include "tools/train/world.h"

namespace tutti::train {

/// A setting as text; of the value, the first kSettingBytes are compared.
struct Setting {
  std::string name;
  std::string value;
};
inline constexpr std::size_t kSettingBytes = 32;

/// Throws SharedFailure, on all ranks, unless all ranks have the same values; it names a rank and, for each
/// setting that differs, both values. All ranks pass the same names in the same order. Collective.
void requireAgreement(World& world, const std::vector<Setting>& settings);

}  // namespace tutti::train
