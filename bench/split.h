// The groups that a run is divided into: NCCL_TESTS_SPLIT, as nccl-tests has it. Each group has a
// communicator of its own, and all work at the same time.
//
//   NCCL_TESTS_SPLIT="MOD 8"   processes with equal number mod 8: GPUs of equal place, across hosts of 8
//   NCCL_TESTS_SPLIT="DIV 8"   8 processes in a row: one host each
//   AND, OR, MOD, DIV or & | % /; the number decimal, 0x... or 0b...
//   NCCL_TESTS_SPLIT_MASK=7    the same as "AND 0x7": a hexadecimal number. It comes first, where both are
//   set
#pragma once

#include <string>

namespace tutti::perf {

/// One process's group. All groups are equally large.
struct GroupPlace {
  int number = 0;     ///< the colour that its processes share
  int processes = 1;  ///< in the group
  int index = 0;      ///< of this process in it, in the order of processes
  int leader = 0;     ///< its first process
};

class Split {
 public:
  /// Everything in one group.
  Split() = default;
  /// `text` as in NCCL_TESTS_SPLIT. Throws std::invalid_argument.
  explicit Split(const std::string& text);
  /// Throws std::invalid_argument, naming the variable.
  static Split fromEnvironment();

  bool divides() const { return operation_ != '\0'; }

  /// Of one of `processes` processes. Throws std::invalid_argument where groups would differ in size, because
  /// then they would not do the same.
  GroupPlace placeOf(int process, int processes) const;

 private:
  int colourOf(int process) const;

  char operation_ = '\0';  ///< & | % /; none
  int value_ = 0;
};

}  // namespace tutti::perf
