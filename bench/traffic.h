// Who sends how much to whom in alltoallv_perf. The patterns, and the variables that choose them, are those
// of nccl-tests:
//
//   NCCL_TESTS_ALLTOALLV_SPREAD        0 to 1, default 1. 0: as much to every rank; 1: in proportion to the
//                                      distance (to - from) mod n, so nothing to oneself; between: a mixture
//   NCCL_TESTS_ALLTOALLV_MATRIX_FILE   bytes from rank i to rank j in row i, column j; at least as many rows
//   as
//                                      there are ranks, and as many columns
//   NCCL_TESTS_ALLTOALLV_MATRIX_SCALE  multiplies all of these, default 1
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tutti::perf {

class Traffic {
 public:
  /// `spread`: see above.
  explicit Traffic(double spread) : spread_(spread) {}
  /// Numbers in rows, such as a file of them holds. Throws std::invalid_argument, naming the row.
  static Traffic ofMatrix(const std::string& text, double scale);
  /// Throws std::invalid_argument, naming the variable.
  static Traffic fromEnvironment();

  /// Bytes from one rank to another, a multiple of 16, where a rank sends `total_bytes` to all together; a
  /// matrix says by itself how much.
  std::size_t bytes(int from, int to, int nranks, std::size_t total_bytes) const;

  /// How many ranks a matrix is for, at most; 0: no matrix.
  int matrixRanks() const { return static_cast<int>(matrix_.size()); }

 private:
  double spread_;
  std::vector<std::vector<std::size_t>> matrix_;
};

}  // namespace tutti::perf
