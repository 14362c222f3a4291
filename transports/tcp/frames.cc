#include "transports/tcp/frames.h"

#include <xxhash.h>

namespace tutti {
namespace {

std::uint64_t checkOf(SlotHeader header) {
  header.to = 0;
  return XXH3_64bits(&header, sizeof(header));
}

std::uint64_t checkOf(CreditFrame frame) {
  frame.check = 0;
  return XXH3_64bits(&frame, sizeof(frame));
}

}  // namespace

SlotHeader toWire(const SlotHeader& header, std::span<const std::byte> data, bool checksum) {
  const bool is_awaited = header.kind != SlotKind::inline_data || header.returns != 0;
  SlotHeader wire = header;
  wire.kind = SlotKind::inline_data;
  wire.from = checksum ? checksumOf(data) : 0;
  wire.from_region = is_awaited ? kPromptFrame : 0;
  wire.to_region = 0;
  wire.to = checkOf(wire);
  return wire;
}

SlotHeader byeToWire(std::uint64_t sequence) {
  SlotHeader wire{.sequence = sequence, .from_region = kByeFrame};
  wire.to = checkOf(wire);
  return wire;
}

bool isIntact(const SlotHeader& wire) { return wire.to == checkOf(wire); }

CreditFrame sealed(CreditFrame frame) {
  frame.check = checkOf(frame);
  return frame;
}

bool isIntact(const CreditFrame& frame) { return frame.check == checkOf(frame); }

std::uint64_t checksumOf(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace tutti
