// How things of PTX are called in C++.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tutti::emulator::ptx {

/// "s32" for "s32", "u32" for "b32", "bool" for "pred", "f32" for "f32": how an operation reads its operand.
std::string cppType(std::string_view type);
/// The unsigned integer that a register of this type is, "bool" for a predicate; empty for an unknown type.
std::string storageType(std::string_view type);
bool isFloatType(std::string_view type);
/// f16x2 or bf16x2: "f16" or "bf16"; else empty.
std::string_view halfOfPair(std::string_view type);
int bitsOfType(std::string_view type);

/// As its author wrote it: "scale(float*, int)" for "_Z5scalePfi". What is not mangled stays as it is.
std::string readableName(std::string_view name);

std::string registerName(std::string_view name);
/// A variable in memory: parameter or local.
std::string memoryName(std::string_view name);
std::string functionName(std::string_view name);
/// The symbol of a constant that holds a device function's address, for variables initialised with it.
std::string addressName(std::string_view name);
std::string entryName(std::string_view name);

/// The expression for %tid.x and its kind; nothing when it is no special register that is known.
std::optional<std::string> specialRegister(std::string_view name);

}  // namespace tutti::emulator::ptx
