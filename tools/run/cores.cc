#include "tools/run/cores.h"

#include <sched.h>

#include <array>

#include "tools/run/unique_fd.h"

namespace tutti::run {
namespace {

// One cpu_set_t ends at 1024 CPUs; Linux knows up to 8192.
using CoreSet = std::array<cpu_set_t, 8>;
constexpr int kMaxCores = CPU_SETSIZE * 8;

}  // namespace

std::vector<int> allowedCores() {
  CoreSet set{};
  if (::sched_getaffinity(0, sizeof(set), set.data()) != 0) throw systemError("sched_getaffinity");
  std::vector<int> result;
  for (int core = 0; core < kMaxCores; ++core) {
    if (CPU_ISSET_S(static_cast<std::size_t>(core), sizeof(set), set.data())) result.push_back(core);
  }
  return result;
}

bool pinToCore(int core) noexcept {
  CoreSet set{};
  CPU_SET_S(static_cast<std::size_t>(core), sizeof(set), set.data());
  return ::sched_setaffinity(0, sizeof(set), set.data()) == 0;
}

}  // namespace tutti::run
