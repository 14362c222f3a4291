// What the command lines of the programs here have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tools/device/choice.h"

namespace tutti::perf {

/// A text that `read` understands, or refuses with std::invalid_argument, whose words are shown.
CLI::Option* addText(CLI::App& app, const std::string& flags, const std::string& type,
                     const std::string& help, const std::function<void(const std::string&)>& read);

/// Bytes, as parseSize reads them.
CLI::Option* addSize(CLI::App& app, const std::string& flags, std::size_t& target, const std::string& help);

/// --device.
CLI::Option* addDevice(CLI::App& app, device::Choice& target);

/// The file of a JsonFile.
CLI::Option* addJsonPath(CLI::App& app, const std::string& flags, std::string& target);

/// Reads the command line; `validate` then throws CLI::ParseError for what does not go together. Returns the
/// status to exit with, after --help 0, after bad input 2; nothing: go on. `speaks`: may print.
std::optional<int> parseCommandLine(CLI::App& app, int argc, char** argv,
                                    const std::function<void()>& validate, bool speaks);

}  // namespace tutti::perf
