#include "transports/link_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tutti/error.h"

namespace tutti {
namespace {

// Each part starts on a pair of cache lines.
constexpr std::size_t kAlign = 128;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::size_t headerBytes(std::uint32_t slot_count) { return aligned(slot_count * sizeof(SlotHeader)); }

std::size_t dataBytes(std::uint32_t slot_count, std::uint32_t slot_bytes) {
  return aligned(std::size_t{slot_count} * std::size_t{slot_bytes});
}

}  // namespace

std::size_t LinkMemory::slotsBytes(std::size_t link_count, std::uint32_t slot_count,
                                   std::uint32_t slot_bytes) {
  return link_count * dataBytes(slot_count, slot_bytes);
}

// An odd number of cache-line pairs: memory of one link must not alias that of the next in the caches.
LinkMemory::LinkMemory(std::size_t link_count, std::uint32_t slot_count, std::uint32_t slot_bytes,
                       std::shared_ptr<std::byte> slots)
    : slots_(std::move(slots)),
      slot_count_(slot_count),
      slot_bytes_(slot_bytes),
      link_bytes_(2 * sizeof(Counter) + headerBytes(slot_count) +
                  (slots_ == nullptr ? dataBytes(slot_count, slot_bytes) : 0) + kAlign),
      bytes_(link_count * link_bytes_) {
  if (bytes_ == 0) return;
  void* memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(
        ncclSystemError,
        fmt::format("network links: reserving {} bytes of address space: {} (errno {}). Raise the limit "
                    "(ulimit -v), or lower TUTTI_SLOT_BYTES, TUTTI_SLOTS or TUTTI_LANES.",
                    bytes_, std::strerror(errno), errno));
  }
  memory_ = static_cast<std::byte*>(memory);
}

LinkMemory::~LinkMemory() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

// All-zero bytes are valid objects of these types (implicit-lifetime structs over lock-free atomics).
LinkView LinkMemory::link(std::size_t index) const {
  std::byte* at = memory_ + index * link_bytes_;
  LinkView view;
  view.posted = reinterpret_cast<Counter*>(at);
  view.released = view.posted + 1;
  view.headers = reinterpret_cast<SlotHeader*>(at + 2 * sizeof(Counter));
  view.data = slots_ == nullptr ? at + 2 * sizeof(Counter) + headerBytes(slot_count_)
                                : slots_.get() + slotsBytes(index, slot_count_, slot_bytes_);
  view.slot_count = slot_count_;
  view.slot_bytes = slot_bytes_;
  view.is_network = true;
  return view;
}

}  // namespace tutti
