// A C++ program over the C++ wrapper: sums the ranks' numbers, alone or under tutti-run.
#include <exception>
#include <iostream>
#include <vector>

#include "tutti/tutti.h"

int main() {
  try {
    int version = 0;
    tutti::check(ncclGetVersion(&version));
    tutti::Comm comm = tutti::Comm::fromEnvironment();
    std::vector<double> values(7, comm.rank() + 1);
    comm.allReduce(values.data(), values.data(), values.size(), ncclSum);
    const std::vector<double> expected(7, comm.size() * (comm.size() + 1) / 2);
    if (version != NCCL_VERSION_CODE || values != expected) {
      std::cerr << "consumer_cc: version " << version << ", sum " << values[0] << " where " << expected[0]
                << " is right\n";
      return 1;
    }
    std::cout << "consumer_cc: rank " << comm.rank() << " of " << comm.size() << ": all-reduce is right\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "consumer_cc: " << error.what() << '\n';
    return 1;
  }
}
