// Runs the *_perf programs and reads what they print.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/command.h"

namespace tutti::perf {

using test::CommandResult;
using test::runCommand;
using Arguments = std::vector<std::string>;

inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no \"" << part << "\" in:\n" << text;
}

inline testing::AssertionResult matches(const std::string& text, const std::string& expression) {
  if (std::regex_search(text, std::regex(expression))) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "nothing like \"" << expression << "\" in:\n" << text;
}

/// Path of a program of this build.
inline std::string binary(const std::string& program) { return test::programFolder() + "/" + program; }

/// For a run that takes seconds, on a machine that is busy with others.
inline constexpr std::chrono::seconds kPatience{240};

/// The launcher, which lets ranks say their part for so long once one of them has failed.
inline Arguments withLauncher(int nranks) {
  return {"tutti-run", "--kill-after", "60", "--no-prefix", "-n", std::to_string(nranks)};
}

/// Runs `program` under tutti-run.
inline CommandResult launched(int nranks, const std::string& program, const Arguments& arguments,
                              const std::map<std::string, std::string>& environment = {}) {
  Arguments all = withLauncher(nranks);
  all.push_back(binary(program));
  all.insert(all.end(), arguments.begin(), arguments.end());
  return runCommand(all, environment, kPatience);
}

inline CommandResult alone(const std::string& program, Arguments arguments) {
  arguments.insert(arguments.begin(), binary(program));
  return runCommand(arguments, {}, kPatience);
}

/// The words of each row of the table.
inline std::vector<Arguments> rowsOf(const std::string& out) {
  std::vector<Arguments> rows;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    rows.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return rows;
}

/// A run that found nothing wrong, with a table of `rows` rows.
inline void expectGood(const CommandResult& result, int rows) {
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(contains(result.out, "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "));
  const std::vector<Arguments> table = rowsOf(result.out);
  EXPECT_EQ(static_cast<int>(table.size()), rows) << result.out;
  for (const Arguments& row : table) {
    ASSERT_EQ(row.size(), 13U) << result.out;
    EXPECT_EQ(row[8], "0");
    EXPECT_EQ(row[12], "0");
  }
}

inline Arguments operator+(Arguments left, const Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// As expectGood, where in place is timed but not checked.
inline void expectGoodOutOfPlace(const CommandResult& result, int rows) {
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.err, "");
  const std::vector<Arguments> table = rowsOf(result.out);
  EXPECT_EQ(static_cast<int>(table.size()), rows) << result.out;
  for (const Arguments& row : table) {
    ASSERT_EQ(row.size(), 13U) << result.out;
    EXPECT_EQ(row[8], "0");
    EXPECT_EQ(row[12], "N/A");
  }
}

}  // namespace tutti::perf
