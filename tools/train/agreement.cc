#include "tools/train/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "tools/train/errors.h"
#include "tools/train/replica_hash.h"

namespace tutti::train {
namespace {

std::string textAt(const std::vector<std::byte>& all, std::size_t offset) {
  const char* text = reinterpret_cast<const char*>(all.data() + offset);
  return {text, ::strnlen(text, kSettingBytes)};
}

}  // namespace

void requireAgreement(World& world, const std::vector<Setting>& settings) {
  // Values, not hashes, so that the message can show what the other rank has: a few hundred bytes, once.
  std::vector<std::byte> own(settings.size() * kSettingBytes);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::string& value = settings[i].value;
    std::memcpy(own.data() + i * kSettingBytes, value.data(), std::min(value.size(), kSettingBytes));
  }
  const std::vector<std::byte> all = world.gatherBytes(own);

  std::vector<std::uint64_t> hash_of_rank;
  for (std::size_t at = 0; at < all.size(); at += own.size()) {
    hash_of_rank.push_back(hashOf(std::span(all).subspan(at, own.size())));
  }
  const auto odd = findOddRank(hash_of_rank);
  if (!odd) return;

  std::string differences;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const std::string theirs = textAt(all, odd->rank * own.size() + i * kSettingBytes);
    const std::string reference = textAt(all, odd->reference * own.size() + i * kSettingBytes);
    if (theirs == reference) continue;
    differences += fmt::format("{}{}: rank {} has {}, rank {} has {}", differences.empty() ? "" : "; ",
                               settings[i].name, odd->rank, theirs, odd->reference, reference);
  }
  throw SharedFailure(fmt::format(
      "the ranks were started differently: {}; start all ranks with the same data and options", differences));
}

}  // namespace tutti::train
