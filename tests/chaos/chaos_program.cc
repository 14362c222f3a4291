// One rank of a chaos run: `chaos_program NAME=VALUE...`
//
//   seed=N       of the calls, equal on all ranks
//   for=MS       until some rank has called for so long; all end in the same round
//   compute=MS   computes between calls, up to so long
//   register=1   some buffers are registered
//   act=WHAT     what this rank does to the others, at=ROUND: exit, _exit, differ, abort
//   other=ROUND  in this round another rank differs
//
// Says on standard output, in this order: "ready"; "fault NS" before it acts; "result ok|error|wrong NS
// TEXT"; "ended MS" for how long Destroy or Abort took; "held BEFORE" and "holds NOW" in numbers. NS is the
// monotonic clock's, the same for all processes.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "tests/chaos/random_program.h"
#include "tests/harness/resources.h"

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using tutti::Comm;
using tutti::test::RandomProgram;
using tutti::test::Resources;

using Arguments = std::map<std::string, std::string>;

long long nowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::string read(const Arguments& arguments, const char* name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? "" : found->second;
}

std::uint64_t number(const Arguments& arguments, const char* name) {
  const std::string text = read(arguments, name);
  return text.empty() ? 0 : std::stoull(text);
}

/// Aborts from another thread, a moment later.
class Aborter {
 public:
  ~Aborter() {
    if (thread_.joinable()) thread_.join();
  }
  bool isStarted() const { return thread_.joinable(); }
  void start(ncclComm_t comm, milliseconds delay) {
    thread_ = std::thread([this, comm, delay] {
      std::this_thread::sleep_for(delay);
      say("fault " + std::to_string(nowNs()));
      const auto begin = steady_clock::now();
      result_ = ncclCommAbort(comm);
      took_ = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
    });
  }
  /// How long the abort took; a failed one never ended.
  milliseconds join() {
    thread_.join();
    return result_ == ncclSuccess ? took_ : milliseconds(1'000'000);
  }

 private:
  std::thread thread_;
  ncclResult_t result_ = ncclSuccess;
  milliseconds took_{0};
};

void compute(std::mt19937_64& random, std::uint64_t most_ms) {
  if (most_ms == 0 || random() % 4 != 0) return;
  const auto end = steady_clock::now() + milliseconds(random() % most_ms);
  while (steady_clock::now() < end) {
  }
}

/// Rounds until one rank has called for long enough, or an error.
void callForLong(Comm& comm, const Arguments& arguments, Aborter& aborter) {
  RandomProgram program(comm, number(arguments, "seed"), !read(arguments, "register").empty());
  std::mt19937_64 random(static_cast<std::uint64_t>(::getpid()));
  const auto end = steady_clock::now() + milliseconds(number(arguments, "for"));
  const std::string act = read(arguments, "act");
  const std::uint64_t at = number(arguments, "at");
  const std::uint64_t other = number(arguments, "other");
  for (std::uint64_t round = 1;; ++round) {
    compute(random, number(arguments, "compute"));
    if (round == at && act == "exit") {
      say("fault " + std::to_string(nowNs()));
      std::exit(0);
    } else if (round == at && act == "_exit") {
      say("fault " + std::to_string(nowNs()));
      std::_Exit(0);
    } else if (round == at && act == "abort") {
      aborter.start(comm.handle(), milliseconds(random() % 30));
    }
    if (round == at && act == "differ") say("fault " + std::to_string(nowNs()));
    if (round == other) {
      program.differ(round, act == "differ");
    } else {
      program.round(round);
    }
    if (round % 4 != 0) continue;
    std::int32_t is_over = steady_clock::now() >= end ? 1 : 0;
    comm.allReduce(&is_over, &is_over, 1, ncclInt32, ncclMax);
    if (is_over != 0) return;
  }
}

bool isOk(const std::string& result) { return result.starts_with("result ok"); }

std::string callAll(Comm& comm, const Arguments& arguments, Aborter& aborter) {
  const auto says = [](const char* what, const std::string& text) {
    return "result " + std::string(what) + " " + std::to_string(nowNs()) + " " + text;
  };
  try {
    callForLong(comm, arguments, aborter);
    return says("ok", "");
  } catch (const tutti::Error& error) {
    return says("error", error.what());
  } catch (const std::exception& error) {
    return says("wrong", error.what());
  }
}

/// Ends the communicator, after an error in one of the two ways; how long that took.
milliseconds end(Comm& comm, bool may_abort, Aborter& aborter) {
  if (aborter.isStarted()) {
    comm.take();  // it is the aborter's to end
    return aborter.join();
  }
  const auto begin = steady_clock::now();
  ncclComm_t handle = comm.take();
  const bool aborts = may_abort && ::getpid() % 3 == 0;
  aborts ? ncclCommAbort(handle) : ncclCommDestroy(handle);
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
}

void report(const char* when, const Resources& held) {
  say(std::string(when) + " " + std::to_string(held.fds) + " " + std::to_string(held.threads) + " " +
      std::to_string(held.mappings) + " " + std::to_string(held.shared_mappings));
}

void joinCallAndEnd(const tuttiLaunch_t& launch, const Arguments& arguments) {
  ncclComm_t handle = nullptr;
  if (ncclCommInitRank(&handle, launch.nranks, launch.id, launch.rank) != ncclSuccess) {
    say("result error " + std::to_string(nowNs()) + " " + ncclGetLastError(nullptr));
    say("ended 0");
    return;
  }
  say("ready");
  Comm comm(handle);
  Aborter aborter;
  const std::string result = callAll(comm, arguments, aborter);
  say(result);
  say("ended " + std::to_string(end(comm, !isOk(result), aborter).count()));
}

void run(const Arguments& arguments) {
  tuttiLaunch_t launch;
  tutti::check(tuttiLaunchFromEnvironment(&launch));
  const Resources before = Resources::now();
  // In a thread of its own: what the library keeps for a thread goes with it.
  std::thread([&] { joinCallAndEnd(launch, arguments); }).join();
  const Resources after = Resources::after(before, milliseconds(20'000));
  report("held", before);
  report("holds", after);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const auto equals = text.find('=');
    arguments[text.substr(0, equals)] = equals == std::string::npos ? "1" : text.substr(equals + 1);
  }
  try {
    run(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
