#include "tools/cuda_emulator/runtime/fat_binary.h"

#include <fmt/format.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "tutti/error.h"

namespace tutti::emulator {
namespace {

constexpr std::uint32_t kContainerMagic = 0xBA55ED50;
constexpr std::uint16_t kKindPtx = 1;
constexpr std::string_view kZstdMagic = "\x28\xB5\x2F\xFD";

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t entries_bytes;
};
static_assert(sizeof(ContainerHeader) == 16);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t unknown_02;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
  std::uint32_t compressed_bytes;
  std::uint32_t unknown_14[2];
  std::uint32_t architecture;
  std::uint32_t unknown_20[2];
  std::uint64_t flags;
  std::uint64_t unknown_30;
  std::uint64_t decompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 0x40 && offsetof(EntryHeader, compressed_bytes) == 0x10 &&
              offsetof(EntryHeader, architecture) == 0x1c && offsetof(EntryHeader, flags) == 0x28 &&
              offsetof(EntryHeader, decompressed_bytes) == 0x38);

struct Entry {
  EntryHeader header;
  std::string_view payload;
};

template <class Header>
Header readHeader(const char* at) {
  Header header;
  std::memcpy(&header, at, sizeof(header));
  return header;
}

std::vector<Entry> entriesOf(const void* container) {
  const auto* at = static_cast<const char*>(container);
  const auto header = readHeader<ContainerHeader>(at);
  if (header.magic != kContainerMagic) {
    throw Error(ncclInvalidUsage, fmt::format("no fat binary: it begins with {:#x}, expected {:#x}",
                                              header.magic, kContainerMagic));
  }
  at += header.header_bytes;
  const char* const end = at + header.entries_bytes;
  std::vector<Entry> result;
  while (static_cast<std::size_t>(end - at) >= sizeof(EntryHeader)) {
    const auto entry = readHeader<EntryHeader>(at);
    const auto room = static_cast<std::size_t>(end - at);
    if (entry.header_bytes < sizeof(EntryHeader) || entry.header_bytes > room ||
        entry.payload_bytes > room - entry.header_bytes) {
      throw Error(ncclInvalidUsage, "a fat binary's entry is longer than the binary");
    }
    result.push_back({entry, {at + entry.header_bytes, entry.payload_bytes}});
    at += entry.header_bytes + entry.payload_bytes;
  }
  return result;
}

std::string textOf(const Entry& entry) {
  const auto stored = entry.header.compressed_bytes;
  if (stored == 0) return std::string(entry.payload.substr(0, entry.payload.find('\0')));
  if (stored > entry.payload.size() || !entry.payload.starts_with(kZstdMagic)) {
    throw Error(ncclInvalidUsage,
                "its PTX is compressed in another way than zstd; build it with nvcc --compress-mode=none");
  }
  std::string text(entry.header.decompressed_bytes, '\0');
  const auto got = ZSTD_decompress(text.data(), text.size(), entry.payload.data(), stored);
  if (ZSTD_isError(got) != 0 || got != text.size()) {
    throw Error(ncclInvalidUsage,
                fmt::format("its PTX cannot be decompressed: {}",
                            ZSTD_isError(got) != 0 ? ZSTD_getErrorName(got) : "it is short"));
  }
  return text.substr(0, text.find('\0'));
}

std::string contentsInWords(const std::vector<Entry>& entries) {
  std::string result;
  for (const auto& entry : entries) {
    result += fmt::format("{}{} for architecture {}", result.empty() ? "" : ", ",
                          entry.header.kind == kKindPtx ? "PTX" : "machine code", entry.header.architecture);
  }
  return result.empty() ? "nothing" : result;
}

}  // namespace

std::string extractPtx(const void* container) {
  const auto entries = entriesOf(container);
  const Entry* best = nullptr;
  for (const auto& entry : entries) {
    if (entry.header.kind != kKindPtx || entry.header.architecture > kArchitecture) continue;
    if (best == nullptr || entry.header.architecture > best->header.architecture) best = &entry;
  }
  if (best != nullptr) return textOf(*best);
  throw Error(
      ncclInvalidUsage,
      fmt::format(
          "the emulator runs PTX for an architecture up to {}; the program's fat binary has {}. "
          "Build it with nvcc -gencode arch=compute_{},code=compute_{}, and without -rdc=true, which leaves "
          "machine code only",
          kArchitecture, contentsInWords(entries), kArchitecture, kArchitecture));
}

}  // namespace tutti::emulator
