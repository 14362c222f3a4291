#include "bench/link/transport.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "runtime/core/environment.h"

namespace tutti::perf {
namespace {

constexpr std::array kMedia{
    std::pair{Medium::automatic, "auto"}, std::pair{Medium::inproc, "inproc"},
    std::pair{Medium::shm, "shm"},        std::pair{Medium::tcp, "tcp"},
    std::pair{Medium::verbs, "verbs"},    std::pair{Medium::cuda_ipc, "cuda_ipc"},
};

}  // namespace

Medium parseMedium(const std::string& text) {
  std::string names;
  for (const auto& [medium, name] : kMedia) {
    if (text == name) return medium;
    names += fmt::format(" {}", name);
  }
  throw std::invalid_argument(text + " is not a transport; there are:" + names);
}

const char* nameOf(Medium medium) {
  for (const auto& [known, name] : kMedia) {
    if (known == medium) return name;
  }
  return "";
}

void askFor(Medium medium) {
  if (!isNetwork(medium)) return;
  const NetworkChoice wanted = medium == Medium::verbs ? NetworkChoice::rdma : NetworkChoice::sockets;
  const NetworkChoice given = readSettings(Environment::ofProcess()).network_choice;
  if (given != NetworkChoice::automatic && given != wanted) {
    throw std::invalid_argument(
        fmt::format("--transport {}: NCCL_NET or NCCL_IB_DISABLE want {}; unset them, or leave the flag away",
                    nameOf(medium), given == NetworkChoice::rdma ? "RDMA" : "TCP"));
  }
  ::setenv("NCCL_NET", wanted == NetworkChoice::rdma ? "IB" : "Socket", 1);
}

std::string disagreement(Medium asked, const std::string& used) {
  if (asked == Medium::automatic || used == nameOf(asked)) return {};
  std::string remedy = "leave tutti-run away, and link_perf starts its ranks itself";
  if (isNetwork(asked)) remedy = "start them on two hosts (tutti-run --hosts 2 pretends), or " + remedy;
  if (asked == Medium::cuda_ipc) remedy = "NCCL_DEBUG=INFO says what forbids it";
  return fmt::format("--transport {}: these two ranks are joined by {}; {}", nameOf(asked), used, remedy);
}

}  // namespace tutti::perf
