// Tables of calls with one wrong argument: what each must return, and say.
#pragma once

#include <nccl.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/nccl_conformance/checked_call.h"

namespace conformance {

/// A caller's enumerator may hold any int; to convert one would be undefined.
template <class Enumerator>
[[gnu::no_sanitize("enum")]] Enumerator enumerator(int value) {
  Enumerator result;
  static_assert(sizeof(result) == sizeof(value));
  std::memcpy(&result, &value, sizeof(value));
  return result;
}

/// What a wrong call may use, apart from the rank.
struct Props {
  void* data;                ///< 4096 bytes
  void* other;               ///< another 4096
  ncclComm_t dead;           ///< a communicator that is destroyed; NULL where the library is not Tutti
  ncclRedOp_t of_double;     ///< multiplies and sums doubles
  ncclRedOp_t destroyed_op;  ///< no operation any more
};

/// Who refuses the call: the standard's own, or Tutti alone, where NCCL looks only if it is told to, or
/// never.
enum class By : char { all, tutti };

struct WrongCall {
  std::string function;  ///< without "nccl"
  std::string argument;  ///< as nccl.h calls it
  std::string value;     ///< for the reader
  ncclResult_t code;
  By by;
  std::function<ncclResult_t(const Rank&, const Props&)> call;
};

/// Each collective and transfer, one argument wrong after the other. May stand in a group.
std::vector<WrongCall> wrongOperations(int nranks);

/// All other functions. None waits for another rank.
std::vector<WrongCall> wrongCalls();

}  // namespace conformance
