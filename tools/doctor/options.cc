#include "tools/doctor/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <memory>

#include "nccl.h"
#include "tools/doctor/peer/conversation.h"
#include "tutti/error.h"

namespace tutti::doctor {
namespace {

constexpr int kBadUsage = 64;
constexpr int kLongestWait = 86400;
constexpr int kHighestPort = 65535;

constexpr const char* kDescription =
    "Looks at this host before a job: network, RDMA, limits, containers, GPUs. Changes nothing.\n"
    "With --listen here and --peer there: tries the network between two hosts, both ways.\n";

constexpr const char* kDetails =
    "Every line is ok, a note, a warning or a failure; what to do follows behind '>'.\n"
    "The variables that jobs use (NCCL_SOCKET_IFNAME, NCCL_IB_HCA, TUTTI_PORT_RANGE, ...) count here, too: "
    "run it\n"
    "in the environment of the job, as its user, and in its container.\n\n"
    "  host a$ tutti-doctor --listen               prints the command for the other host, token included\n"
    "  host b$ tutti-doctor --peer a --token TOKEN\n\n"
    "The listener takes one peer who knows the token, which is good for this one time, and ends with it. "
    "Both\n"
    "print the same verdict. Their conversation is encrypted; who does not prove the token is not listened "
    "to.\n\n"
    "Exit status: 0 nothing is wrong, 1 warnings, 2 failures, 64 bad usage.\n";

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: tutti-doctor [--json]\n"
           "       tutti-doctor --env [--json]\n"
           "       tutti-doctor --listen [PORT] [--wait SECONDS] [--json]\n"
           "       tutti-doctor --peer HOST[:PORT] --token TOKEN [--json]\n";
  }
};

std::string versionText() {
  return fmt::format("tutti-doctor {} (NCCL API {}.{}.{})", TUTTI_VERSION, NCCL_MAJOR, NCCL_MINOR,
                     NCCL_PATCH);
}

/// HOST, HOST:PORT, ADDRESS, [IPv6]:PORT. Throws Error in words.
HostAndPort parsePeer(const std::string& text) {
  if (parseNumericHost(text)) return {.host = text, .port = kDefaultPort};
  const bool has_port = text.find(':') != std::string::npos && !text.ends_with("]");
  return parseHostAndPort(has_port ? text : fmt::format("{}:{}", text, kDefaultPort), "--peer");
}

ParsedOptions refuse(const char* why) {
  fmt::print(stderr, "tutti-doctor: {}\nTry 'tutti-doctor --help'.\n", why);
  return {std::nullopt, kBadUsage};
}

/// What CLI11 asks: the complaint, empty for none.
std::string complainOfToken(const std::string& text) {
  const bool is_hex = std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
  return is_hex && text.size() == kTokenDigits
             ? ""
             : fmt::format("expected the {} hexadecimal digits that the listener printed", kTokenDigits);
}

}  // namespace

ParsedOptions parseOptions(int argc, char** argv) {
  Options options;
  int port = kDefaultPort;
  int wait = 600;
  std::string peer_text;
  bool wants_environment = false;

  CLI::App app{kDescription};
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(kDetails);
  app.set_version_flag("--version", versionText());
  app.add_flag("--json", options.json, "one JSON document instead of text");
  auto* env =
      app.add_flag("--env", wants_environment,
                   "every variable that Tutti knows, its value, where that comes from, whether it acts");
  auto* listen = app.add_option("--listen", port, "wait for a peer, on PORT; 0: any free one");
  listen->expected(0, 1)
      ->default_str(std::to_string(kDefaultPort))  // what stands for PORT where none is given
      ->option_text(fmt::format("[PORT={}]", kDefaultPort))
      ->check(CLI::Range(0, kHighestPort));
  auto* peer = app.add_option("--peer", peer_text, "the host where a doctor listens");
  peer->option_text("HOST[:PORT]")->excludes(listen);
  env->excludes(listen)->excludes(peer);
  auto* token = app.add_option("--token", options.token, "what the listener printed");
  token->option_text("TOKEN")->needs(peer)->check(complainOfToken);
  peer->needs(token);
  app.add_option("--wait", wait, "how long the listener waits for a peer (600)")
      ->option_text("SECONDS")
      ->needs(listen)
      ->check(CLI::Range(1, kLongestWait));

  try {
    app.parse(argc, argv);
    if (peer->count() > 0) options.peer = parsePeer(peer_text);
  } catch (const CLI::Success& success) {  // --help and --version
    const int status = app.exit(success);
    if (std::cout.flush()) return {std::nullopt, status};
    return refuse("cannot write to standard output");
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  } catch (const Error& error) {
    return refuse(error.what());
  }
  if (wants_environment) options.task = Task::environment;
  if (listen->count() > 0) options.task = Task::listen;
  if (peer->count() > 0) options.task = Task::peer;
  options.port = static_cast<std::uint16_t>(port);
  options.patience = std::chrono::seconds(wait);
  return {options, 0};
}

}  // namespace tutti::doctor
