// Accesses that are wrong are told with kernel, block, thread and address: by checked kernels every one; by
// others where no memory is mapped.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/command.h"

namespace tutti::test {
namespace {

CommandResult run(const std::string& kind, bool checked) {
  return runCommand({"tutti-run", "-n", "1", "--emulate-gpus", "1", "--no-prefix",
                     std::string(TUTTI_TEST_DIR) + "/memory_errors", kind},
                    {{"TUTTI_EMULATED_MEMCHECK", checked ? "1" : "0"}});
}

struct Mistake {
  const char* kind;
  std::vector<const char*> words;
};

void expectTold(const CommandResult& result, const std::vector<const char*>& words) {
  EXPECT_EQ(result.out, "cudaErrorIllegalAddress\n") << result.err;
  for (const char* part : words)
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " is missing in: " << result.err;
}

class CheckedMemory : public testing::TestWithParam<Mistake> {};

TEST_P(CheckedMemory, MistakesAreTold) { expectTold(run(GetParam().kind, true), GetParam().words); }

INSTANTIATE_TEST_SUITE_P(
    , CheckedMemory,
    testing::Values(
        Mistake{"past-end",
                {"write", "thread (3, 0, 0)", "access of 4 bytes at 0x",
                 "0 bytes past the end of the 1000 bytes", "of cudaMalloc"}},
        Mistake{"before-begin", {"thread (3, 0, 0)", "4 bytes before the 1000 bytes at 0x"}},
        Mistake{"half-inside",
                {"readVector", "access of 16 bytes", "only 8 of them are within the 1000 bytes at 0x"}},
        Mistake{"atomic-past-end", {"add", "access of 4 bytes", "0 bytes past the end of the 100 bytes"}},
        Mistake{"freed", {"inside of the 1000 bytes at 0x", "of cudaMalloc, which were given back"}},
        Mistake{"freed-and-used-again", {"inside of the 1000 bytes at 0x", "given back"}},
        Mistake{"freed-async", {"of cudaMallocAsync, which were given back"}},
        Mistake{"unregistered", {"the 256 bytes at 0x", "of cudaHostRegister, which were given back"}},
        Mistake{"shared", {"writeShared", "0 bytes past the end of the block's shared memory of 128 bytes"}},
        Mistake{"before-shared", {"4 bytes before the block's shared memory of 128 bytes"}},
        Mistake{"dynamic-shared", {"0 bytes past the end of the block's shared memory of 40 bytes"}},
        Mistake{"no-shared", {"0 bytes past the end of the block's shared memory of 0 bytes"}},
        Mistake{"null", {"access of 4 bytes at 0x14: a null pointer"}},
        Mistake{"host", {"memory that CUDA does not know"}},
        Mistake{"variable", {"writeVariable", "0 bytes past the end of a variable of 40 bytes"}}),
    [](const auto& tested) {
      std::string name = tested.param.kind;
      for (char& letter : name) letter = letter == '-' ? '_' : letter;
      return name;
    });

TEST(RightMemory, IsNoMistake) {
  for (const bool checked : {false, true}) {
    const auto result = run("none", checked);
    EXPECT_EQ(result.out, "cudaSuccess\n") << result.err;
    EXPECT_EQ(result.err, "");
  }
}

TEST(UncheckedMemory, WhereNoneIsMappedThatIsTold) {
  expectTold(run("null", false), {"write", "thread (0, 0, 0)", "access to 0x14, where no memory is"});
  expectTold(run("freed", false), {"thread (0, 0, 0)", "where no memory is"});
}

}  // namespace
}  // namespace tutti::test
