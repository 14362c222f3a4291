#include "tools/run/placement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <climits>

#include "tools/run/unique_fd.h"

namespace tutti::run {

Place placeOf(int rank, int ranks, int hosts) {
  const int small = ranks / hosts;
  const int large = small + 1;
  const int large_hosts = ranks % hosts;
  const int in_large = large_hosts * large;
  if (rank < in_large) return {rank / large, rank % large, large};
  const int rest = rank - in_large;
  return {large_hosts + rest / small, rest % small, small};
}

std::string hostName(int host) {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) throw systemError("gethostname");
  return fmt::format("{}-host{}", name.data(), host);
}

}  // namespace tutti::run
