// What the sources of the C API share: exports, handles, and exceptions turned into results.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "nccl.h"
#include "runtime/comm_handle.h"
#include "runtime/config.h"
#include "runtime/group.h"
#include "runtime/handles.h"
#include "runtime/process.h"
#include "tutti/error.h"

// g++ wants an alias to repeat attributes that it derives for the target by itself.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

#define TUTTI_EXPORTED extern "C" __attribute__((visibility("default")))

// The profiling alias: the same address under a second name, so that a preloaded tool may define the first.
#define TUTTI_API(result, function, ...)                                                               \
  extern "C" __attribute__((visibility("default"), alias(#function))) result p##function(__VA_ARGS__); \
  TUTTI_EXPORTED result function(__VA_ARGS__)

struct ncclComm final : tutti::CommHandle {
  using CommHandle::CommHandle;
};

namespace tutti::capi {

/// Keeps the words of a failure for ncclGetLastError and the log. Never throws.
inline void report(const char* message) noexcept {
  try {
    Process::instance().setLastError(message);
    Process::instance().log().write(LogLevel::warn, -1, message);
  } catch (...) {
    return;  // the words are lost, the result is not
  }
}

/// Runs `body`, which returns nothing or a result; turns what it throws into a result, the process's last
/// error, and a log line; and hands it to `failed`.
template <class Body, class Failed>
ncclResult_t guarded(const Body& body, const Failed& failed) noexcept {
  const auto fail = [&](ncclResult_t code, const char* message) {
    report(message);
    failed(code, message);
    return code;
  };
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return ncclSuccess;
    } else {
      return body();
    }
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(ncclSystemError, "out of memory");
  } catch (const std::exception& error) {
    return fail(ncclInternalError, error.what());
  }
}

template <class Body>
ncclResult_t guarded(const Body& body) noexcept {
  return guarded(body, [](ncclResult_t, const char*) {});
}

/// The same for calls that a group records: a failure inside a group is the group's, too.
template <class Body>
ncclResult_t recorded(const Body& body) noexcept {
  return guarded(body, [](ncclResult_t code, const char* message) {
    Group& group = Group::ofThisThread();
    if (group.isOpen()) group.fail(Error(code, message));
  });
}

template <class T>
void requirePointer(const char* function, const char* argument, const T* pointer) {
  if (pointer == nullptr) throw Error(ncclInvalidArgument, fmt::format("{}: {} is NULL", function, argument));
}

using CommHandles = Handles<ncclComm>;

/// A communicator's configuration, with what the environment says.
inline CommConfig configOf(const char* function, const ncclConfig_t* config) {
  return readConfig(function, config, Process::instance().settings().blocks);
}

[[noreturn]] inline void refuseComm(const char* function) {
  throw Error(ncclInvalidArgument,
              fmt::format("{}: comm is no communicator, or one that was destroyed already", function));
}

inline std::shared_ptr<ncclComm> handleOf(const char* function, ncclComm_t comm) {
  requirePointer(function, "comm", comm);
  auto handle = CommHandles::instance().find(comm);
  if (handle == nullptr) refuseComm(function);
  if (handle->isOfParentProcess()) {
    throw Error(
        ncclInvalidUsage,
        fmt::format("{}: this process was forked from the one that made comm, and cannot use it: its links "
                    "and threads stayed there. Make communicators after fork()",
                    function));
  }
  return handle;
}

/// The communicator behind a handle, which is ready; it keeps the handle's object alive.
inline std::shared_ptr<Communicator> communicatorOf(const char* function, ncclComm_t comm) {
  auto handle = handleOf(function, comm);
  Communicator& communicator = handle->require(function);
  return {std::move(handle), &communicator};
}

/// A caller's enumerator may hold any int. Its bytes are copied, because loading it would be undefined.
template <class Enumerator>
int valueOf(const Enumerator& enumerator) {
  std::int32_t value = 0;
  static_assert(sizeof(enumerator) == sizeof(value));
  std::memcpy(&value, &enumerator, sizeof(value));
  return value;
}

}  // namespace tutti::capi
