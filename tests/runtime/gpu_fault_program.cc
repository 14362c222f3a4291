// Two ranks on two GPUs, of which one has CUDA fail:
//   gpu_fault_program RANKS each ERROR FIRST STEP  calls FIRST, FIRST + STEP, ... fail, until none is left
//   gpu_fault_program RANKS once FAULTS ERROR      FAULTS of TUTTI_EMULATED_FAULTS; ERROR is expected
//   gpu_fault_program RANKS running FAULTS ERROR   the same once a kernel waits for the other rank
//   gpu_fault_program RANKS silent FAULTS ERROR    the same, and only the end is there to tell
//   gpu_fault_program RANKS right FAULTS           nothing is to come of them
// RANKS: threads or processes.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/ranks.h"
#include "tests/harness/resources.h"
#include "tests/runtime/gpu_faulty_use.h"

namespace {

using tutti::test::FaultOutcome;
using tutti::test::FaultyRank;
using tutti::test::FaultyUse;
using tutti::test::require;
using tutti::test::Resources;

/// Long after every deadline of the library that ends a wait for a rank that failed.
constexpr unsigned kMostSeconds = 40;

/// Several times what one use makes.
constexpr int kMostCalls = 1000;

/// What the process holds. The memory of a communicator that the other rank had open goes when the next one
/// is made: so one is, by this rank alone, once the other rank has had time to end.
Resources settled() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ncclComm_t alone = nullptr;
  tutti::check(ncclCommInitRank(&alone, 1, tutti::test::newId(), 0));
  tutti::check(ncclCommDestroy(alone));
  return Resources::after({}, std::chrono::milliseconds(200));
}

/// Whether the process holds no more than before.
bool isClean(const Resources& before) {
  const auto isSo = [&](const Resources& now) {
    return now.fds <= before.fds && now.threads <= before.threads &&
           now.shared_mappings <= before.shared_mappings;
  };
  Resources after = settled();
  for (int i = 0; i < 20 && !isSo(after); ++i) after = settled();
  std::printf("before: %s\nafter: %s\n", before.text().c_str(), after.text().c_str());
  return isSo(after);
}

using Outcome = std::future<FaultOutcome>;

/// Rank 1, which has CUDA fail.
class Other {
 public:
  Other() = default;
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  virtual ~Other() = default;
  virtual Outcome start(const FaultyUse& use) = 0;
};

class OtherThread final : public Other {
 public:
  Outcome start(const FaultyUse& use) override {
    return std::async(std::launch::async, [this, use] { return rank_.carryOut(use); });
  }

 private:
  FaultyRank rank_{1};
};

/// Made before this process uses CUDA.
class OtherProcess final : public Other {
 public:
  OtherProcess() {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    pid_ = ::fork();
    require(pid_ >= 0, "fork");
    ::close(ends[pid_ == 0 ? 0 : 1]);
    socket_ = ends[pid_ == 0 ? 1 : 0];
    if (pid_ == 0) std::exit(serve(socket_));
  }
  ~OtherProcess() override { ::close(socket_); }

  Outcome start(const FaultyUse& use) override {
    require(::send(socket_, &use, sizeof(use), 0) == sizeof(use), "send");
    return std::async(std::launch::async, [this] {
      FaultOutcome outcome;
      require(::recv(socket_, &outcome, sizeof(outcome), 0) == sizeof(outcome), "rank 1 has ended");
      return outcome;
    });
  }
  /// Its exit status: it says what it has left behind.
  int end() {
    ::shutdown(socket_, SHUT_RDWR);
    int status = -1;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static int serve(int socket) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    FaultyRank rank(1);
    std::optional<Resources> before;
    int uses = 0;
    for (FaultyUse use; ::recv(socket, &use, sizeof(use), 0) == sizeof(use);) {
      const FaultOutcome outcome = rank.carryOut(use);
      if (::send(socket, &outcome, sizeof(outcome), MSG_NOSIGNAL) != sizeof(outcome)) return 1;
      // Not of a GPU that is broken by the only one.
      if (++uses == 1 && use.faults[0] == '\0') before = settled();
    }
    return !before || isClean(*before) ? 0 : 1;
  }

  int pid_ = -1;
  int socket_ = -1;
};

struct Outcomes {
  FaultOutcome sound;  ///< of rank 0
  FaultOutcome struck;
};

Outcomes carryOut(FaultyRank& sound, Other& other, const std::string& faults,
                  FaultyUse::End end = FaultyUse::End::destroy, bool while_running = false,
                  bool then_silent = false) {
  FaultyUse use{
      .id = tutti::test::newId(), .while_running = while_running, .then_silent = then_silent, .end = end};
  require(faults.size() < use.faults.size(), "too long");
  faults.copy(use.faults.data(), faults.size());
  ::alarm(kMostSeconds);
  auto struck = other.start(use);
  use.faults = {};
  const FaultOutcome mine = sound.carryOut(use);
  return {mine, struck.get()};
}

std::string describe(const FaultOutcome& outcome) {
  if (outcome.code == ncclSuccess) return outcome.is_right ? "right" : "WRONG";
  return std::string(outcome.call.data()) + ": " + ncclGetErrorString(outcome.code) + ": " +
         outcome.said.data();
}

bool says(const FaultOutcome& outcome, const std::string& words) {
  return std::string(outcome.said.data()).find(words) != std::string::npos;
}

bool succeeded(const FaultOutcome& outcome) { return outcome.code == ncclSuccess && outcome.is_right; }

/// Where these fail, something else may serve: pinned memory of the host instead of a GPU's, which is opened
/// and tried with them; no capture is there to be forgiven; the device is the current one anyway; or it was
/// the Watcher, who comes back. The last ones look for and give back what earlier communicators left.
const std::set<std::string> kDispensable{
    "cudaDeviceCanAccessPeer",
    "cudaDeviceEnablePeerAccess",
    "cudaDeviceGetByPCIBusId",
    "cudaIpcGetMemHandle",
    "cudaIpcOpenMemHandle",
    "cudaGetDriverEntryPointByVersion",
    "cudaMemcpyAsync",
    "cudaStreamSynchronize",
    "cudaPointerGetAttributes",
    "cudaThreadExchangeStreamCaptureMode",
    "cudaGetDevice",
    "cudaSetDevice",
    "cudaFree",
    "cudaFreeHost",
    "cudaHostUnregister",
    "cudaIpcCloseMemHandle",
    "cudaEventQuery",
    "cudaEventDestroy",
    "cudaStreamDestroy",
};

/// What is wrong with how a fault ended; "": nothing.
std::string judge(const Outcomes& outcomes, const std::string& error, bool breaks) {
  const auto& [sound, struck] = outcomes;
  // The other names of a function are this one with defaults.
  std::string function = struck.struck.data();
  function = function.substr(0, function.find("With"));
  // The Watcher, a thread that looks after both ranks of a process, comes from one GPU to the other.
  const std::string watched = "the GPU of rank 0";
  if (function == "cudaSetDevice" && says(sound, watched) && (succeeded(struck) || says(struck, watched))) {
    return "";
  }
  if (succeeded(struck)) {
    if (!succeeded(sound)) return "the other rank failed alone";
    return struck.struck_at_end || kDispensable.contains(struck.struck.data()) ? ""
                                                                               : "the failure went unnoticed";
  }
  // What was right is lost with the GPU, and CUDA says so.
  if (struck.code == ncclSuccess && breaks && struck.has_waited) return "";
  if (struck.code == ncclSuccess) return "wrong results, and no error";
  if (struck.code != ncclUnhandledCudaError) return "another code than ncclUnhandledCudaError";
  if (!says(struck, error)) return "the message does not have CUDA's error";
  // Of a broken GPU, any call that finds it so.
  if (!says(struck, breaks ? "cuda" : function)) return "the message does not have CUDA's function";
  if (succeeded(sound)) return "";  // it needed nothing more of the other rank
  if (sound.code == ncclSuccess) return "wrong results on the other rank, and no error";
  if (says(sound, "did not come within")) return says(sound, "rank 1") ? "" : "the missing rank is not named";
  // What the first rank has found is what all return, where there was a communicator to tell it by.
  if (sound.code != ncclRemoteError && sound.code != struck.code) return "another code on the other rank";
  return says(sound, "rank 1") ? "" : "the other rank does not name rank 1";
}

FaultyUse::End endOf(int number) { return number % 2 == 0 ? FaultyUse::End::destroy : FaultyUse::End::abort; }

/// Returns how often something was wrong.
int strikeEach(FaultyRank& sound, Other& other, const std::string& error, int first, int step) {
  int mistakes = 0;
  for (int call = first;; call += step) {
    const std::string faults = "fail:device=1,at=" + std::to_string(call) + ",error=" + error;
    const Outcomes outcomes = carryOut(sound, other, faults, endOf(call / step));
    const std::string function = outcomes.struck.struck.data();
    std::string wrong = judge(outcomes, error, false);
    if (function.empty()) {
      wrong = succeeded(outcomes.struck) && succeeded(outcomes.sound) ? "" : "failed without a fault";
    }
    if (call > kMostCalls) wrong = "more calls each time: something is left that makes them";
    mistakes += wrong.empty() ? 0 : 1;
    std::printf("%s%d %s%s\n    rank 1 %s\n    rank 0 %s\n",
                wrong.empty() ? "" : ("WRONG: " + wrong + "\n").c_str(), call, function.c_str(),
                outcomes.struck.struck_at_end ? " (at the end)" : "", describe(outcomes.struck).c_str(),
                describe(outcomes.sound).c_str());
    std::fflush(stdout);
    if (function.empty() || call > kMostCalls) {
      std::printf("%d calls\n", call - 1);
      return mistakes;
    }
  }
}

int strikeOnce(FaultyRank& sound, Other& other, const std::string& faults, const std::string& error,
               bool while_running = false, bool then_silent = false) {
  const Outcomes outcomes =
      carryOut(sound, other, faults, FaultyUse::End::destroy, while_running, then_silent);
  const std::string wrong = judge(outcomes, error, faults.starts_with("break"));
  std::printf("%s\n%s\n    rank 1 %s\n    rank 0 %s\n", wrong.c_str(), outcomes.struck.struck.data(),
              describe(outcomes.struck).c_str(), describe(outcomes.sound).c_str());
  return wrong.empty() && outcomes.struck.struck[0] != '\0' ? 0 : 1;
}

int expectRight(FaultyRank& sound, Other& other, const std::string& faults) {
  const Outcomes outcomes = carryOut(sound, other, faults);
  std::printf("rank 1 %s\nrank 0 %s\n", describe(outcomes.struck).c_str(), describe(outcomes.sound).c_str());
  return succeeded(outcomes.struck) && succeeded(outcomes.sound) ? 0 : 1;
}

int run(FaultyRank& sound, Other& other, const std::vector<std::string>& arguments) {
  const std::string& what = arguments.at(1);
  if (what == "once") return strikeOnce(sound, other, arguments.at(2), arguments.at(3));
  if (what == "running") return strikeOnce(sound, other, arguments.at(2), arguments.at(3), true);
  if (what == "silent") return strikeOnce(sound, other, arguments.at(2), arguments.at(3), true, true);
  if (what == "right") return expectRight(sound, other, arguments.at(2));
  require(what == "each", "what is " + what + "?");
  // The first time, libraries and the emulator take what they keep.
  carryOut(sound, other, "");
  const Resources before = settled();
  int mistakes =
      strikeEach(sound, other, arguments.at(2), std::stoi(arguments.at(3)), std::stoi(arguments.at(4)));
  // Looks after what the last ones left, too.
  carryOut(sound, other, "");
  return mistakes + (isClean(before) ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.at(0) == "threads") {
      OtherThread other;
      FaultyRank sound(0);
      return run(sound, other, arguments) == 0 ? 0 : 1;
    }
    OtherProcess other;
    int mistakes = 0;
    {
      FaultyRank sound(0);
      mistakes = run(sound, other, arguments);
    }
    const int status = other.end();
    if (status != 0) std::fprintf(stderr, "rank 1 ended with status %d\n", status);
    return mistakes == 0 && status == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
