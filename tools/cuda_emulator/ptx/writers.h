// The instructions by subject: each table maps opcodes to how they are written.
#pragma once

#include <map>
#include <string_view>

#include "tools/cuda_emulator/ptx/instruction_writer.h"

namespace tutti::emulator::ptx {

using WriterTable = std::map<std::string_view, Write>;

const WriterTable& integerWriters();
const WriterTable& floatWriters();
const WriterTable& conversionWriters();
const WriterTable& comparisonWriters();
const WriterTable& memoryWriters();
const WriterTable& atomicWriters();
const WriterTable& controlWriters();
const WriterTable& synchronisationWriters();

/// Arithmetic opcodes that integers and floats share, on a float type that was taken already.
void writeFloatArithmetic(InstructionWriter& w, std::string_view type);

/// The host's memory order of .relaxed, .acquire, ..., with the scope taken too; empty where none is written.
std::string_view takeOrder(InstructionWriter& w);

/// Cache and eviction hints, which change nothing here.
void takeHints(InstructionWriter& w);

}  // namespace tutti::emulator::ptx
