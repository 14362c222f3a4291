// What a rank becomes in a communicator that is made out of another one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "runtime/bootstrap/unique_id.h"
#include "tutti/error.h"

namespace tutti {

class Communicator;

/// A place in a communicator that is to be made.
struct Membership {
  int nranks = 1;
  int rank = 0;
  UniqueId id;
  std::function<void()> check;  ///< asked while ranks are missing, see JoinTerms; may be empty
};

/// `error` has ended a meeting of ranks that `check` asks about. Where it is the end of another rank that
/// did not say why, looks for the cause, for up to 2 s, and throws that: what other ranks did reaches this
/// one on other ways.
void requireCause(const Error& error, const std::function<void()>& check);

/// ncclCommSplit: agrees with all ranks of `parent`, which call it too; nothing with colour
/// NCCL_SPLIT_NOCOLOR. Throws Error naming who is missing or gone. `parent` must outlive the membership.
std::optional<Membership> splitMembership(Communicator& parent, int color, int key);

/// ncclCommShrink: with all ranks of `parent` but the excluded ones. Throws Error(ncclInvalidArgument) for a
/// list that is none, before anything changes.
std::vector<int> survivorsOf(const Communicator& parent, const int* excluded, int count);
Membership shrinkMembership(Communicator& parent, const std::vector<int>& survivors);

}  // namespace tutti
