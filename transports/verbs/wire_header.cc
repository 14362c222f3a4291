#include "transports/verbs/wire_header.h"

#include <xxhash.h>

namespace tutti {
namespace {

std::uint64_t checkOf(SlotHeader header, std::span<const std::byte> data, bool checksum) {
  header.from = checksum ? XXH3_64bits(data.data(), data.size()) : 0;
  return XXH3_64bits(&header, sizeof(header));
}

}  // namespace

SlotHeader toWireHeader(const SlotHeader& header, const std::optional<ResultPlace>& result,
                        std::span<const std::byte> data, bool checksum) {
  SlotHeader wire = header;
  wire.kind = SlotKind::inline_data;
  wire.from_region = header.kind != SlotKind::inline_data || header.returns != 0 ? kPromptSlot : 0;
  if (result) wire.from_region |= kResultInPlace;
  wire.to = result ? result->address : 0;
  wire.to_region = result ? result->key : 0;
  wire.from = checkOf(wire, data, checksum);
  return wire;
}

bool isIntactWire(const SlotHeader& wire, std::span<const std::byte> data, bool checksum) {
  return wire.from == checkOf(wire, data, checksum);
}

std::uint64_t resultChecksum(std::uint64_t sequence, std::span<const std::byte> result) {
  return XXH3_64bits_withSeed(result.data(), result.size(), sequence);
}

}  // namespace tutti
