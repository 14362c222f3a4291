// Texts that nvcc does not write, or not often: what is not known is refused by name, what is known is read.
#include "tests/cuda_emulator/probe.h"
#include "tests/cuda_emulator/ptx_text.h"
#include "tutti/error.h"

namespace tutti::emulator {
namespace {

std::string refusal(const std::string& body) {
  try {
    Module::load(kernelText(body))->prepare();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PtxParser, refusesWhatItDoesNotKnowByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"frobnicate.b32 %r1, %r2;", "frobnicate.b32 %r1, %r2"},
      {"add.rounded.s32 %r1, %r2, %r3;", ".rounded"},
      {"cp.async.bulk.commit_group;", "cp.async.bulk.commit_group"},
      {"mov.u32 %r1, %envreg2;", "grid-wide synchronisation"},
      {"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 %r1, %r2, %r3, %r4;", "mma"},
      {"ld.global.wide.u32 %r1, [%rd1];", ".wide"},
      {"mov.u32 %r1, %nosuchregister;", "%nosuchregister"},
      {"bra nowhere;", "label"},
      {"setp.approximately.s32 %p1, %r1, %r2;", "comparison"},
      {"cvt.rn.f16x2.f64 %r1, %fd1;", "cvt.rn.f16x2.f64"},
      {"atom.global.mul.u32 %r1, [%rd1], %r2;", "atom.global.mul.u32"},
      {"shfl.bfly.b32 %r1, %r2, %r3, %r4;", ".sync expected"}};
  for (const auto& [body, part] : cases) {
    const std::string message = refusal(std::string("mov.u32 %r2, 0;\n") + body);
    EXPECT_NE(message.find("kernel k, PTX line 17"), std::string::npos) << body << ": " << message;
    EXPECT_NE(message.find(part), std::string::npos) << body << ": " << message;
  }
  EXPECT_NE(refusal("add.s32 %r1 %r2;").find("line 16"), std::string::npos);
  EXPECT_THROW(Module::load(".version 8.0\n.gibberish x;\n"), Error);
  EXPECT_EQ(refusal("mov.u32 %r2, 0;"), "");
}

/// Runs the body, which leaves its result in 16 words at [%rd1].
std::vector<std::uint32_t> wordsOf(const std::string& body) {
  std::vector<std::uint32_t> words(16);
  runKernel(*Module::load(kernelText(body)), "k", shape(1, 1), words.data());
  return words;
}

TEST(PtxParser, readsScopesLabelsAndTables) {
  const auto words = wordsOf(R"(
mov.u32 %r1, 7; mov.u32 %r2, 1; // two on a line
{ .reg .b32 %r1; .reg .pred p; mov.u32 %r1, 9; setp.eq.u32 p, %r1, 9; @!p bra AGAIN; add.u32 %r2, %r2, %r1; AGAIN: }
{ .reg .pred p; setp.eq.u32 p, %r1, 9; @p bra AGAIN; add.u32 %r2, %r2, 100; AGAIN: }
st.global.v2.u32 [%rd1], {%r1, %r2};
mov.u32 %r3, 2;
TABLE: .branchtargets ONE, TWO, THREE;
brx.idx %r3, TABLE;
ONE: st.global.u32 [%rd1+8], 1; bra.uni DONE;
TWO: st.global.u32 [%rd1+8], 2; bra.uni DONE;
/* in between */
THREE: st.global.u32 [%rd1+8], 3;
DONE:
mov.b64 %rd2, {%r1, %r2}; mov.b64 {%r4, _}, %rd2; st.global.u32 [%rd1+12], %r4;
mov.f32 %f1, 0f40490FDB; mov.f32 %f2, 2.5; add.f32 %f3, %f1, %f2; st.global.f32 [%rd1+16], %f3;
)");
  EXPECT_EQ(words[0], 7u);
  EXPECT_EQ(words[1], 110u);
  EXPECT_EQ(words[2], 3u);
  EXPECT_EQ(words[3], 7u);
  float sum = 0;
  std::memcpy(&sum, &words[4], sizeof sum);
  EXPECT_EQ(sum, 3.14159274f + 2.5f);
}

TEST(PtxParser, movesSixteenBytesAtOnce) {
  const auto words = wordsOf(R"(
.reg .b128 %rq<3>;
mov.u64 %rd2, 0x0000000200000001; mov.u64 %rd3, 0x0000000400000003;
mov.b128 %rq0, {%rd2, %rd3};
st.global.b128 [%rd1], %rq0;
ld.relaxed.sys.global.b128 %rq1, [%rd1];
st.release.sys.global.b128 [%rd1+16], %rq1;
mov.b128 {%rd4, %rd5}, %rq1;
st.volatile.global.v2.u64 [%rd1+32], {%rd5, %rd4};
)");
  EXPECT_EQ(words, (std::vector<std::uint32_t>{1, 2, 3, 4, 1, 2, 3, 4, 3, 4, 1, 2, 0, 0, 0, 0}));
}

TEST(PtxParser, bitOperationsByTheBook) {
  const auto words = wordsOf(R"(
mov.u32 %r1, 0x80ff1234; mov.u32 %r2, 0x00c0ffee;
bfe.u32 %r3, %r1, 28, 8; st.global.u32 [%rd1], %r3;
bfe.s32 %r3, %r1, 16, 8; st.global.u32 [%rd1+4], %r3;
bfi.b32 %r3, %r2, %r1, 8, 12; st.global.u32 [%rd1+8], %r3;
bfind.u32 %r3, %r2; st.global.u32 [%rd1+12], %r3;
bfind.shiftamt.s32 %r3, %r1; st.global.u32 [%rd1+16], %r3;
lop3.b32 %r3, %r1, %r2, 0xff00ff00, 0xe8; st.global.u32 [%rd1+20], %r3;
prmt.b32 %r3, %r1, %r2, 0x9f53; st.global.u32 [%rd1+24], %r3;
shf.l.clamp.b32 %r3, %r1, %r2, 40; st.global.u32 [%rd1+28], %r3;
shl.b32 %r3, %r1, 33; st.global.u32 [%rd1+32], %r3;
shr.s32 %r3, %r1, 99; st.global.u32 [%rd1+36], %r3;
slct.u32.s32 %r3, 5, 6, %r1; st.global.u32 [%rd1+40], %r3;
add.sat.s32 %r3, 0x7fffffff, 9; st.global.u32 [%rd1+44], %r3;
cvt.sat.u8.s32 %r3, 300; st.global.u32 [%rd1+48], %r3;
prmt.b32.rc16 %r3, %r1, %r2, 1; st.global.u32 [%rd1+52], %r3;
bmsk.clamp.b32 %r3, 4, 8; st.global.u32 [%rd1+56], %r3;
)");
  EXPECT_EQ(words, (std::vector<std::uint32_t>{0x8, 0xffffffff, 0x80ffee34, 23, 1, 0x80c0ff24, 0x0000ff80,
                                               0x80ff1234, 0, 0xffffffff, 6, 0x7fffffff, 255, 0x80ff80ff,
                                               0xff0, 0}));
}

}  // namespace
}  // namespace tutti::emulator
