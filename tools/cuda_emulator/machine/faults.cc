#include "tools/cuda_emulator/machine/faults.h"

#include <fmt/format.h>
#include <ucontext.h>

#include <array>
#include <csignal>
#include <memory>
#include <mutex>

#include "tools/cuda_emulator/machine/block.h"
#include "tools/cuda_emulator/machine/launch.h"

namespace tutti::emulator {
namespace {

thread_local const CudaThread* running = nullptr;

struct MachineState {
  std::uintptr_t instruction = 0;
  std::uintptr_t stack = 0;
};

MachineState stateOf(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
          static_cast<std::uintptr_t>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {machine.pc, machine.sp};
#else
  return {};
#endif
}

/// Only device code may be unwound from any of its instructions: it holds nothing that has to be given back.
bool isDeviceCode(std::uintptr_t instruction) {
  if (running == nullptr) return false;
  const LaunchPlan& plan = running->block->launch().plan();
  return instruction >= plan.code_begin && instruction < plan.code_end;
}

void handle(int signal, siginfo_t* fault, void* context) {
  const MachineState state = stateOf(context);
  if (!isDeviceCode(state.instruction)) {
    // The instruction faults again and ends the process as it would have without us.
    ::signal(signal, SIG_DFL);
    return;
  }
  const auto address = reinterpret_cast<std::uintptr_t>(fault->si_addr);
  constexpr std::uintptr_t kNear = std::uintptr_t{64} * 1024;
  const bool full = address - state.stack + kNear < 2 * kNear;
  running->block->fail(*running,
                       fmt::format("access to {:#x}, where no memory is{}", address,
                                   full ? " (its stack is full: recursion or large local arrays)" : ""));
}

void install(int signal) {
  struct sigaction now {};
  sigaction(signal, nullptr, &now);
  if (now.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_sigaction = handle;
  // The handler leaves by an exception: nothing would unblock the signal again.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  sigaction(signal, &ours, nullptr);
}

/// This OS thread's own stack for signals, unless it has one.
class SignalStack {
 public:
  SignalStack() {
    stack_t now{};
    sigaltstack(nullptr, &now);
    if ((now.ss_flags & SS_DISABLE) == 0) return;
    memory_ = std::make_unique<std::array<char, kBytes>>();
    stack_t ours{};
    ours.ss_sp = memory_->data();
    ours.ss_size = kBytes;
    sigaltstack(&ours, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;
  ~SignalStack() {
    if (memory_ == nullptr) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{64} * 1024;  // unwinding takes the most of it
  std::unique_ptr<std::array<char, kBytes>> memory_;
};

}  // namespace

void deviceCodeRuns(const CudaThread* thread) { running = thread; }

void prepareForFaults() {
  static std::once_flag once;
  std::call_once(once, [] {
    install(SIGSEGV);
    install(SIGBUS);
  });
  thread_local const SignalStack stack;
}

}  // namespace tutti::emulator
