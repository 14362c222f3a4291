// Containers of device code, built byte by byte.
#include "tools/cuda_emulator/runtime/fat_binary.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tutti/error.h"

namespace tutti::emulator {
namespace {

constexpr std::uint16_t kPtx = 1;
constexpr std::uint16_t kMachineCode = 2;

void append(std::string& bytes, std::size_t at, const auto& value) {
  if (bytes.size() < at + sizeof(value)) bytes.resize(at + sizeof(value));
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

std::string entry(std::uint16_t kind, std::uint32_t architecture, std::string payload,
                  std::uint32_t compressed_bytes = 0) {
  payload.resize((payload.size() + 7) / 8 * 8);
  std::string bytes(0x50, '\0');
  append(bytes, 0x00, kind);
  append(bytes, 0x04, std::uint32_t{0x50});
  append(bytes, 0x08, std::uint64_t{payload.size()});
  append(bytes, 0x10, compressed_bytes);
  append(bytes, 0x1c, architecture);
  append(bytes, 0x38, std::uint64_t{100});
  return bytes + payload;
}

std::string container(const std::vector<std::string>& entries) {
  std::string all;
  for (const auto& bytes : entries) all += bytes;
  std::string header;
  append(header, 0, std::uint32_t{0xBA55ED50});
  append(header, 4, std::uint16_t{1});
  append(header, 6, std::uint16_t{16});
  append(header, 8, std::uint64_t{all.size()});
  return header + all;
}

std::string refusalOf(const std::string& bytes) {
  try {
    return "extracted " + extractPtx(bytes.data());
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(FatBinary, TheNewestPtxThatTheDevicesRun) {
  const auto bytes = container({entry(kPtx, 75, ".version 75"), entry(kPtx, 90, ".version 90"),
                                entry(kMachineCode, 90, "ELF"), entry(kPtx, 80, ".version 80"),
                                entry(kPtx, 100, ".version 100")});
  EXPECT_EQ(extractPtx(bytes.data()), ".version 90");
}

TEST(FatBinary, WithoutPtxItSaysWhatThereIs) {
  const auto refusal =
      refusalOf(container({entry(kMachineCode, 90, "ELF"), entry(kPtx, 100, ".version 100")}));
  EXPECT_NE(refusal.find("machine code for architecture 90, PTX for architecture 100"), std::string::npos)
      << refusal;
  EXPECT_NE(refusalOf(container({})).find("nothing"), std::string::npos);
}

TEST(FatBinary, Broken) {
  EXPECT_NE(refusalOf(std::string(32, 'x')).find("no fat binary"), std::string::npos);
  auto too_long = entry(kPtx, 90, ".version 90");
  append(too_long, 0x08, std::uint64_t{1} << 40);
  EXPECT_NE(refusalOf(container({too_long})).find("longer"), std::string::npos);
  EXPECT_NE(refusalOf(container({entry(kPtx, 90, "LZ4 or what", 8)})).find("compress-mode"),
            std::string::npos);
  EXPECT_NE(refusalOf(container({entry(kPtx, 90, "\x28\xB5\x2F\xFD but no more", 16)})).find("decompressed"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::emulator
