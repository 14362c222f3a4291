// Device code as nvcc puts it into a program.
#pragma once

#include <string>

namespace tutti::emulator {

/// The newest architecture whose PTX is taken: that of the emulated devices, compute capability 9.0.
inline constexpr unsigned kArchitecture = 90;

/// The PTX for the highest architecture up to kArchitecture out of a container of section .nv_fatbin:
///
///   container: u32 magic, u16 version, u16 header bytes, u64 bytes of all entries; then the entries
///   entry:     +0x00 u16 kind (1 PTX, 2 machine code)   +0x04 u32 header bytes   +0x08 u64 padded payload
///   bytes
///              +0x10 u32 payload bytes if compressed, else 0   +0x1c u32 architecture
///              +0x28 u64 flags   +0x38 u64 bytes once decompressed; then the payload, a zstd frame or plain
///              text
///
/// Throws Error in words where it holds none, such as machine code only.
std::string extractPtx(const void* container);

}  // namespace tutti::emulator
