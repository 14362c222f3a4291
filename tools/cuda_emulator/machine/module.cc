#include "tools/cuda_emulator/machine/module.h"

#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "tools/cuda_emulator/machine/device_headers.h"
#include "tools/cuda_emulator/machine/launch.h"
#include "tools/cuda_emulator/machine/native_code.h"
#include "tools/cuda_emulator/machine/races.h"
#include "tools/cuda_emulator/ptx/layout.h"
#include "tools/cuda_emulator/ptx/names.h"
#include "tools/cuda_emulator/ptx/parser.h"
#include "tools/cuda_emulator/ptx/translator.h"
#include "tutti/error.h"

namespace tutti::emulator {
namespace {

class PtxModule;

class PtxKernel final : public Kernel {
 public:
  PtxKernel(const PtxModule& module, const ptx::Function& function, std::size_t shared_bytes);

  const std::string& name() const override { return name_; }
  std::span<const KernelParameter> parameters() const override { return parameters_; }
  std::size_t argumentBytes() const override { return argument_bytes_; }
  std::size_t staticSharedBytes() const override { return shared_bytes_; }
  std::uint32_t maxThreadsPerBlock() const override { return max_threads_; }
  void run(const LaunchShape& shape, const std::byte* arguments) const override;

 private:
  const PtxModule& module_;
  std::string name_;
  std::vector<KernelParameter> parameters_;
  std::size_t argument_bytes_ = 0;
  std::size_t shared_bytes_;
  std::uint32_t max_threads_;
  mutable std::once_flag once_;
  mutable Entry entry_ = nullptr;
  mutable std::string readable_name_;
};

class PtxModule final : public Module {
 public:
  explicit PtxModule(std::string_view text);

  void prepare() const override;
  const Kernel* kernel(std::string_view name) const override;
  std::byte* variable(std::string_view name, std::size_t* bytes) const override;

  /// Prepares the module where nobody did.
  Entry entry(const std::string& name) const {
    prepare();
    return reinterpret_cast<Entry>(code_->symbol(ptx::entryName(name)));
  }
  NativeCode::Range code() const { return code_->code(); }
  u8* const* variables() const { return addresses_.data(); }
  std::span<const MemoryRange> variableRanges() const { return ranges_; }

 private:
  struct Free {
    void operator()(u8* memory) const { std::free(memory); }
  };
  void makeVariables();
  void initialise(const ptx::Variable& variable, u8* memory);
  void build() const;

  std::string text_;  // everything parsed points into it
  ptx::Outline outline_;
  ptx::Layout layout_;
  std::vector<std::unique_ptr<u8, Free>> memory_;
  std::vector<u8*> addresses_;
  std::vector<MemoryRange> ranges_;
  std::map<std::string_view, std::unique_ptr<PtxKernel>> kernels_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<NativeCode> code_;
};

std::size_t alignUp(std::size_t offset, std::size_t align) { return (offset + align - 1) / align * align; }

PtxKernel::PtxKernel(const PtxModule& module, const ptx::Function& function, std::size_t shared_bytes)
    : module_(module),
      name_(function.name),
      shared_bytes_(shared_bytes),
      max_threads_(function.max_threads == 0 ? 1024 : function.max_threads) {
  for (const ptx::Variable& parameter : function.parameters) {
    const std::size_t offset = alignUp(argument_bytes_, parameter.align);
    parameters_.push_back({offset, parameter.bytes()});
    argument_bytes_ = offset + parameter.bytes();
  }
}

void PtxKernel::run(const LaunchShape& shape, const std::byte* arguments) const {
  std::call_once(once_, [this] {
    entry_ = module_.entry(name_);
    readable_name_ = ptx::readableName(name_);
  });
  LaunchPlan plan;
  plan.kernel = readable_name_;
  plan.symbol = name_;
  plan.entry = entry_;
  plan.code_begin = module_.code().begin;
  plan.code_end = module_.code().end;
  plan.shape = shape;
  plan.variables = module_.variables();
  plan.variable_ranges = module_.variableRanges();
  plan.static_shared_bytes = shared_bytes_;
  if (plan.blockCount() == 0 || plan.threadsPerBlock() == 0 || plan.threadsPerBlock() > max_threads_) {
    throw Error(ncclInvalidUsage,
                fmt::format("kernel {}: a launch of {} blocks of {} threads; 1 to {} are possible",
                            plan.kernel, plan.blockCount(), plan.threadsPerBlock(), max_threads_));
  }
  // Parameters may have any alignment up to this.
  struct alignas(16) Unit {
    u8 bytes[16];
  };
  std::vector<Unit> copy(argument_bytes_ / sizeof(Unit) + 1);
  if (argument_bytes_ != 0) std::memcpy(copy.data(), arguments, argument_bytes_);
  plan.arguments = copy.front().bytes;
  plan.argument_bytes = argument_bytes_;
  const MachineCode machine;
  Launch(plan).run();
}

PtxModule::PtxModule(std::string_view text)
    : text_(text), outline_(ptx::parseOutline(text_)), layout_(ptx::layOut(outline_)) {
  makeVariables();
  for (const ptx::Function& function : outline_.functions) {
    if (!function.entry || function.body.empty()) continue;
    const std::size_t shared = layout_.entry_shared_bytes.at(function.name);
    kernels_.emplace(function.name, std::make_unique<PtxKernel>(*this, function, shared));
  }
}

void PtxModule::makeVariables() {
  constexpr std::size_t kLeastAlign = 256;  // as cudaMalloc's
  for (const ptx::Variable* variable : layout_.variables) {
    if (variable->external) {
      throw Error(ncclInvalidUsage,
                  fmt::format("variable {} is declared but not defined: code linked from several "
                              "device objects cannot be emulated",
                              variable->name));
    }
    const std::size_t align = std::max(kLeastAlign, variable->align);
    const std::size_t bytes = alignUp(std::max<std::size_t>(variable->bytes(), 1), align);
    memory_.emplace_back(static_cast<u8*>(std::aligned_alloc(align, bytes)));
    std::memset(memory_.back().get(), 0, bytes);
    addresses_.push_back(memory_.back().get());
    ranges_.push_back({reinterpret_cast<u64>(addresses_.back()), variable->bytes()});
  }
  // Only now does every symbol have an address.
  for (std::size_t i = 0; i < addresses_.size(); ++i) initialise(*layout_.variables[i], addresses_[i]);
}

/// Words that hold addresses of functions wait for build().
void PtxModule::initialise(const ptx::Variable& variable, u8* memory) {
  for (const ptx::Initialiser& word : variable.initialisers) {
    std::uint64_t value = word.bits;
    if (const auto found = layout_.variable_index.find(word.symbol); found != layout_.variable_index.end()) {
      value = reinterpret_cast<std::uintptr_t>(addresses_[found->second]) +
              static_cast<std::uint64_t>(word.addend);
      value = (value & word.mask) >> std::countr_zero(word.mask);
    }
    std::memcpy(memory, &value, std::min(sizeof value, variable.element_bytes));
    memory += variable.element_bytes;
  }
}

void PtxModule::prepare() const {
  std::call_once(once_, [this] { build(); });
}

void PtxModule::build() const {
  const std::string key = fmt::format("{} {}", ptx::kTranslatorVersion, text_);
  code_ = NativeCode::make(key, deviceHeaders(), [this] { return ptx::translate(outline_, layout_); });
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    u8* at = addresses_[i];
    for (const ptx::Initialiser& word : layout_.variables[i]->initialisers) {
      const bool function = !word.symbol.empty() && !layout_.variable_index.contains(word.symbol);
      if (function) {
        std::uint64_t value = 0;
        std::memcpy(&value, code_->symbol(ptx::addressName(word.symbol)), sizeof value);
        value = (value & word.mask) >> std::countr_zero(word.mask);
        std::memcpy(at, &value, std::min(sizeof value, layout_.variables[i]->element_bytes));
      }
      at += layout_.variables[i]->element_bytes;
    }
  }
}

const Kernel* PtxModule::kernel(std::string_view name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : found->second.get();
}

std::byte* PtxModule::variable(std::string_view name, std::size_t* bytes) const {
  const auto found = layout_.variable_index.find(name);
  if (found == layout_.variable_index.end()) return nullptr;
  if (bytes != nullptr) *bytes = layout_.variables[found->second]->bytes();
  return reinterpret_cast<std::byte*>(addresses_[found->second]);
}

}  // namespace

std::shared_ptr<Module> Module::load(std::string_view ptx) { return std::make_shared<PtxModule>(ptx); }

}  // namespace tutti::emulator
