#include "runtime/core/shared_library.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(SharedLibrary, OpensTheFirstOfItsNamesThatIsThere) {
  SharedLibrary library({"libtutti_never_made.so.1", "libm.so.6"});
  double (*root)(double) = nullptr;
  library.find(root, "sqrt");
  EXPECT_EQ(library.problem(), "");
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root(49.0), 7.0);
}

TEST(SharedLibrary, NamesTheFirstSymbolThatIsMissing) {
  SharedLibrary library({"libm.so.6"});
  double (*missing)(double) = nullptr;
  double (*root)(double) = nullptr;
  library.findIfThere(missing, "tutti_optional");
  EXPECT_EQ(library.problem(), "");
  library.find(missing, "tutti_first");
  library.find(missing, "tutti_second");
  library.find(root, "sqrt");
  EXPECT_EQ(library.problem(), "libm.so.6 has no tutti_first");
  EXPECT_EQ(missing, nullptr);
  EXPECT_NE(root, nullptr);
}

TEST(SharedLibrary, SaysOfEveryNameWhyItCannotBeOpened) {
  SharedLibrary library({"libtutti_never_made.so.1", "libtutti_never_made.so"});
  // Nothing is looked up in the program instead, which has this one.
  void* (*reserve)(std::size_t) = [](std::size_t) -> void* { return nullptr; };
  library.find(reserve, "malloc");
  EXPECT_EQ(reserve, nullptr);
  EXPECT_EQ(library.problem(),
            "libtutti_never_made.so.1: cannot open shared object file: No such file or directory; "
            "libtutti_never_made.so: cannot open shared object file: No such file or directory");
}

}  // namespace
}  // namespace tutti
