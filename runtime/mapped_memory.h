// Which memory of this process there is.
#pragma once

#include <cstdint>
#include <string>

namespace tutti {

/// Why `bytes` bytes at `address` cannot all be read, and written where `writes` says so; empty: they can.
/// Asks the system (/proc/self/maps); another thread may change the answer at once.
std::string whyNotAccessible(const void* address, std::uint64_t bytes, bool writes);

}  // namespace tutti
