#include "runtime/core/address_range.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

NetAddress at(const char* text) {
  NetAddress address;
  const bool is_ipv6 = std::string_view(text).find(':') != std::string_view::npos;
  address.family = is_ipv6 ? NetAddress::Family::ipv6 : NetAddress::Family::ipv4;
  EXPECT_EQ(::inet_pton(is_ipv6 ? AF_INET6 : AF_INET, text, address.bytes.data()), 1) << text;
  return address;
}

bool lies(const char* address, const char* range) { return parseAddressRange(range)->contains(at(address)); }

TEST(AddressRange, HoldsWhatBeginsWithItsBits) {
  EXPECT_TRUE(lies("10.255.3.4", "10.0.0.0/8"));
  EXPECT_FALSE(lies("11.0.0.1", "10.0.0.0/8"));
  EXPECT_TRUE(lies("10.1.2.3", "10.1.0.0/15"));  // bits within a byte
  EXPECT_FALSE(lies("10.2.2.3", "10.1.0.0/15"));
  EXPECT_TRUE(lies("10.1.2.3", "10.1.2.3"));
  EXPECT_FALSE(lies("10.1.2.4", "10.1.2.3"));
  EXPECT_TRUE(lies("1.2.3.4", "0.0.0.0/0"));
  EXPECT_TRUE(lies("fd12::1", "fd00::/8"));
  EXPECT_FALSE(lies("fe80::1", "fd00::/8"));
  EXPECT_FALSE(lies("10.0.0.1", "::/0"));  // the other family
  EXPECT_FALSE(lies("::1", "0.0.0.0/0"));
}

TEST(AddressRange, WhatIsNoneIsNothing) {
  for (const char* text : {"10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/", "fd00::/129", "10.0.0.0/8x", "/8",
                           "10.0.0.0/-1", "", "eth0/8"}) {
    EXPECT_FALSE(parseAddressRange(text)) << text;
  }
}

}  // namespace
}  // namespace tutti
