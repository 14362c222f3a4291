#include "runtime/core/system_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/harness/scratch_directory.h"

namespace tutti {
namespace {

TEST(SystemFiles, ReadTheFirstLineHoweverLong) {
  const test::ScratchDirectory folder;
  EXPECT_EQ(firstLine(folder.write("two", "one\ntwo\n")), "one");
  EXPECT_EQ(firstLine(folder.write("open", "no end")), "no end");
  const std::string longer(10000, 'x');
  EXPECT_EQ(firstLine(folder.write("long", longer + "\nand more")), longer);
  EXPECT_EQ(firstLine(folder.path() + "/none"), "");
  EXPECT_EQ(firstLine(folder.path()), "") << "a folder";
}

TEST(SystemFiles, ReadNumbers) {
  const test::ScratchDirectory folder;
  EXPECT_EQ(numberIn(folder.write("plain", "25000\n"), 7), 25000);
  EXPECT_EQ(numberIn(folder.write("negative", "-1\n"), 7), -1);
  EXPECT_EQ(numberIn(folder.write("with_unit", " 16 lanes\n"), 7), 16);
  EXPECT_EQ(numberIn(folder.write("word", "Unknown\n"), 7), 7);
  EXPECT_EQ(numberIn(folder.path() + "/none", 7), 7);
}

TEST(SystemFiles, ListsAreOfNumbersAndRanges) {
  EXPECT_EQ(numbersOfList("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(numbersOfList("5,1-2,2"), (std::vector<int>{1, 2, 5}));
  EXPECT_EQ(numbersOfList("3-9", 5), (std::vector<int>{3, 4, 5}));
  for (const char* none : {"", "-3", "1-", "a", "1;2", "99999999999"})
    EXPECT_TRUE(numbersOfList(none).empty()) << none;
}

TEST(SystemFiles, EntriesAreSorted) {
  const test::ScratchDirectory folder;
  for (const char* name : {"b", "c", "a"}) folder.write(name, "");
  std::vector<std::string> names;
  for (const auto& entry : entriesOf(folder.path())) names.push_back(entry.filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(entriesOf(folder.path() + "/none").empty());
}

}  // namespace
}  // namespace tutti
