// What containers and hardening keep processes of one host from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/doctor/host/judge.h"

namespace tutti::doctor {
namespace {

constexpr const char* kArea = "Processes of this host";

Finding judgeNamespaces(const IsolationFacts& facts) {
  std::vector<std::string> own;
  if (facts.is_own_pid_namespace) own.emplace_back("a pid namespace");
  if (facts.is_own_user_namespace) own.emplace_back("a user namespace");
  if (!facts.container.empty()) own.push_back(facts.container);
  if (own.empty()) return {Level::ok, kArea, "namespaces", "those of the system"};
  return {
      Level::note, kArea, "namespaces", fmt::format("in a container ({})", fmt::join(own, ", ")),
      "ranks in one container share memory. Where those of one host are in several, share what they need: "
      "--network=host --pid=host, and one user"};
}

/// What may be behind a refusal, with its remedy.
std::string whyForbidden(const IsolationFacts& facts) {
  if (facts.ptrace_scope > 0) {
    return fmt::format(
        "kernel.yama.ptrace_scope is {}: set it to 0 (sysctl), or containers --cap-add SYS_PTRACE",
        facts.ptrace_scope);
  }
  if (facts.seccomp == 2)
    return "a seccomp filter is on: let it pass process_vm_readv (containers --security-opt seccomp=FILE, or "
           "--cap-add SYS_PTRACE)";
  return "look for what restricts ptrace: AppArmor, SELinux, hidepid of /proc, a program that is not "
         "dumpable";
}

}  // namespace

Findings judgeIsolation(const IsolationFacts& facts) {
  Findings findings{judgeNamespaces(facts)};
  if (!facts.segment_problem.empty()) {
    findings.push_back({Level::failure, kArea, "shared memory", facts.segment_problem,
                        "ranks of this host cannot work together: allow abstract Unix sockets that carry "
                        "descriptors (AppArmor, SELinux, seccomp)"});
    return findings;
  }
  findings.push_back(
      {Level::ok, kArea, "shared memory", "another process took memory that was handed to it"});
  findings.push_back(
      facts.maps_regions
          ? Finding{Level::ok, kArea, "registered buffers", "mapped by others, by /proc/PID/fd"}
          : Finding{Level::warning, kArea, "registered buffers",
                    "others cannot open /proc/PID/fd: their contents are copied through slots",
                    whyForbidden(facts)});
  findings.push_back(facts.copies
                         ? Finding{Level::ok, kArea, "other buffers", "read by others, by process_vm_readv"}
                         : Finding{Level::note, kArea, "other buffers",
                                   "process_vm_readv is forbidden: they are copied through slots, as they "
                                   "are unless TUTTI_PROCESS_VM=1",
                                   whyForbidden(facts)});
  return findings;
}

}  // namespace tutti::doctor
