// Device code as the emulator runs it: a module is what one PTX text became, natively compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace tutti::emulator {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  std::size_t dynamic_shared_bytes = 0;
  std::stop_token stop = {};  ///< its threads end at the next place where they wait
};

/// Where a parameter lies in a kernel's packed arguments, as the PTX declares it.
struct KernelParameter {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// One entry of a module; lives as long as the module. Thread-safe.
class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual const std::string& name() const = 0;
  virtual std::span<const KernelParameter> parameters() const = 0;
  virtual std::size_t argumentBytes() const = 0;
  virtual std::size_t staticSharedBytes() const = 0;
  /// What __launch_bounds__ allows in a block; 1024 where nothing is said.
  virtual std::uint32_t maxThreadsPerBlock() const = 0;

  /// Runs all blocks, all of them at once, each in a thread of its own, and returns when they are done.
  /// `arguments`: argumentBytes() packed bytes. Throws Error, in words, for what would be a sticky launch
  /// error on a GPU: a misaligned access, a trap, an exit out of a barrier that others wait at.
  virtual void run(const LaunchShape& shape, const std::byte* arguments) const = 0;
};

class Module {
 public:
  virtual ~Module() = default;

  /// Reads the kernels' signatures and makes the variables; the kernels themselves wait for prepare(). Throws
  /// Error for a text that it cannot read.
  static std::shared_ptr<Module> load(std::string_view ptx);

  /// Translates, compiles (or takes from the cache) and loads, once; the first run of a kernel does so.
  /// Throws Error naming the kernel and the instruction that it does not know.
  virtual void prepare() const = 0;

  /// nullptr where there is none of that name.
  virtual const Kernel* kernel(std::string_view name) const = 0;
  /// A __device__ or __constant__ variable: its address and size; nullptr where there is none.
  virtual std::byte* variable(std::string_view name, std::size_t* bytes) const = 0;
};

}  // namespace tutti::emulator
