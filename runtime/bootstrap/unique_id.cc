#include "runtime/bootstrap/unique_id.h"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::array<char, 8> kMagic{'T', 'U', 'T', 'T', 'I', '-', 'I', 'D'};
constexpr std::uint32_t kVersion = 2;

/// The 128 bytes. The checksum covers everything before it and finds truncated or garbled ids.
struct Layout {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t is_agreed;
  NetAddress address;
  Secret secret;
  std::array<std::uint8_t, 40> unused;
  std::array<std::uint8_t, 16> checksum;
};
static_assert(sizeof(Layout) == NCCL_UNIQUE_ID_BYTES);

std::array<std::uint8_t, 16> checksumOf(const Layout& layout) {
  std::array<std::uint8_t, 16> sum;
  crypto_generichash(sum.data(), sum.size(), reinterpret_cast<const std::uint8_t*>(&layout),
                     offsetof(Layout, checksum), nullptr, 0);
  return sum;
}

}  // namespace

ncclUniqueId encode(const UniqueId& id) {
  Layout layout{};
  layout.magic = kMagic;
  layout.version = kVersion;
  layout.is_agreed = id.is_agreed ? 1 : 0;
  layout.address = id.address;
  layout.secret = id.secret;
  layout.checksum = checksumOf(layout);
  ncclUniqueId result;
  std::memcpy(&result, &layout, sizeof(result));
  return result;
}

UniqueId decode(const ncclUniqueId& id) {
  Layout layout;
  std::memcpy(static_cast<void*>(&layout), &id, sizeof(layout));
  if (layout.magic != kMagic) {
    throw Error(ncclInvalidArgument,
                "these 128 bytes are not a unique id of Tutti: get one by ncclGetUniqueId of this library on "
                "one rank, and hand its 128 bytes to all others unchanged");
  }
  if (layout.version != kVersion) {
    throw Error(ncclInvalidArgument,
                fmt::format("the unique id has format {}, this library reads format {}: all "
                            "ranks must load the same version of Tutti",
                            layout.version, kVersion));
  }
  if (layout.checksum != checksumOf(layout)) {
    throw Error(ncclInvalidArgument,
                "the unique id was damaged on its way: hand over all its 128 bytes unchanged");
  }
  return {.address = layout.address, .is_agreed = layout.is_agreed != 0, .secret = layout.secret};
}

}  // namespace tutti
