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
#include <cstddef>
#include <cstdint>
#include <initializer_list>

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

/// A view of a list of operands; valid for the call it is passed to.
class Operands {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a braced list at the call is the point.
  constexpr Operands(const std::initializer_list<Operand>& list) : size_(list.size()) {
    data_ = list.begin();
  }
  constexpr Operands(const Operand* data, std::size_t size) : data_(data), size_(size) {}
  constexpr const Operand* begin() const { return data_; }
  constexpr const Operand* end() const { return data_ + size_; }
  constexpr const Operand& operator[](std::size_t i) const { return data_[i]; }
  constexpr std::size_t size() const { return size_; }

 private:
  const Operand* data_ = nullptr;
  std::size_t size_;
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
