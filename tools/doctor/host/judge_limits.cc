// Memory and what else the system counts out.
#include <fmt/format.h>

#include "tools/doctor/host/judge.h"

namespace tutti::doctor {
namespace {

constexpr const char* kArea = "Limits";
constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::uint64_t kLittle = 64 * kMiB;  ///< what eight ranks of a host take for their links, and some
constexpr std::uint64_t kComfortable = 1024 * kMiB;
constexpr std::uint64_t kFewFiles = 256;
constexpr std::uint64_t kEnoughFiles = 1024;
constexpr const char* kRaiseLocked =
    "raise it: /etc/security/limits.conf `* - memlock unlimited`, systemd LimitMEMLOCK=infinity, containers "
    "--ulimit memlock=-1";

Finding judgeLocked(const LimitFacts& facts, bool has_rdma) {
  const std::string need = fmt::format("a communicator with {} ranks on other hosts needs {}", kTypicalPeers,
                                       bytesText(facts.locked_need));
  if (!facts.locked_bytes) return {Level::ok, kArea, "locked memory", "no limit for this process"};
  const std::string limit = fmt::format("at most {} (ulimit -l)", bytesText(*facts.locked_bytes));
  if (!has_rdma)
    return {Level::ok, kArea, "locked memory", limit + "; only RDMA needs more, and there is none"};
  if (*facts.locked_bytes < facts.locked_need)
    return {Level::failure, kArea, "locked memory", fmt::format("{}; {}", limit, need), kRaiseLocked};
  return {Level::warning, kArea, "locked memory",
          fmt::format("{}; {}, and buffers that are registered count, too", limit, need), kRaiseLocked};
}

Finding judgeFiles(const LimitFacts& facts) {
  const std::string seen =
      fmt::format("{} (ulimit -n), up to {} on demand", facts.open_files, facts.most_open_files);
  const std::string remedy =
      facts.most_open_files >= kEnoughFiles
          ? fmt::format("ulimit -n {} before the job",
                        facts.most_open_files < 65536 ? facts.most_open_files : 65536)
          : std::string(
                "raise it: /etc/security/limits.conf `* - nofile 65536`, containers --ulimit nofile=65536");
  if (facts.open_files >= kEnoughFiles) return {Level::ok, kArea, "open files", seen};
  return {facts.open_files < kFewFiles ? Level::failure : Level::warning, kArea, "open files",
          seen + ": a rank needs some two for every rank on another host", remedy};
}

Finding judgeMemory(const LimitFacts& facts) {
  if (facts.free_bytes == UINT64_MAX)
    return {Level::note, kArea, "free memory", "cannot be read (/proc/meminfo)", "mount /proc"};
  const bool is_group = facts.free_bytes < facts.system_free_bytes;
  const std::string seen = is_group
                               ? fmt::format("{} in the control group of this process, {} in the system",
                                             bytesText(facts.free_bytes), bytesText(facts.system_free_bytes))
                               : bytesText(facts.free_bytes);
  if (facts.free_bytes >= kComfortable) return {Level::ok, kArea, "free memory", seen};
  return {facts.free_bytes < kLittle ? Level::failure : Level::warning, kArea, "free memory",
          seen + ": ranks of one host take up to 4 MiB each for their links, those on others 1 MiB per peer",
          is_group ? "raise the group's limit (memory.max; containers --memory), or lower TUTTI_SLOTS and "
                     "TUTTI_SLOT_BYTES"
                   : "free memory, or lower TUTTI_SLOTS and TUTTI_SLOT_BYTES"};
}

}  // namespace

Findings judgeLimits(const LimitFacts& facts, bool has_rdma) {
  Findings findings{judgeLocked(facts, has_rdma), judgeFiles(facts), judgeMemory(facts)};
  findings.push_back(
      facts.memfd_problem.empty()
          ? Finding{Level::ok, kArea, "anonymous files",
                    "memfd works: what ranks of a host share needs no /dev/shm"}
          : Finding{Level::failure, kArea, "anonymous files", facts.memfd_problem,
                    "ranks of a host cannot share memory: allow memfd_create (seccomp), free memory"});
  return findings;
}

}  // namespace tutti::doctor
