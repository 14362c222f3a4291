// The five verbs: everything that a collective program may do.
//
//   await(in)               the next slot of this inbound link holds data
//   reserve(out)            the next slot of this outbound link is free (the remote side gave a credit)
//   combine(dsts, srcs, n)  the only data mover: reduces all sources in the order given, stores the result to
//   all
//                           destinations, in one pass; with one source it copies
//   post(out, n)            publishes the reserved slot with n elements in it
//   release(in)             gives the awaited slot back
//
// A slot may be touched between reserve and post (by its sender) and between await and release (by its
// receiver), one slot per link at a time. Verbs that return bool return false once the operation has failed
// (abort, dead peer, deadline); the program then returns false at once, touching nothing more.
//
// Two more verbs serve programs that read and write the memory of peers in place:
//
//   lend(out, n, loan)      publishes the reserved slot with n elements of user memory in it: by reference
//   where
//                           the peer can get at that memory, else as bytes; the peer's program cannot tell
//   drain(out)              everything lent on the link was given back, and results are where they belong
//
// A loan may have a place for a result: the peer then may also write to slot(in), before it releases it, and
// drain brings the result home. Until drain has returned true, the lender does not touch what it lent in a
// conflicting way. A program that lent drains before it returns.
#pragma once

#include <concepts>
#include <cstdint>

// Code that uses verbs is marked: as a whole program, or as a step of programs. It is compiled for wherever
// its executor runs; a compiler that serves two machines has to be told what is for the other one, and
// accepts no verbs of that one in constexpr functions, which are for both. There each program is a function
// of its own, because all of them together would need too many registers.
#ifdef __CUDACC__
#define TUTTI_PROGRAM __device__ __noinline__
#define TUTTI_STEP __device__
#else
#define TUTTI_PROGRAM
#define TUTTI_STEP
#endif

namespace tutti {

/// Links of a lane by direction, numbered by the rank at the other end.
struct Inbound {
  std::uint16_t index = 0;
};
struct Outbound {
  std::uint16_t index = 0;
};

/// One side of a combine: elements of a user buffer, or the slot that is currently held of a link.
struct Operand {
  enum class Where : std::uint8_t { input, output, inbound_slot, outbound_slot };

  Where where = Where::input;
  bool is_own = false;       ///< source only: this rank's own contribution, scaled when loaded (avg)
  std::uint16_t link = 0;    ///< slots: which link
  std::uint64_t offset = 0;  ///< user buffers: first element

  /// This rank's own contribution to a reduction; each must enter it exactly once.
  constexpr Operand own() const {
    Operand result = *this;
    result.is_own = true;
    return result;
  }
};

constexpr Operand input(std::uint64_t offset) { return {Operand::Where::input, false, 0, offset}; }
constexpr Operand output(std::uint64_t offset) { return {Operand::Where::output, false, 0, offset}; }
/// As a source the data that was received; as a destination the place of the result that a loan asks for.
constexpr Operand slot(Inbound in) { return {Operand::Where::inbound_slot, false, in.index, 0}; }
constexpr Operand slot(Outbound out) { return {Operand::Where::outbound_slot, false, out.index, 0}; }

/// One side of a combine: a list of operands. It is described rather than stored, so that it fits in
/// registers: executors ask for entry i, some for several at once.
class Operands {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a braced list at the call is the point.
  constexpr Operands(Operand only) : first_(only), size_(1) {}
  constexpr Operands(Operand first, Operand second) : first_(first), other_(second), size_(2), other_at_(1) {}

  /// Slots of `count` links in a row, of which `first` is the one of the first link.
  static constexpr Operands slots(Operand first, std::int32_t count) {
    Operands list(first);
    list.size_ = static_cast<std::uint32_t>(count);
    return list;
  }
  /// The same list with another operand at entry `at`.
  constexpr Operands with(std::int32_t at, Operand other) const {
    Operands list = *this;
    list.other_ = other;
    list.other_at_ = static_cast<std::uint32_t>(at);
    return list;
  }
  /// The same list without entry `at`; once.
  constexpr Operands without(std::int32_t at) const {
    Operands list = *this;
    list.left_out_ = static_cast<std::uint32_t>(at);
    if (other_at_ == list.left_out_) list.other_at_ = kNowhere;
    if (other_at_ != kNowhere && other_at_ > list.left_out_) --list.other_at_;
    --list.size_;
    return list;
  }

  constexpr std::uint32_t size() const { return size_; }
  constexpr Operand operator[](std::uint32_t i) const {
    if (i == other_at_) return other_;
    Operand operand = first_;
    operand.link = static_cast<std::uint16_t>(operand.link + i + (i >= left_out_ ? 1 : 0));
    return operand;
  }

 private:
  static constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

  Operand first_;
  Operand other_ = {};
  std::uint32_t size_;
  std::uint32_t other_at_ = kNowhere;
  std::uint32_t left_out_ = kNowhere;
};

/// Marks the combine that completes a reduction: integer avg divides there.
enum class Last : bool { no = false, yes = true };

/// What lend publishes: user memory for the peer to read, and perhaps user memory of the same length for the
/// result that the peer leaves.
struct Loan {
  Operand from;
  Operand to;
  bool returns = false;

  constexpr explicit Loan(Operand read) : from(read) {}
  constexpr Loan(Operand read, Operand result) : from(read), to(result), returns(true) {}
};

template <class E>
concept Executor = requires(E& exec, Inbound in, Outbound out, Operands list, std::uint64_t n, Last last,
                            Loan loan) {
  { exec.await(in) } -> std::same_as<bool>;
  { exec.reserve(out) } -> std::same_as<bool>;
  { exec.combine(list, list, n, last) } -> std::same_as<bool>;
  { exec.post(out, n) } -> std::same_as<void>;
  { exec.release(in) } -> std::same_as<void>;
  { exec.lend(out, n, loan) } -> std::same_as<void>;
  { exec.drain(out) } -> std::same_as<bool>;
};

}  // namespace tutti
