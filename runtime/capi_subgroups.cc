// The C API of communicators that are made out of others, and of ending operations for that.
#include <optional>
#include <vector>

#include "runtime/capi_support.h"
#include "runtime/subgroup.h"

namespace {

using tutti::CommInit;
using tutti::Communicator;
using tutti::Error;
using tutti::Group;
using tutti::Membership;
using namespace tutti::capi;  // NOLINT(google-build-using-namespace): written for these sources

using Agree = std::function<std::optional<Membership>(Communicator&)>;

/// Throws Error(ncclInvalidUsage) where the thread's group makes another one out of `parent`.
void requireOneAtATime(const char* function, const tutti::CommHandle& parent) {
  if (!Group::ofThisThread().makesOutOf(parent)) return;
  throw Error(
      ncclInvalidUsage,
      fmt::format("{}: this group splits or shrinks the communicator already. One split of a "
                  "communicator at a time: end the group (ncclGroupEnd), and make the next call after it",
                  function));
}

/// Makes a communicator out of `parent`, in whose place `agree` says; at the end of the group, if one is
/// open. It works where the parent does, and like it where config is NULL. With `is_given`, *newcomm is its
/// handle from here on.
ncclResult_t makeOutOf(const char* function, const std::shared_ptr<ncclComm>& parent, ncclComm_t* newcomm,
                       const ncclConfig_t* config, bool is_given, Agree agree) {
  Communicator& communicator = parent->require(function);
  communicator.requireMakesOthers(function);
  auto child = std::make_shared<ncclComm>(config != nullptr ? configOf(function, config) : parent->config(),
                                          parent->device());
  if (is_given) *newcomm = CommHandles::instance().add(child);
  CommInit init{.handle = child,
                .membership = [&communicator, agree = std::move(agree)] { return agree(communicator); },
                .is_blocking = parent->isBlocking(),
                .gpus = communicator.gpus(),
                .discard =
                    [newcomm, raw = child.get()] {
                      CommHandles::instance().remove(raw);
                      *newcomm = nullptr;
                    },
                .parent = parent};
  Group& group = Group::ofThisThread();
  if (!group.isOpen()) return tutti::makeCommunicators({std::move(init)});
  group.add(std::move(init));
  return ncclSuccess;
}

}  // namespace

TUTTI_API(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
          ncclConfig_t* config) {
  return recorded([&] {
    constexpr const char* kFunction = "ncclCommSplit";
    requirePointer(kFunction, "newcomm", newcomm);
    *newcomm = nullptr;
    const auto parent = handleOf(kFunction, comm);
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
      throw Error(ncclInvalidArgument,
                  fmt::format("{}: color {} is neither 0 or more nor NCCL_SPLIT_NOCOLOR", kFunction, color));
    }
    requireOneAtATime(kFunction, *parent);
    return makeOutOf(kFunction, parent, newcomm, config, color != NCCL_SPLIT_NOCOLOR,
                     [color, key](Communicator& communicator) {
                       return tutti::splitMembership(communicator, color, key);
                     });
  });
}

TUTTI_API(ncclResult_t, ncclCommShrink, ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
          ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  return recorded([&] {
    constexpr const char* kFunction = "ncclCommShrink";
    requirePointer(kFunction, "newcomm", newcomm);
    *newcomm = nullptr;
    const auto parent = handleOf(kFunction, comm);
    requirePointer(kFunction, "excludeRanksList", excludeRanksList);
    if (shrinkFlags != NCCL_SHRINK_DEFAULT && shrinkFlags != NCCL_SHRINK_ABORT) {
      throw Error(ncclInvalidArgument,
                  fmt::format("{}: shrinkFlags {:#x} are neither NCCL_SHRINK_DEFAULT nor NCCL_SHRINK_ABORT",
                              kFunction, shrinkFlags));
    }
    requireOneAtATime(kFunction, *parent);
    Communicator& communicator = parent->require(kFunction);
    const std::vector<int> survivors = tutti::survivorsOf(communicator, excludeRanksList, excludeRanksCount);
    if (shrinkFlags == NCCL_SHRINK_ABORT) communicator.endOperations();
    return makeOutOf(kFunction, parent, newcomm, config, true, [survivors](Communicator& of) {
      return std::optional(tutti::shrinkMembership(of, survivors));
    });
  });
}

TUTTI_API(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags) {
  return guarded([&] {
    if (comm == nullptr) return;
    const auto communicator = communicatorOf("ncclCommRevoke", comm);
    if (revokeFlags != NCCL_REVOKE_DEFAULT) {
      throw Error(ncclInvalidArgument,
                  fmt::format("ncclCommRevoke: revokeFlags {:#x} are not NCCL_REVOKE_DEFAULT", revokeFlags));
    }
    communicator->revoke();
  });
}
