// What rank 0 says while it trains.
#pragma once

#include <fmt/format.h>

#include <cstdio>

#include "tools/train/options.h"
#include "tools/train/record.h"

namespace tutti::train {

/// Prints on rank 0 only; the other ranks' are silent.
class Console {
 public:
  Console(std::size_t rank, std::FILE* out) : rank_(rank), out_(out) {}

  void header(const Options& options, const Corpus& corpus, const RunConfiguration& configuration) const;
  void start(const StepRecord& record) const;
  void step(const StepRecord& record) const;
  void diverged(const StepRecord& record) const;
  void summary(const RunRecord& record) const;
  void verify(const VerifyResult& result) const;
  /// The last line.
  void verdict(const RunRecord& record) const;
  void wrote(const std::string& what, const std::string& path) const;

 private:
  void payload(const RunRecord& record) const;
  void network(const RunRecord& record) const;

  template <class... Arguments>
  void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    if (rank_ == 0) fmt::print(out_, "{}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  std::size_t rank_;
  std::FILE* out_;
};

}  // namespace tutti::train
