// Which libnccl.so.2 a program will get.
#pragma once

#include <string>

namespace tutti::run {

/// Asks the program's own dynamic linker, which starts nothing. Where it would load a libnccl.so.2 that is
/// not Tutti's, or finds none: which, and what to set so that it gets Tutti's. Empty where all is well, where
/// the program needs no NCCL, and where that cannot be known: scripts, static programs, what dlopen() loads.
std::string warningOfOtherNccl(const std::string& program);

}  // namespace tutti::run
