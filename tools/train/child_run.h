// Runs this program on several ranks, as a user would with tutti-run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::train {

/// Starts `tutti-run -n ranks tutti-train arguments...`, the programs beside this one, and waits. What they
/// print is dropped, what they complain about passes. They end with this process. Throws std::runtime_error,
/// with the status, unless they succeed.
void runOnRanks(std::size_t ranks, const std::vector<std::string>& arguments);

/// A file in memory, so that nothing is left behind however this process ends.
class ScratchFile {
 public:
  /// Throws std::system_error.
  ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile();

  /// Where this user's processes can write it while this object lives.
  std::string path() const;
  /// All that was written. Throws std::system_error.
  std::string content() const;

 private:
  int fd_;
};

}  // namespace tutti::train
