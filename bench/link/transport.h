// --transport: over which medium the two ranks are to be joined, and what makes the library choose it.
#pragma once

#include <string>

namespace tutti::perf {

/// Named as tutti/transport.h does; `automatic` is what the library chooses for ranks as they are.
enum class Medium { automatic, inproc, shm, tcp, verbs, cuda_ipc };

/// Throws std::invalid_argument, naming those there are.
Medium parseMedium(const std::string& text);
const char* nameOf(Medium medium);

/// Whether the ranks are to count as two hosts.
inline bool isNetwork(Medium medium) { return medium == Medium::tcp || medium == Medium::verbs; }

/// Sets what the library reads (NCCL_NET); before it is used, and while there is one thread. Throws
/// std::invalid_argument where the environment demands something else.
void askFor(Medium medium);

/// Why a run over `used`, as the library names it, is not the one that was asked for; empty when it is.
std::string disagreement(Medium asked, const std::string& used);

}  // namespace tutti::perf
