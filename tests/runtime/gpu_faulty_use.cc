#include "tests/runtime/gpu_faulty_use.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string_view>
#include <thread>

namespace tutti::test {
namespace {

constexpr std::size_t kReduced = 1000;
constexpr std::size_t kSent = 500;

/// A function of the emulated CUDA runtime.
template <class Function>
Function* emulatorFunction(const char* name) {
  auto* const found = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
  require(found != nullptr, std::string("not on emulated GPUs: there is no ") + name);
  return found;
}

void emulateFaults(const char* text) {
  static auto* const kEmulate = emulatorFunction<bool(const char*)>("tuttiEmulateFaults");
  require(kEmulate(text), std::string("not understood: ") + text);
}

std::string_view struckFunction() {
  static auto* const kStruck = emulatorFunction<const char*()>("tuttiEmulateFaultsStruck");
  return kStruck();
}

template <std::size_t kSize>
void put(std::array<char, kSize>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), kSize - 1);
}

int selected(int rank) {
  checkCuda(cudaSetDevice(rank), "cudaSetDevice");
  return rank;
}

}  // namespace

FaultyRank::FaultyRank(int rank)
    : rank_(selected(rank)), reduced_(kReduced), sent_(kSent), received_(kSent) {}

void FaultyRank::fill() {
  reduced_.set(filled(kReduced, static_cast<float>(rank_ + 1)));
  sent_.set(filled(kSent, static_cast<float>(rank_ + 10)));
  received_.set(filled(kSent, -1));
}

bool FaultyRank::isRight() const {
  const auto holds = [](const GpuArray<float>& array, float value) {
    const auto values = array.get();
    return std::ranges::all_of(values, [value](float got) { return got == value; });
  };
  return holds(reduced_, 3) && holds(received_, static_cast<float>(1 - rank_ + 10));
}

/// Whether it failed: fails(call, result) tells.
template <class Fails>
bool FaultyRank::exchange(ncclComm_t comm, const Fails& fails) {
  check(ncclGroupStart());
  const bool has_failed =
      fails("ncclSend", ncclSend(sent_.data(), kSent, ncclFloat, 1 - rank_, comm, stream_)) ||
      fails("ncclRecv", ncclRecv(received_.data(), kSent, ncclFloat, 1 - rank_, comm, stream_));
  const ncclResult_t ended = ncclGroupEnd();
  return has_failed || fails("ncclGroupEnd", ended);
}

/// The code of the first call that fails, which is noted, or of the communicator after the last one.
ncclResult_t FaultyRank::useOnce(ncclComm_t comm, const FaultyUse& use, FaultOutcome& outcome) {
  ncclResult_t code = ncclSuccess;
  const auto fails = [&](const char* call, ncclResult_t result) {
    put(outcome.call, call);
    code = result;
    return result != ncclSuccess;
  };
  const bool is_struck = use.faults[0] != '\0';
  if (use.while_running && !is_struck) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  void* registration = nullptr;
  if (fails("ncclCommRegister",
            ncclCommRegister(comm, reduced_.data(), kReduced * sizeof(float), &registration)) ||
      fails("ncclAllReduce",
            ncclAllReduce(reduced_.data(), reduced_.data(), kReduced, ncclFloat, ncclSum, comm, stream_))) {
    return code;
  }
  if (use.while_running && is_struck) {
    emulateFaults(use.faults.data());
    if (use.then_silent) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return code;
    }
  }
  if (exchange(comm, fails)) return code;
  // Where it is this call that is made to fail, it has not waited.
  outcome.has_waited = cudaStreamSynchronize(stream_) == cudaSuccess;
  if (!outcome.has_waited) static_cast<void>(cudaStreamSynchronize(stream_));
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(comm, &state));
  if (fails("ncclCommGetAsyncError", state)) return code;
  static_cast<void>(fails("ncclCommDeregister", ncclCommDeregister(comm, registration)));
  return code;
}

FaultOutcome FaultyRank::carryOut(const FaultyUse& use) {
  selected(rank_);
  fill();
  FaultOutcome outcome;
  const bool is_struck = use.faults[0] != '\0';
  if (is_struck && !use.while_running) emulateFaults(use.faults.data());
  ncclComm_t comm = nullptr;
  put(outcome.call, "ncclCommInitRank");
  outcome.code = ncclCommInitRank(&comm, 2, use.id, rank_);
  if (outcome.code == ncclSuccess) outcome.code = useOnce(comm, use, outcome);
  if (outcome.code != ncclSuccess) put(outcome.said, ncclGetLastError(comm));
  if (is_struck) put(outcome.struck, struckFunction());
  if (comm != nullptr) {
    // What went well is not aborted: the other rank might not be ready.
    const bool aborts = use.end == FaultyUse::End::abort && outcome.code != ncclSuccess;
    const ncclResult_t ended = aborts ? ncclCommAbort(comm) : ncclCommDestroy(comm);
    if (ended != ncclSuccess && outcome.code == ncclSuccess) {
      outcome.code = ended;
      put(outcome.call, "the end");
      put(outcome.said, ncclGetLastError(nullptr));
    }
  }
  if (is_struck) {
    outcome.struck_at_end = outcome.struck[0] == '\0';
    put(outcome.struck, struckFunction());
    emulateFaults("");
  }
  try {
    outcome.is_right = isRight();
  } catch (const std::exception&) {
    outcome.is_right = false;  // the GPU is broken
  }
  return outcome;
}

}  // namespace tutti::test
