// Two libraries with NCCL's functions in one process: libtutti.so beside libnccl.so.2, of Tutti or of NVIDIA.
#pragma once

#include <string>

namespace tutti {

/// What this process has loaded beside the library that asks.
struct OtherCopies {
  /// Which files, and what to do about it; empty when this library is the only one.
  std::string words;
  /// ncclX and tuttiX, called by name, are functions of different files. Neither file knows communicators or
  /// streams of the other, so the program cannot work. Without this another copy only lies idle, or is used
  /// apart by whoever loaded it.
  bool is_split = false;
};

/// Looks at what is loaded now. Loads and changes nothing.
OtherCopies findOtherCopies();

}  // namespace tutti
