// What the C API says of a call and of a communicator.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tutti/tutti.h"

namespace tutti::test {

inline std::string lastError() { return ncclGetLastError(nullptr); }

/// The call returns `code`, and the error's text has the words in it.
#define EXPECT_REFUSED(code, call, words)                                                           \
  do {                                                                                              \
    EXPECT_EQ(call, code);                                                                          \
    EXPECT_NE(tutti::test::lastError().find(words), std::string::npos) << tutti::test::lastError(); \
  } while (false)

inline ncclResult_t stateOf(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  check(ncclCommGetAsyncError(comm, &state));
  return state;
}

/// Polls until the communicator is no longer in progress, for at most a minute.
inline ncclResult_t settledStateOf(ncclComm_t comm) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  ncclResult_t state = ncclInProgress;
  while ((state = stateOf(comm)) == ncclInProgress && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return state;
}

}  // namespace tutti::test
