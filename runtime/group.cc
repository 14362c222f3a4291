#include "runtime/group.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "runtime/process.h"

namespace tutti {

Group& Group::ofThisThread() {
  thread_local Group group;
  return group;
}

Group::~Group() {
  if (!isOpen()) return;
  try {
    Process::instance().log().write(
        LogLevel::warn, -1,
        "a thread ends inside a group: ncclGroupEnd is missing, and nothing that was called since "
        "ncclGroupStart is carried out");
  } catch (const std::exception&) {  // nobody is left to hear of it
  }
}

void Group::fail(const Error& error) {
  if (!content_.error) content_.error = error;
}

void Group::add(const std::shared_ptr<Communicator>& communicator, const Task& task, const Placement& place) {
  if (content_.batch == nullptr) content_.batch = std::make_shared<Batch>();
  content_.batch->add(communicator, task, place);
}

bool Group::makesOutOf(const CommHandle& parent) const {
  return std::ranges::any_of(content_.inits,
                             [&parent](const CommInit& init) { return init.parent.get() == &parent; });
}

std::optional<Group::Content> Group::leave(const char* function) {
  if (depth_ == 0) {
    throw Error(ncclInvalidUsage, std::string(function) + " without an ncclGroupStart before it");
  }
  if (--depth_ != 0) return std::nullopt;
  Content content = std::exchange(content_, {});
  if (!content.error) return content;
  for (const CommInit& init : content.inits) init.discard();
  throw Error(*content.error);
}

ncclResult_t Group::end() {
  std::optional<Content> content = leave("ncclGroupEnd");
  return content ? carryOut(*content) : ncclSuccess;
}

void Group::simulateEnd(float* estimate) {
  const std::optional<Content> content = leave("ncclGroupSimulateEnd");
  if (!content) return;
  for (const CommInit& init : content->inits) init.discard();
  *estimate = content->batch != nullptr ? static_cast<float>(content->batch->estimateMicroseconds()) : 0;
}

ncclResult_t Group::carryOut(Content& content) {
  ncclResult_t result = ncclSuccess;
  std::optional<Error> first;
  const auto attempt = [&](const auto& step) {
    try {
      const ncclResult_t outcome = step();
      if (outcome != ncclSuccess) result = outcome;
    } catch (const Error& error) {
      if (!first) first = error;
    } catch (const std::exception& error) {
      if (!first) first = Error(ncclSystemError, error.what());
    }
  };
  attempt([&] { return makeCommunicators(std::move(content.inits)); });
  if (content.batch != nullptr && !first) {
    attempt([&] {
      content.batch->launch();
      return ncclSuccess;
    });
  }
  for (const auto& ending : content.endings) attempt(ending);
  if (first) throw Error(*first);
  return result;
}

}  // namespace tutti
