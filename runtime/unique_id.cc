#include "runtime/unique_id.h"

#include <fmt/format.h>
#include <sodium.h>

#include <cstddef>
#include <cstring>

#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::array<char, 8> kMagic{'T', 'U', 'T', 'T', 'I', '-', 'I', 'D'};
constexpr std::uint32_t kVersion = 1;

/// The 128 bytes. The checksum covers everything before it and finds truncated or garbled ids.
struct Layout {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint16_t port;
  std::uint16_t reserved;
  std::array<std::uint8_t, 16> address;  ///< the first four bytes; room for IPv6
  Secret secret;
  std::array<std::uint8_t, 48> unused;
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

std::string UniqueId::endpoint() const { return fmt::format("{}:{}", fmt::join(address, "."), port); }

ncclUniqueId encode(const UniqueId& id) {
  Layout layout{};
  layout.magic = kMagic;
  layout.version = kVersion;
  layout.port = id.port;
  std::memcpy(layout.address.data(), id.address.data(), id.address.size());
  layout.secret = id.secret;
  layout.checksum = checksumOf(layout);
  ncclUniqueId result;
  std::memcpy(&result, &layout, sizeof(result));
  return result;
}

UniqueId decode(const ncclUniqueId& id) {
  Layout layout;
  std::memcpy(&layout, &id, sizeof(layout));
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
  UniqueId result{.port = layout.port, .address = {}, .secret = layout.secret};
  std::memcpy(result.address.data(), layout.address.data(), result.address.size());
  return result;
}

}  // namespace tutti
