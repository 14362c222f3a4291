#include "runtime/process.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "transports/memory_budget.h"
#include "tutti/error.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxErrorText = 1023;

}  // namespace

Process& Process::instance() {
  static auto* const process = new Process;
  return *process;
}

Process::Process() {
  if (sodium_init() < 0) throw Error(ncclSystemError, "libsodium found no source of randomness");
}

const Settings& Process::settings() {
  const std::scoped_lock lock(mutex_);
  if (!settings_) settings_ = readSettings([](const char* name) { return std::getenv(name); });
  return *settings_;
}

Log& Process::log() {
  LogLevel level = LogLevel::none;
  std::string file;
  try {
    const Settings& known = settings();
    level = known.log_level;
    file = known.log_file;
  } catch (const Error&) {
    // Whoever needs the settings reports it; logging stays off.
  }
  const std::scoped_lock lock(mutex_);
  if (!log_) log_.emplace(level, file);
  return *log_;
}

std::array<std::uint8_t, 16> Process::token() {
  const std::scoped_lock lock(mutex_);
  if (token_pid_ != ::getpid()) {
    token_ = randomToken();
    token_pid_ = ::getpid();
  }
  return token_;
}

void Process::setLastError(const std::string& message) {
  const std::scoped_lock lock(mutex_);
  last_error_ = message.substr(0, kMaxErrorText);
}

std::string Process::lastError() {
  const std::scoped_lock lock(mutex_);
  return last_error_;
}

void* Process::allocate(std::size_t bytes) {
  requireFreeMemory(bytes);
  const std::size_t length = std::max<std::size_t>(bytes, 1);
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(ncclSystemError,
                fmt::format("ncclMemAlloc of {} bytes: {} (errno {})", bytes, std::strerror(errno), errno));
  }
  const std::scoped_lock lock(mutex_);
  allocations_[memory] = length;
  return memory;
}

void Process::release(void* memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocations_.find(memory);
  if (found == allocations_.end()) {
    throw Error(
        ncclInvalidArgument,
        fmt::format("ncclMemFree({}): not the start of memory from ncclMemAlloc, or freed already", memory));
  }
  ::munmap(memory, found->second);
  allocations_.erase(found);
}

}  // namespace tutti
