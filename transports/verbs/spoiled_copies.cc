#include "transports/verbs/spoiled_copies.h"

#include <bit>
#include <cstring>

namespace tutti {

ibv_sge SpoiledCopies::spoil(std::uint64_t place, const ibv_sge& what) {
  if (faults_ == nullptr || what.length == 0) return what;
  const auto altered = faults_->next(what.length);
  if (!altered) return what;
  std::byte* const copy = copies_.data() + place * slot_bytes_;
  std::memcpy(copy, std::bit_cast<const std::byte*>(what.addr), what.length);
  copy[*altered] ^= std::byte{0x10};
  return piece(std::bit_cast<std::uint64_t>(copy), what.length, memory_->localKey());
}

}  // namespace tutti
