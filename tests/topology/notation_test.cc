#include "runtime/topology/notation.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Notation, BusIds) {
  EXPECT_EQ(busIdOf("0000:3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(busIdOf("00000000:3B:1F.7"), "0000:3b:1f.7");  // NVML's form
  EXPECT_EQ(busIdOf("3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(busIdOf("10000:e1:00.0"), "10000:e1:00.0");
  EXPECT_EQ(busIdOf("ffff:ff:01.0"), "ffff:ff:01.0");
  for (const char* wrong :
       {"", "0", "0000:3b:00", "0000:3b:00.", "0000:3b:00.00", "0000:3b:00.0 ", "-1:00.0", "0000:13b:00.0",
        "1234:00.0", "123456789:00:00.0", "0000:3b:00.g", "fffffff:ffff:ff", "::.", "0x0:00:00.0"}) {
    EXPECT_EQ(busIdOf(wrong), std::nullopt) << wrong;
  }
}

TEST(Notation, LinkSpeeds) {
  EXPECT_EQ(linkSpeedOf("16.0 GT/s PCIe"), 16);
  EXPECT_EQ(linkSpeedOf("8 GT/s"), 8);
  EXPECT_EQ(linkSpeedOf("2.5GT/s"), 2.5);
  EXPECT_EQ(linkSpeedOf(""), 0);
  EXPECT_EQ(linkSpeedOf("Unknown"), 0);
  EXPECT_EQ(linkSpeedOf("Unknown speed"), 0);
  for (const char* wrong :
       {"8", "GT/s", "-8 GT/s", "nan GT/s", "inf GT/s", "1e9 GT/s", "8 GB/s", "8 GT/s x"}) {
    EXPECT_EQ(linkSpeedOf(wrong), std::nullopt) << wrong;
  }
}

TEST(Notation, MasksOfCpus) {
  EXPECT_EQ(cpusOfMask("00ff"), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(cpusOfMask("80000000,00000000,00000001"), (std::vector<int>{0, 95}));
  EXPECT_EQ(cpusOfMask("0x1,,0x80000000"), (std::vector<int>{31, 64}));
  EXPECT_EQ(cpusOfMask(""), std::vector<int>{});
  EXPECT_EQ(cpusOfMask("0"), std::vector<int>{});
  for (const char* wrong : {"g", "123456789", "0xf...f", "ff ff", "-1"}) {
    EXPECT_EQ(cpusOfMask(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(cpusOfMask(std::string(2047, ',')), std::vector<int>{});
  EXPECT_EQ(cpusOfMask(std::string(2048, ',')), std::nullopt);
  EXPECT_EQ(maskOfCpus({0, 95}), "80000000,00000000,00000001");
  EXPECT_EQ(maskOfCpus({31, 32}), "00000001,80000000");
  EXPECT_EQ(maskOfCpus({}), "");
}

TEST(Notation, ListsOfCpus) {
  EXPECT_EQ(cpusOfList("0-2,7"), (std::vector<int>{0, 1, 2, 7}));
  EXPECT_EQ(cpusOfList("5"), std::vector<int>{5});
  EXPECT_EQ(cpusOfList(""), std::vector<int>{});
  for (const char* wrong : {",", "1,", "1-", "3-1", "1,1", "2,1", "65536", "0-65536", "a", "1 2"}) {
    EXPECT_EQ(cpusOfList(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(listOfCpus({0, 1, 2, 7, 9, 10}), "0-2,7,9-10");
  EXPECT_EQ(listOfCpus({}), "");
}

}  // namespace
}  // namespace tutti
