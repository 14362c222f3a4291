// What an emulated device can do: the figures of compute capability 9.0, except that there are fewer
// multiprocessors, since every block is a thread of this machine.
#pragma once

#include <cstddef>

namespace tutti::emulator {

inline constexpr int kMultiprocessors = 16;
inline constexpr int kWarpSize = 32;
inline constexpr unsigned kMaxThreadsPerBlock = 1024;
inline constexpr unsigned kMaxBlockDimensions[3] = {1024, 1024, 64};
inline constexpr unsigned kMaxGridDimensions[3] = {2147483647, 65535, 65535};
inline constexpr int kMaxThreadsPerMultiprocessor = 2048;
inline constexpr int kMaxBlocksPerMultiprocessor = 32;
inline constexpr std::size_t kSharedBytesPerBlock = std::size_t{48}
                                                    << 10;  ///< unless a function asked for more
inline constexpr std::size_t kMaxSharedBytesPerBlock = std::size_t{227} << 10;
inline constexpr std::size_t kSharedBytesPerMultiprocessor = std::size_t{228} << 10;
inline constexpr std::size_t kReservedSharedBytesPerBlock = 1024;
inline constexpr std::size_t kConstantBytes = std::size_t{64} << 10;
inline constexpr int kRegisters = 65536;
inline constexpr std::size_t kPitchAlignment = 512;
inline constexpr int kGreatestPriority = -5;  ///< of a stream; the least is 0

}  // namespace tutti::emulator
