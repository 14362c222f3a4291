// The C++ compiler of the machine that the emulator runs on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tutti::emulator {

/// What tells compilers and their options apart, without running one. Throws Error when there is none:
/// TUTTI_EMULATOR_CXX, else g++ or c++ in PATH.
std::string compilerIdentity();

/// Compiles the sources, two at a time, into one shared object. Throws Error with the compiler's first words.
void compileShared(const std::vector<std::filesystem::path>& sources, const std::filesystem::path& object);

}  // namespace tutti::emulator
