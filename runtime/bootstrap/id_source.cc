#include "runtime/bootstrap/id_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/bootstrap/rendezvous.h"
#include "runtime/bootstrap/unique_id.h"
#include "runtime/core/unique_fd.h"
#include "transports/socket_address.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::size_t kLeastSecretBytes = 16;
constexpr std::size_t kMostSecretBytes = 65536;

Secret hashOf(std::string_view purpose, std::string_view text) {
  Secret secret;
  crypto_generichash(secret.data(), secret.size(), reinterpret_cast<const unsigned char*>(text.data()),
                     text.size(), reinterpret_cast<const unsigned char*>(purpose.data()), purpose.size());
  return secret;
}

Secret readSecret(const std::string& path) {
  const auto refuse = [&path](ncclResult_t code, const std::string& why) {
    return Error(code, fmt::format("TUTTI_SECRET_FILE={}: {}", path, why));
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) throw refuse(ncclSystemError, std::strerror(errno));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw refuse(ncclInvalidUsage, fmt::format("other users have rights to it (mode {:04o}): chmod 600 it, "
                                               "and write a new secret if they may have read it",
                                               status.st_mode & 07777U));
  }
  std::string text(kMostSecretBytes + 1, '\0');
  std::size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < text.size(); length += static_cast<std::size_t>(got)) {
    got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0) throw refuse(ncclSystemError, std::strerror(errno));
  }
  if (length < kLeastSecretBytes || length > kMostSecretBytes) {
    throw refuse(ncclInvalidUsage,
                 fmt::format("expected {} to {} bytes, which only the ranks know, such as from "
                             "\"head -c 32 /dev/urandom\"",
                             kLeastSecretBytes, kMostSecretBytes));
  }
  const Secret secret = hashOf("tutti secret file", std::string_view(text).substr(0, length));
  sodium_memzero(text.data(), text.size());
  return secret;
}

Secret secretFor(std::string_view host_and_port, std::string_view variable, const NetworkSettings& settings,
                 Log& log) {
  if (!settings.secret_file.empty()) return readSecret(settings.secret_file);
  if (!settings.is_insecure) {
    throw Error(
        ncclInvalidUsage,
        fmt::format("{} tells where to join, but no secret protects it: set TUTTI_SECRET_FILE to a file "
                    "with the same 16 bytes or more on all hosts (chmod 600), or TUTTI_INSECURE=1 where "
                    "all who reach {} are trusted",
                    variable, host_and_port));
  }
  log.write(LogLevel::warn, -1,
            fmt::format("TUTTI_INSECURE=1: whoever reaches {} can join this communicator and read its data",
                        host_and_port));
  return hashOf("tutti without a secret", host_and_port);
}

}  // namespace

ncclUniqueId newUniqueId(Process& process) {
  const Settings& settings = process.settings();
  if (!settings.network.comm_id.empty()) {
    return agreedUniqueId(settings.network.comm_id, "NCCL_COMM_ID", settings.network, process.log());
  }
  std::vector<std::string> reasons;
  const ncclUniqueId id = openRendezvous(
      {.init_timeout = settings.init_timeout, .port = settings.bootstrap_port, .network = settings.network},
      &reasons);
  for (const std::string& reason : reasons) {
    process.log().write(LogLevel::info, -1, fmt::format("interface for the rendezvous: {}", reason),
                        LogSubsystem::bootstrap);
  }
  process.log().write(LogLevel::info, -1, fmt::format("rendezvous at {}", toText(decode(id).address)),
                      LogSubsystem::bootstrap);
  return id;
}

ncclUniqueId localUniqueId(Process& process) {
  const Settings& settings = process.settings();
  return openRendezvous({.init_timeout = settings.init_timeout,
                         .port = settings.bootstrap_port,
                         .network = settings.network,
                         .is_for_this_process = true});
}

ncclUniqueId agreedUniqueId(std::string_view host_and_port, std::string_view variable,
                            const NetworkSettings& settings, Log& log) {
  const HostAndPort where = parseHostAndPort(host_and_port, variable);
  const int family = settings.family == "AF_INET"    ? AF_INET
                     : settings.family == "AF_INET6" ? AF_INET6
                                                     : AF_UNSPEC;
  const Secret secret = secretFor(host_and_port, variable, settings, log);
  return encode({.address = resolve(where, family, variable), .is_agreed = true, .secret = secret});
}

}  // namespace tutti
