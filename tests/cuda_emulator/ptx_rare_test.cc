// Instructions that few programs use, most by way of CUDA's own functions: doubles rounded otherwise than to
// the nearest, vectors of atomic operations, copies into shared memory, sums and differences of packed
// integers.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/cuda_emulator/probe.h"
#include "tests/cuda_emulator/ptx_text.h"

namespace tutti::emulator {
namespace {

/// Runs the body with these words at [%rd1] and gives back what they are then.
std::vector<std::uint32_t> wordsAfter(const std::string& body, std::vector<std::uint32_t> words) {
  runKernel(*Module::load(kernelText(body)), "k", shape(1, 1), words.data());
  return words;
}

__extension__ using Exact = __float128;  // 113 bits: sums and products of the doubles below are exact

/// What is left of the exact result beyond r, up to a positive factor.
struct Case {
  const char* instruction;
  Exact (*beyond)(Exact a, Exact b, Exact c, Exact r);
};

const Case kCases[] = {
    {"add.{}.f64 %fd0, %fd1, %fd2;", [](Exact a, Exact b, Exact, Exact r) { return a + b - r; }},
    {"sub.{}.f64 %fd0, %fd1, %fd2;", [](Exact a, Exact b, Exact, Exact r) { return a - b - r; }},
    {"mul.{}.f64 %fd0, %fd1, %fd2;", [](Exact a, Exact b, Exact, Exact r) { return a * b - r; }},
    {"fma.{}.f64 %fd0, %fd1, %fd2, %fd3;", [](Exact a, Exact b, Exact c, Exact r) { return a * b + c - r; }},
    {"div.{}.f64 %fd0, %fd1, %fd2;",
     [](Exact a, Exact b, Exact, Exact r) { return b > 0 ? a - r * b : r * b - a; }},
    {"rcp.{}.f64 %fd0, %fd2;", [](Exact, Exact b, Exact, Exact r) { return b > 0 ? 1 - r * b : r * b - 1; }},
    {"abs.f64 %fd1, %fd1; sqrt.{}.f64 %fd0, %fd1;",
     [](Exact a, Exact, Exact, Exact r) { return (a < 0 ? -a : a) - r * r; }},
    {"cvt.rzi.s64.f64 %rd2, %fd3; cvt.{}.f64.s64 %fd0, %rd2;",
     [](Exact, Exact, Exact c, Exact r) { return static_cast<Exact>(static_cast<std::int64_t>(c)) - r; }},
};

std::string with(std::string text, const std::string& rounding) {
  return text.replace(text.find("{}"), 2, rounding);
}

/// `result` is on the right side of the exact one, and the next double towards that is beyond it. `rest`:
/// what is left of the exact result beyond a double.
template <class Rest>
void expectRounded(double result, const std::string& rounding, const Rest& rest) {
  const Exact left = rest(result);
  if (left == 0) return;
  const double infinity = std::numeric_limits<double>::infinity();
  const bool up = rounding == "rp" || (rounding == "rz" && result < 0);
  EXPECT_TRUE(up ? left < 0 : left > 0);
  const Exact next = rest(std::nextafter(result, up ? -infinity : infinity));
  EXPECT_TRUE(up ? next > 0 : next < 0) << "not the nearest";
}

void checkRounding(const Case& wanted, const std::string& rounding, std::mt19937_64& random) {
  const auto number = [&](int exponent) {
    const auto bits = static_cast<std::int64_t>(random() >> 11);
    return std::ldexp(static_cast<double>(random() % 2 == 0 ? bits : -bits), exponent);
  };
  const auto module =
      Module::load(kernelText("ld.global.v2.f64 {%fd1, %fd2}, [%rd1]; ld.global.f64 %fd3, [%rd1+16];\n" +
                              with(wanted.instruction, rounding) + "\nst.global.f64 [%rd1+24], %fd0;"));
  for (int run = 0; run < 200; ++run) {
    alignas(16) double values[4] = {number(-30), number(-28), number(0), 0};
    if (run == 0) values[1] = values[0];  // a difference of 0
    runKernel(*module, "k", shape(1, 1), &values[0]);
    SCOPED_TRACE(std::string(wanted.instruction) + " " + rounding + ", run " + std::to_string(run));
    expectRounded(values[3], rounding,
                  [&](double r) { return wanted.beyond(values[0], values[1], values[2], r); });
  }
}

TEST(PtxRare, doublesInEveryRounding) {
  std::mt19937_64 random(7);
  for (const Case& each : kCases) {
    for (const char* const rounding : {"rz", "rm", "rp"}) checkRounding(each, rounding, random);
  }
  EXPECT_EQ(std::ldexp(1.0, -60) + 1.0, 1.0) << "the host's own rounding is back";
}

TEST(PtxRare, vectorsOfAtomicOperations) {
  const auto bits = [](float x) {
    std::uint32_t result = 0;
    std::memcpy(&result, &x, sizeof x);
    return result;
  };
  std::vector<std::uint32_t> words{bits(1), bits(2), bits(3), bits(4), 0, 0, 0, 0};
  words = wordsAfter(R"(
mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mov.f32 %f3, 0f40400000; mov.f32 %f4, 0f40800000;
atom.global.v2.f32.add {%f5, %f6}, [%rd1], {%f4, %f3};
red.global.add.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
st.global.v2.f32 [%rd1+16], {%f5, %f6};)",
                     words);
  const std::vector<std::uint32_t> expected{bits(6), bits(7), bits(6), bits(8), bits(1), bits(2), 0, 0};
  EXPECT_EQ(words, expected);
}

TEST(PtxRare, asynchronousCopiesIntoSharedMemory) {
  const auto words = wordsAfter(R"(
{ .shared .align 16 .b8 buffer[32];
mov.u32 %r1, buffer;
cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;
cp.async.ca.shared.global [%r1+16], [%rd1], 8, 5;
cp.async.ca.shared::cta.global [%r1+24], [%rd1+4], 4;
cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;
ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
ld.shared.v2.u32 {%r6, %r7}, [%r1+16];
ld.shared.u32 %r8, [%r1+24]; }
st.global.v4.u32 [%rd1+16], {%r2, %r3, %r4, %r5};
st.global.v2.u32 [%rd1+32], {%r6, %r7};
st.global.u32 [%rd1+40], %r8;)",
                                {0x11111111, 0x22222222, 0x33333333, 0x44444444, 0, 0, 0, 0, 0, 0, 0, 0});
  const std::vector<std::uint32_t> expected{0x11111111, 0x22222222, 0x33333333, 0x44444444,
                                            0x11111111, 0x22222222, 0x33333333, 0x44444444,
                                            0x11111111, 0x22,       0x22222222, 0};
  EXPECT_EQ(words, expected);
}

TEST(PtxRare, packedIntegersAndBits) {
  // a: halves -2 and 3; bytes of b: 4, -5, 6, -7.
  const auto words = wordsAfter(R"(
ld.global.v2.u32 {%r1, %r2}, [%rd1];
dp2a.lo.s32.s32 %r3, %r1, %r2, 100;
dp2a.hi.u32.s32 %r4, %r1, %r2, 100;
vabsdiff4.u32.u32.u32 %r5, %r1, %r2, %r1;
vabsdiff4.u32.u32.u32.add %r6, %r1, %r2, 1000;
vabsdiff2.s32.s32.s32 %r7, %r1, %r2, %r1;
max.s16x2.relu %r8, %r1, %r2;
fns.b32 %r9, 0x88, 0, 2;
fns.b32 %r10, 0x88, 6, -1;
fns.b32 %r11, 0x88, 3, 0;
fns.b32 %r12, 0x88, 0, 3;
st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
st.global.v4.u32 [%rd1+16], {%r7, %r8, %r9, %r10};
st.global.v2.u32 [%rd1+32], {%r11, %r12};)",
                                {0x0003fffe, 0xf906fb04, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(static_cast<std::int32_t>(words[0]), 100 + -2 * 4 + 3 * -5);
  EXPECT_EQ(static_cast<std::int32_t>(words[1]), 100 + 0xfffe * 6 + 3 * -7);
  EXPECT_EQ(words[2], 0xf90304fau);  // |00-f9| |03-06| |ff-fb| |fe-04|
  EXPECT_EQ(words[3], 1000u + 0xf9 + 3 + 4 + 0xfa);
  EXPECT_EQ(words[4], 0x06fd04fau) << "|3 - -1786| = 1789, |-2 - -1276| = 1274";
  EXPECT_EQ(words[5], 0x00030000u);
  EXPECT_EQ(words[6], 7u);
  EXPECT_EQ(words[7], 3u);
  EXPECT_EQ(words[8], 3u);
  EXPECT_EQ(words[9], 0xffffffffu);
}

/// As nvcc writes them in functions such as hexp.
TEST(PtxRare, directivesWithoutSpace) {
  const auto words = wordsAfter(R"(
{.reg.b16         h,r;
.reg.b32 f, C;
mov.u32 C, 77; mov.b16 h, 5; mov.b16 r, h; cvt.u32.u16 f, r; add.u32 %r1, f, C;}
st.global.u32 [%rd1], %r1;)",
                                {0});
  EXPECT_EQ(words[0], 82u);
}

}  // namespace
}  // namespace tutti::emulator
