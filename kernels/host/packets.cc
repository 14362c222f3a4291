#include "kernels/host/packets.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "runtime/core/link.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TUTTI_PACKET_QUARTERS 1
#include <immintrin.h>
#endif

namespace tutti {
namespace {

/// How lines are written and read. Each function handles one line.
struct Form {
  std::size_t line_data_bytes;
  /// `data` has line_data_bytes readable bytes.
  void (*write)(std::byte* line, const std::byte* data, std::uint32_t flag);
  /// False, with nothing written, unless the whole line has the flag.
  bool (*read)(std::byte* to, const std::byte* line, std::uint32_t flag);
};

// Eighths: each word is an atomic. Release and acquire, because on weakly ordered machines the reads of one
// slot must not pass the writes of the next, which tell the peer that they are over.

using Word = std::atomic<std::uint64_t>;
constexpr std::size_t kWords = kPacketLineBytes / sizeof(Word);

void writeEighths(std::byte* line, const std::byte* data, std::uint32_t flag) {
  auto* words = reinterpret_cast<Word*>(line);
  for (std::size_t i = 0; i < kWords; ++i) {
    std::uint32_t part = 0;
    std::memcpy(&part, data + i * sizeof(part), sizeof(part));
    words[i].store(std::uint64_t{flag} << 32 | part, std::memory_order_release);
  }
}

bool readEighths(std::byte* to, const std::byte* line, std::uint32_t flag) {
  const auto* words = reinterpret_cast<const Word*>(line);
  std::array<std::uint32_t, kWords> parts;
  for (std::size_t i = 0; i < kWords; ++i) {
    const std::uint64_t word = words[i].load(std::memory_order_acquire);
    if (static_cast<std::uint32_t>(word >> 32) != flag) return false;
    parts[i] = static_cast<std::uint32_t>(word);
  }
  std::memcpy(to, parts.data(), sizeof(parts));
  return true;
}

constexpr Form kEighths{kWords * 4, writeEighths, readEighths};

#ifdef TUTTI_PACKET_QUARTERS

// The processor keeps stores in order and loads in order. The compiler must neither split nor drop nor repeat
// these accesses, which volatile forbids it.

constexpr std::size_t kQuarters = 4;
constexpr std::size_t kQuarterData = 12;

void writeQuarters(std::byte* line, const std::byte* data, std::uint32_t flag) {
  for (std::size_t i = 0; i < kQuarters; ++i) {
    alignas(16) std::array<std::uint32_t, 4> quarter;
    std::memcpy(quarter.data(), data + i * kQuarterData, kQuarterData);
    quarter[3] = flag;
    *reinterpret_cast<volatile __m128i*>(line + i * 16) =
        _mm_load_si128(reinterpret_cast<const __m128i*>(quarter.data()));
  }
}

bool readQuarters(std::byte* to, const std::byte* line, std::uint32_t flag) {
  alignas(16) std::array<std::array<std::uint32_t, 4>, kQuarters> parts;
  for (std::size_t i = 0; i < kQuarters; ++i) {
    const __m128i quarter = *reinterpret_cast<const volatile __m128i*>(line + i * 16);
    _mm_store_si128(reinterpret_cast<__m128i*>(parts[i].data()), quarter);
    if (parts[i][3] != flag) return false;
  }
  for (std::size_t i = 0; i < kQuarters; ++i)
    std::memcpy(to + i * kQuarterData, parts[i].data(), kQuarterData);
  return true;
}

constexpr __mmask16 kDataLanes = 0x7777;
constexpr __mmask16 kFlagLanes = 0x8888;
constexpr __mmask16 kFirstLanes = 0x0fff;

__attribute__((target("avx512f"))) void writeLine(std::byte* line, const std::byte* data,
                                                  std::uint32_t flag) {
  const __m512i parts = _mm512_maskz_expand_epi32(kDataLanes, _mm512_maskz_loadu_epi32(kFirstLanes, data));
  *reinterpret_cast<volatile __m512i*>(line) =
      _mm512_mask_set1_epi32(parts, kFlagLanes, static_cast<int>(flag));
}

__attribute__((target("avx512f"))) bool readLine(std::byte* to, const std::byte* line, std::uint32_t flag) {
  const __m512i parts = *reinterpret_cast<const volatile __m512i*>(line);
  const __m512i flags = _mm512_set1_epi32(static_cast<int>(flag));
  if (_mm512_mask_cmpeq_epi32_mask(kFlagLanes, parts, flags) != kFlagLanes) return false;
  // Compressed in a register: processors exist that take a hundred times as long to compress into memory.
  _mm512_mask_storeu_epi32(to, kFirstLanes, _mm512_maskz_compress_epi32(kDataLanes, parts));
  return true;
}

constexpr Form kQuartersForm{kQuarters * kQuarterData, writeQuarters, readQuarters};
constexpr Form kLinesForm{kQuarters * kQuarterData, writeLine, readLine};

const Form& chooseForm() {
  if (__builtin_cpu_supports("avx512f") != 0) return kLinesForm;
  return __builtin_cpu_supports("avx") != 0 ? kQuartersForm : kEighths;
}

#else

const Form& chooseForm() { return kEighths; }

#endif

const Form& form() {
  static const Form& chosen = chooseForm();
  return chosen;
}

/// Both slots of a link are written whole at the begin of each half period.
bool writesWhole(std::uint64_t sequence) { return sequence % (kPacketFlagPeriod / 2) < kPacketSlots; }

}  // namespace

std::uint32_t packetSlotBytes() { return kPacketLines * static_cast<std::uint32_t>(form().line_data_bytes); }

std::uint32_t packetFlag(std::uint64_t sequence, const Descriptor& descriptor) {
  const auto words = std::bit_cast<std::array<std::uint64_t, 2>>(descriptor);
  std::uint64_t mixed = (words[0] ^ (words[1] * 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
  mixed ^= mixed >> 32;
  // 11 bits of the descriptor, 20 of the sequence, and a 1.
  return static_cast<std::uint32_t>(mixed << 21 | sequence % kPacketFlagPeriod << 1 | 1U);
}

std::size_t packetLines(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + form().line_data_bytes - 1) / form().line_data_bytes);
}

std::size_t packetRoom(std::size_t bytes) { return packetLines(bytes) * form().line_data_bytes; }

void writePackets(std::byte* slot, std::uint64_t sequence, std::uint32_t flag, const std::byte* data,
                  std::size_t bytes) {
  const Form& f = form();
  const std::size_t whole = bytes / f.line_data_bytes;
  std::size_t line = 0;
  for (; line < whole; ++line) f.write(slot + line * kPacketLineBytes, data + line * f.line_data_bytes, flag);
  std::array<std::byte, kPacketLineBytes> rest{};
  if (const std::size_t left = bytes - whole * f.line_data_bytes; left > 0 || line == 0) {
    if (left > 0) std::memcpy(rest.data(), data + whole * f.line_data_bytes, left);
    f.write(slot + line++ * kPacketLineBytes, rest.data(), flag);
  }
  if (!writesWhole(sequence)) return;
  rest.fill(std::byte{0});
  for (; line < kPacketLines; ++line) f.write(slot + line * kPacketLineBytes, rest.data(), flag);
}

std::size_t readPackets(std::byte* to, const std::byte* slot, std::uint32_t flag, std::size_t bytes,
                        std::size_t first) {
  const Form& f = form();
  const std::size_t lines = packetLines(bytes);
  while (first < lines && f.read(to + first * f.line_data_bytes, slot + first * kPacketLineBytes, flag)) {
    ++first;
  }
  return first;
}

}  // namespace tutti
