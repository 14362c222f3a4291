// Ranks as threads of the test's process.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tutti/tutti.h"

namespace tutti::test {

/// Runs body(rank) on one thread per rank; returns what each threw, "" for nothing.
inline std::vector<std::string> runThreads(int nranks, const std::function<void(int)>& body) {
  std::vector<std::string> errors(static_cast<std::size_t>(nranks));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int rank = 0; rank < nranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

inline ncclUniqueId newId() {
  ncclUniqueId id;
  check(ncclGetUniqueId(&id));
  return id;
}

/// The same with a communicator of all threads.
inline std::vector<std::string> runRanks(int nranks, const std::function<void(Comm&)>& body) {
  const ncclUniqueId id = newId();
  return runThreads(nranks, [&](int rank) {
    Comm comm(nranks, id, rank);
    body(comm);
  });
}

/// A vector of empty strings, to compare with.
inline std::vector<std::string> noErrors(int nranks) {
  return std::vector<std::string>(static_cast<std::size_t>(nranks));
}

}  // namespace tutti::test
