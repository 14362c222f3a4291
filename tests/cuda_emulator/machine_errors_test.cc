// What goes wrong in a kernel becomes an Error that says where.
#include "tests/cuda_emulator/probe.h"
#include "tutti/error.h"

namespace tutti::emulator {
namespace {

class MachineErrors : public ProbeTest {};

INSTANTIATE_TEST_SUITE_P(Compute, MachineErrors, ::testing::Values(80, 90),
                         ::testing::PrintToStringParamName());

/// What `run` throws; fails the test when it throws nothing.
template <class Run>
std::string errorOf(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

void expectParts(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

TEST_P(MachineErrors, misalignedAccessesNameTheThread) {
  const auto module = loadProbe("errors", GetParam());
  alignas(16) char memory[64] = {};
  alignas(16) unsigned long long out[2] = {};
  EXPECT_NO_THROW(runKernel(*module, "misaligned", shape(1, 32), out, memory + 8));
  expectParts(errorOf([&] { runKernel(*module, "misaligned", shape(1, 32), out, memory + 4); }),
              {"kernel misaligned", "thread (3, 0, 0)", "misaligned access of 8 bytes"});
  EXPECT_NO_THROW(runKernel(*module, "misalignedVector", shape(1, 1), out, memory + 16));
  expectParts(errorOf([&] { runKernel(*module, "misalignedVector", shape(1, 1), out, memory + 8); }),
              {"kernel misalignedVector", "misaligned access of 16 bytes"});
}

TEST_P(MachineErrors, misalignedLoadsOfEveryWidthAndSpace) {
  const auto module = loadProbe("errors", GetParam());
  alignas(16) char memory[64] = {};
  const auto load = [&](int space, int width, int offset) {
    runKernel(*module, "misalignedIn", shape(1, 1), space, width, offset, &memory[0]);
  };
  const auto expectChecked = [&](int space, int width, int offset) {
    SCOPED_TRACE(std::to_string(width) + " bytes in space " + std::to_string(space));
    EXPECT_NO_THROW(load(space, width, width));
    expectParts(
        errorOf([&] { load(space, width, offset); }),
        {"kernel misalignedIn", ("misaligned access of " + std::to_string(width) + " bytes").c_str()});
  };
  for (int space = 0; space < 6; ++space) {
    for (const int width : {2, 4, 8, 16}) {
      expectChecked(space, width, 1);
      expectChecked(space, width, width / 2);
    }
  }
}

TEST_P(MachineErrors, misalignedStoresAndAtomicOperations) {
  const auto module = loadProbe("errors", GetParam());
  alignas(16) char memory[64] = {};
  const int widths[] = {4, 8, 4, 8, 4};
  for (int kind = 0; kind < 5; ++kind) {
    const int width = widths[kind];
    EXPECT_NO_THROW(runKernel(*module, "misalignedUpdate", shape(1, 1), kind, memory + width));
    expectParts(
        errorOf([&] { runKernel(*module, "misalignedUpdate", shape(1, 1), kind, memory + width / 2); }),
        {"kernel misalignedUpdate", ("misaligned access of " + std::to_string(width) + " bytes").c_str()});
  }
}

TEST_P(MachineErrors, trapsAndAssertions) {
  const auto module = loadProbe("errors", GetParam());
  EXPECT_NO_THROW(runKernel(*module, "trapped", shape(2, 64), 64));
  const std::string trapped = errorOf([&] { runKernel(*module, "trapped", shape(1, 64), 5); });
  expectParts(trapped, {"kernel trapped", "thread (5, 0, 0): trapped"});
  EXPECT_TRUE(trapped.ends_with(": trapped")) << trapped;
  EXPECT_NO_THROW(runKernel(*module, "asserted", shape(1, 1), 3));
  expectParts(errorOf([&] { runKernel(*module, "asserted", shape(1, 1), 4); }), {"errors.cu", "x == 3"});
  EXPECT_NO_THROW(runKernel(*module, "trapped", shape(2, 64), 64)) << "an error is over with its launch";
}

TEST_P(MachineErrors, deadlocksNameTheBarrier) {
  const auto module = loadProbe("errors", GetParam());
  expectParts(errorOf([&] { runKernel(*module, "deadlock", shape(1, 64)); }),
              {"kernel deadlock", "barrier 1: 32 of 64", "barrier 2: 32 of 64"});
  expectParts(errorOf([&] { runKernel(*module, "warpDeadlock", shape(1, 32)); }),
              {"kernel warpDeadlock", "barrier 1: 1 of 64"});
}

TEST_P(MachineErrors, aFailedBlockEndsTheOthers) {
  const auto module = loadProbe("errors", GetParam());
  int flag = 0;
  expectParts(errorOf([&] { runKernel(*module, "oneFails", shape(8, 64), &flag); }),
              {"block (2, 0, 0)", "trap"});
}

// A sanitizer reports such accesses itself.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_P(MachineErrors, wildAccessesEndTheLaunchOnly) {
  const auto module = loadProbe("errors", GetParam());
  for (int round = 0; round < 3; ++round) {
    expectParts(errorOf([&] { runKernel(*module, "wild", shape(2, 64), std::uintptr_t{0x1000}); }),
                {"kernel wild", "thread (7, 0, 0)", "access to 0x1014"});
  }
  int out = 0;
  int end = 20;
  EXPECT_NO_THROW(runKernel(*module, "recursion", shape(1, 1), &out, &end));
  end = -1;
  expectParts(errorOf([&] { runKernel(*module, "recursion", shape(1, 2), &out, &end); }),
              {"kernel recursion", "stack is full"});
  EXPECT_NO_THROW(runKernel(*module, "trapped", shape(2, 64), 64));
}
#endif

TEST_P(MachineErrors, impossibleShapesAreRefused) {
  const auto module = loadProbe("errors", GetParam());
  expectParts(errorOf([&] { runKernel(*module, "deadlock", shape(1, 2048)); }), {"kernel deadlock", "2048"});
  expectParts(errorOf([&] { runKernel(*module, "deadlock", shape(0, 32)); }),
              {"kernel deadlock", "0 blocks"});
}

}  // namespace
}  // namespace tutti::emulator
