// ncclGroupStart to ncclGroupEnd: calls that are launched together.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/batch.h"
#include "runtime/comm_handle.h"
#include "runtime/stream.h"
#include "tutti/error.h"

namespace tutti {

/// The group that a thread is in, if any. Calls inside it validate and record; the outermost end() carries
/// them out: first it makes communicators, then it launches the operations, last it finalizes and destroys.
class Group {
 public:
  static Group& ofThisThread();

  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  /// Warns where it is open: the thread or the process ends without ncclGroupEnd.
  ~Group();

  bool isOpen() const { return depth_ != 0; }
  void start() { ++depth_; }

  /// Throws Error(ncclInvalidUsage) without a start(); what recording failed with, with nothing carried out;
  /// or the first error of carrying out. Returns ncclInProgress when it left work to the background.
  ncclResult_t end();

  /// The same without carrying anything out: what was recorded is forgotten. At the outermost level it
  /// writes what end() would take, µs, to *estimate, else nothing.
  void simulateEnd(float* estimate);

  /// A call inside the group failed: the group will, too.
  void fail(const Error& error);

  void add(const std::shared_ptr<Communicator>& communicator, const Task& task, const Placement& place);
  void add(CommInit init) { content_.inits.push_back(std::move(init)); }
  /// Whether it holds a split or shrink of the communicator.
  bool makesOutOf(const CommHandle& parent) const;
  void addEnding(std::function<ncclResult_t()> ending) { content_.endings.push_back(std::move(ending)); }

 private:
  struct Content {
    std::optional<Error> error;
    std::vector<CommInit> inits;
    std::shared_ptr<Batch> batch;
    std::vector<std::function<ncclResult_t()>> endings;
  };

  /// Leaves one level. What was recorded, at the outermost one. Throws as end() does.
  std::optional<Content> leave(const char* function);
  static ncclResult_t carryOut(Content& content);

  int depth_ = 0;
  Content content_;
};

}  // namespace tutti
