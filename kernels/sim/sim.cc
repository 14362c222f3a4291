#include "kernels/sim/sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

constexpr std::byte kPoison{0xdb};

/// Thrown inside a fibre; ends the run with a report.
struct RuleBroken {
  std::string text;
};

/// Formats only when the rule is broken: this runs at every verb.
template <class... Args>
void require(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) throw RuleBroken{fmt::format(text, std::forward<Args>(args)...)};
}

}  // namespace

Sim::Sim(const Plan& plan, SimOptions options)
    : plan_(plan),
      options_(std::move(options)),
      random_(options_.seed),
      combine_(isReduction(plan.descriptor.collective)
                   ? combineFunction(plan.descriptor.type, plan.descriptor.op)
                   : nullptr),
      element_bytes_(sizeOf(plan.descriptor.type)) {
  for (int rank = 0; rank < plan_.nranks; ++rank) {
    Rank& made = ranks_.emplace_back();
    const std::size_t larger = std::max(options_.input_bytes, options_.output_bytes);
    made.memory.assign(options_.in_place ? larger : options_.input_bytes + options_.output_bytes, kPoison);
    const std::size_t shift =
        options_.in_place && options_.in_place_offset ? options_.in_place_offset(rank) : 0;
    const bool input_is_larger = options_.input_bytes > options_.output_bytes;
    made.input = made.memory.data() + (input_is_larger ? 0 : shift);
    made.output = made.memory.data() + (input_is_larger ? shift : 0);
    if (!options_.in_place) made.output = made.memory.data() + options_.input_bytes;
  }
  links_.resize(plan_.lanes);
  for (auto& lane : links_) {
    for (const LinkEnds& ends : options_.links) {
      SimLink& link = lane.emplace_back();
      link.ends = ends;
      link.slots.resize(usesPackets() ? kPacketSlots : options_.slot_count);
      for (Slot& slot : link.slots) slot.bytes.assign(plan_.slot_elements * element_bytes_, kPoison);
    }
  }
}

Sim::~Sim() = default;

void Sim::poison(Slot& slot) { std::ranges::fill(slot.bytes, kPoison); }

std::string Sim::run(const Program& program) {
  for (int rank = 0; rank < plan_.nranks; ++rank) {
    for (std::uint32_t lane = 0; lane < plan_.lanes; ++lane) {
      strands_.push_back({.rank = rank, .lane = lane, .fibre = nullptr, .ready = {}, .reason = {}});
    }
  }
  for (Strand& strand : strands_) {
    strand.fibre = std::make_unique<Fibre>([this, &strand, &program](Fibre&) {
      Executor executor(*this, strand.rank, strand.lane);
      try {
        program(executor);
      } catch (const RuleBroken& broken) {
        failWith(strand.rank, strand.lane, broken.text);
      }
    });
  }
  slow_strand_ = random_() % strands_.size();
  schedule();
  if (report_.empty()) checkEnd();
  // After a failure every verb returns at once, so that all programs run out.
  for (Strand& strand : strands_) {
    while (!strand.fibre->done()) strand.fibre->resume();
  }
  strands_.clear();
  return report_.empty() ? "" : fmt::format("{} [seed {}]", report_, options_.seed);
}

void Sim::failWith(int rank, std::uint32_t lane, const std::string& text) {
  if (report_.empty()) report_ = fmt::format("rank {} lane {} {}", rank, lane, text);
}

void Sim::schedule() {
  std::vector<std::function<void()>> actions;
  while (report_.empty() && std::ranges::any_of(strands_, [](const Strand& s) { return !s.fibre->done(); })) {
    if (!pick(actions)) {
      report_ = deadlockReport();
      return;
    }
    ++decisions_;
    actions[random_() % actions.size()]();
  }
}

/// Collects what can happen next; the slow strand only now and then, unless nothing else can.
bool Sim::pick(std::vector<std::function<void()>>& actions) {
  actions.clear();
  Strand* slow = nullptr;
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    Strand& strand = strands_[i];
    if (strand.fibre->done() || (strand.ready && !strand.ready())) continue;
    if (i == slow_strand_ && random_() % 16 != 0) {
      slow = &strand;
    } else {
      actions.emplace_back([&strand] { strand.fibre->resume(); });
    }
  }
  for (auto& lane : links_) {
    for (SimLink& link : lane) {
      if (link.posted_seen < link.posted) actions.emplace_back([&link] { ++link.posted_seen; });
      if (link.whole_seen < link.posted_seen) actions.emplace_back([&link] { ++link.whole_seen; });
      if (link.released_seen < link.released) actions.emplace_back([&link] { ++link.released_seen; });
    }
  }
  if (actions.empty() && slow != nullptr) actions.emplace_back([slow] { slow->fibre->resume(); });
  return !actions.empty();
}

Sim::Strand& Sim::strand(int rank, std::uint32_t lane) {
  return strands_[static_cast<std::size_t>(rank) * plan_.lanes + lane];
}

/// Gives the others a chance. False once the run has failed.
bool Sim::pause(int rank, std::uint32_t lane) {
  if (report_.empty()) strand(rank, lane).fibre->suspend();
  return report_.empty();
}

bool Sim::waitFor(int rank, std::uint32_t lane, std::function<bool()> ready,
                  std::function<std::string()> reason) {
  Strand& self = strand(rank, lane);
  self.ready = std::move(ready);
  self.reason = std::move(reason);
  const bool alive = pause(rank, lane);
  self.ready = nullptr;
  return alive;
}

std::string Sim::deadlockReport() {
  std::string text = "deadlock:";
  for (const Strand& strand : strands_) {
    if (strand.fibre->done()) continue;
    text += fmt::format(" rank {} lane {} {};", strand.rank, strand.lane,
                        strand.reason ? strand.reason() : "runs");
  }
  text.pop_back();
  return text;
}

void Sim::checkEnd() {
  for (std::uint32_t lane = 0; lane < links_.size(); ++lane) {
    for (SimLink& link : links_[lane]) checkLink(lane, link);
  }
}

void Sim::checkLink(std::uint32_t lane, SimLink& link) {
  const auto blame = [&](const std::string& text) { failWith(link.ends.from, lane, text); };
  if (link.posted != link.released) {
    blame(fmt::format("posted {} slots to rank {}, of which {} were released", link.posted, link.ends.to,
                      link.released));
  } else if (link.at(link.posted).state == SlotState::filling) {
    blame(fmt::format("reserved slot {} to rank {} and did not post it", link.posted, link.ends.to));
  }
  // Only the latest use of a slot is still known; that is enough, for drain settles all at once.
  for (const Slot& slot : link.slots) {
    if (!slot.mustReturn()) continue;
    blame(fmt::format("returned without draining loan {} to rank {}", slot.header.sequence, link.ends.to));
  }
}

Sim::SimLink& Sim::inbound(int rank, std::uint32_t lane, std::uint16_t number) {
  for (SimLink& link : links_[lane]) {
    if (link.ends.to == rank && link.ends.inbound == number) return link;
  }
  throw RuleBroken{fmt::format("has no inbound link {}", number)};
}

Sim::SimLink& Sim::outbound(int rank, std::uint32_t lane, std::uint16_t number) {
  for (SimLink& link : links_[lane]) {
    if (link.ends.from == rank && link.ends.outbound == number) return link;
  }
  throw RuleBroken{fmt::format("has no outbound link {}", number)};
}

Sim::Range Sim::userRange(int rank, const Operand& operand, std::uint64_t n) const {
  const Rank& owner = ranks_[static_cast<std::size_t>(rank)];
  const bool is_input = operand.where == Operand::Where::input;
  const std::uint64_t have = (is_input ? options_.input_bytes : options_.output_bytes) / element_bytes_;
  require(operand.offset + n <= have, "touches elements {} to {} of an {} of {}", operand.offset,
          operand.offset + n, is_input ? "input" : "output", have);
  return {(is_input ? owner.input : owner.output) + operand.offset * element_bytes_, have - operand.offset};
}

/// The owner of lent memory may not write it, nor touch what a peer's result will overwrite, until it has
/// drained.
void Sim::checkNotLent(int rank, const std::byte* data, std::uint64_t n, bool writes) {
  const auto overlaps = [&](const Operand& operand, std::uint64_t bytes) {
    const std::byte* lent = userRange(rank, operand, 0).data;
    return lent < data + n * element_bytes_ && data < lent + bytes;
  };
  for (auto& lane : links_) {
    for (const SimLink& link : lane) {
      if (link.ends.from != rank) continue;
      for (const Slot& slot : link.slots) {
        if (!slot.mustReturn()) continue;
        const bool is_read = slot.isReference() && overlaps(slot.loan->from, slot.header.bytes);
        const bool is_written = slot.loan->returns && overlaps(slot.loan->to, slot.header.bytes);
        require(!is_written && !(writes && is_read), "{} memory that it lent to rank {} in slot {}",
                writes ? "writes" : "reads", link.ends.to, slot.header.sequence);
      }
    }
  }
}

Sim::Range Sim::resolveSource(int rank, std::uint32_t lane, const Operand& operand, std::uint64_t n) {
  if (operand.where == Operand::Where::inbound_slot) {
    SimLink& link = inbound(rank, lane, operand.link);
    Slot& slot = link.at(link.released);
    require(slot.state == SlotState::reading, "reads slot {} of rank {} without holding it", link.released,
            link.ends.from);
    require(n * element_bytes_ <= slot.header.bytes, "reads more than was posted");
    if (!slot.isReference()) return {slot.bytes.data(), plan_.slot_elements};
    return userRange(link.ends.from, slot.loan->from, n);
  }
  require(operand.where != Operand::Where::outbound_slot, "reads from a slot that it fills");
  const Range range = userRange(rank, operand, n);
  checkNotLent(rank, range.data, n, false);
  return range;
}

Sim::Range Sim::resolveDestination(int rank, std::uint32_t lane, const Operand& operand, std::uint64_t n) {
  if (operand.where == Operand::Where::outbound_slot) {
    SimLink& link = outbound(rank, lane, operand.link);
    Slot& slot = link.at(link.posted);
    require(slot.state == SlotState::filling, "writes slot {} to rank {} without having reserved it",
            link.posted, link.ends.to);
    require(n <= plan_.slot_elements, "writes more than a slot holds");
    slot.filled = std::max(slot.filled, n);
    return {slot.bytes.data(), plan_.slot_elements};
  }
  if (operand.where == Operand::Where::inbound_slot) {
    SimLink& link = inbound(rank, lane, operand.link);
    Slot& slot = link.at(link.released);
    require(slot.state == SlotState::reading && slot.loan && slot.loan->returns,
            "leaves a result in a slot that does not ask for one");
    require(n * element_bytes_ <= slot.header.bytes, "leaves more than was asked for");
    slot.answered = std::max(slot.answered, n);
    if (!slot.isReference()) return {slot.bytes.data(), plan_.slot_elements};
    return userRange(link.ends.from, slot.loan->to, n);
  }
  require(operand.where == Operand::Where::output, "writes to its input");
  const Range range = userRange(rank, operand, n);
  checkNotLent(rank, range.data, n, true);
  return range;
}

Sim::Slot& Sim::publish(int rank, std::uint32_t lane, Outbound out, std::uint64_t n, SlotKind kind) {
  SimLink& link = outbound(rank, lane, out.index);
  Slot& slot = link.at(link.posted);
  require(slot.state == SlotState::filling, "posts slot {} to rank {} without having reserved it",
          link.posted, link.ends.to);
  require(kind != SlotKind::inline_data || n <= slot.filled, "posts {} elements to rank {}, but wrote {}", n,
          link.ends.to, slot.filled);
  slot.header = {.sequence = link.posted,
                 .descriptor = plan_.descriptor,
                 .kind = kind,
                 .bytes = static_cast<std::uint32_t>(n * element_bytes_)};
  slot.state = SlotState::posted;
  slot.answered = 0;
  ++link.posted;
  require(link.posted <= link.released + link.slots.size(), "breaks the link invariant");
  return slot;
}

/// Packets: slot k may be written once slot k - 1 of the peer has been received; it has then read k - 2.
void Sim::requireReadByPeer(int rank, std::uint32_t lane, std::uint16_t number) {
  const SimLink& link = outbound(rank, lane, number);
  const SimLink& reverse = inbound(rank, lane, number);
  require(reverse.released >= link.posted,
          "writes packet slot {} to rank {} without having received slot {} from there", link.posted,
          link.ends.to, link.posted - 1);
}

/// Slots before `before` have come back: results are brought home, and what was lent is the owner's again.
void Sim::settle(int rank, SimLink& link, std::uint64_t before) {
  for (; link.settled < before; ++link.settled) {
    Slot& slot = link.at(link.settled);
    if (slot.loan && slot.loan->returns && !slot.isReference()) {
      const Range home = userRange(rank, slot.loan->to, slot.header.bytes / element_bytes_);
      std::memcpy(home.data, slot.bytes.data(), slot.header.bytes);
    }
    slot.loan.reset();
    poison(slot);
  }
}

Scale Sim::scaleOf(int rank) const {
  const Descriptor& d = plan_.descriptor;
  return d.op == RedOp::premul_sum ? options_.scales[static_cast<std::size_t>(rank)]
                                   : averageScale(d.type, plan_.nranks);
}

bool Sim::awaitWhole(int rank, std::uint32_t lane, Operands srcs) {
  for (std::uint32_t i = 0; i < srcs.size(); ++i) {
    const Operand operand = srcs[i];
    if (!usesPackets() || operand.where != Operand::Where::inbound_slot) continue;
    auto& link = inbound(rank, lane, operand.link);
    const auto ready = [&link] { return link.whole_seen > link.released; };
    const auto reason = [&link] { return fmt::format("awaits the rest of slot {}", link.released); };
    if (!waitFor(rank, lane, ready, reason)) return false;
  }
  return true;
}

bool Sim::Executor::await(Inbound in) {
  auto& link = sim_.inbound(rank_, lane_, in.index);
  const auto ready = [&link] { return link.posted_seen > link.released; };
  const auto reason = [&link] {
    return fmt::format("awaits rank {}: posted = {}, released = {}", link.ends.from, link.posted,
                       link.released);
  };
  if (!sim_.waitFor(rank_, lane_, ready, reason)) return false;
  auto& slot = link.at(link.released);
  require(slot.state == Sim::SlotState::posted, "awaits a slot while it holds one of that link");
  require(slot.header.sequence == link.released && slot.header.descriptor == sim_.plan_.descriptor,
          "receives a slot of another operation");
  slot.state = Sim::SlotState::reading;
  return true;
}

bool Sim::Executor::reserve(Outbound out) {
  auto& link = sim_.outbound(rank_, lane_, out.index);
  if (sim_.usesPackets()) {
    if (!sim_.pause(rank_, lane_)) return false;
    sim_.requireReadByPeer(rank_, lane_, out.index);
    link.released_seen = link.released;
  }
  const auto ready = [&link] { return link.posted - link.released_seen < link.slots.size(); };
  const auto reason = [&link] {
    return fmt::format("reserves a slot to rank {}: posted = {}, released = {} of {} slots", link.ends.to,
                       link.posted, link.released, link.slots.size());
  };
  if (!sim_.waitFor(rank_, lane_, ready, reason)) return false;
  auto& slot = link.at(link.posted);
  require(slot.state == Sim::SlotState::free, "reserves a slot while it holds one of that link");
  // The credit that freed this slot also settles everything before it.
  if (link.posted >= link.slots.size()) sim_.settle(rank_, link, link.posted - link.slots.size() + 1);
  slot.state = Sim::SlotState::filling;
  slot.filled = 0;
  Sim::poison(slot);
  return true;
}

bool Sim::Executor::combine(Operands dsts, Operands srcs, std::uint64_t n, Last last) {
  if (!sim_.pause(rank_, lane_) || !sim_.awaitWhole(rank_, lane_, srcs)) return false;
  std::array<std::byte*, kMaxCombineOperands> to{};
  std::array<const std::byte*, kMaxCombineOperands> from{};
  std::array<Scale, kMaxCombineOperands> scales{};
  CombineArgs args{.dsts = to.data(),
                   .srcs = from.data(),
                   .dst_count = dsts.size(),
                   .src_count = srcs.size(),
                   .n = n,
                   .scales = scales.data(),
                   .nranks = sim_.plan_.nranks,
                   .last = last == Last::yes};
  for (std::uint32_t i = 0; i < srcs.size(); ++i) {
    from[i] = sim_.resolveSource(rank_, lane_, srcs[i], n).data;
    if (!srcs[i].is_own) continue;
    args.own |= std::uint64_t{1} << i;
    const bool is_slot = srcs[i].where == Operand::Where::inbound_slot;
    const int owner = is_slot ? sim_.inbound(rank_, lane_, srcs[i].link).ends.from : rank_;
    scales[i] = sim_.scaleOf(owner);
  }
  for (std::uint32_t i = 0; i < dsts.size(); ++i)
    to[i] = sim_.resolveDestination(rank_, lane_, dsts[i], n).data;
  if (isCopy(args, sim_.plan_.descriptor.op)) {
    copyCombine(args, sim_.element_bytes_);
  } else {
    require(sim_.combine_ != nullptr, "reduces in an operation that does not");
    sim_.combine_(args);
  }
  return true;
}

void Sim::Executor::post(Outbound out, std::uint64_t n) {
  if (sim_.pause(rank_, lane_)) sim_.publish(rank_, lane_, out, n, SlotKind::inline_data);
}

void Sim::Executor::lend(Outbound out, std::uint64_t n, const Loan& loan) {
  if (!sim_.pause(rank_, lane_)) return;
  require(n <= sim_.plan_.slot_elements, "lends more than a slot holds");
  const auto from = sim_.userRange(rank_, loan.from, n);
  sim_.checkNotLent(rank_, from.data, n, false);
  if (loan.returns) {
    require(!sim_.usesPackets(), "asks for a result in a packet slot");
    require(loan.to.where == Operand::Where::output, "asks for a result outside of its output");
    sim_.checkNotLent(rank_, sim_.userRange(rank_, loan.to, n).data, n, true);
  }
  auto& link = sim_.outbound(rank_, lane_, out.index);
  const bool may_refer = !sim_.options_.in_place || mayReferInPlace(sim_.plan_.descriptor.collective);
  const bool by_reference = may_refer && !sim_.usesPackets() && sim_.random_() % 2 == 0;
  auto& slot = link.at(link.posted);
  if (!by_reference) {
    require(slot.state == Sim::SlotState::filling, "lends in a slot that it has not reserved");
    std::memcpy(slot.bytes.data(), from.data, n * sim_.element_bytes_);
    slot.filled = n;
  }
  sim_.publish(rank_, lane_, out, n, by_reference ? SlotKind::address : SlotKind::inline_data);
  slot.loan = loan;
  if (slot.mustReturn()) link.to_return = link.posted;
}

void Sim::Executor::release(Inbound in) {
  if (!sim_.pause(rank_, lane_)) return;
  auto& link = sim_.inbound(rank_, lane_, in.index);
  auto& slot = link.at(link.released);
  require(slot.state == Sim::SlotState::reading, "releases slot {} of rank {} without holding it",
          link.released, link.ends.from);
  require(!slot.loan || !slot.loan->returns || slot.answered * sim_.element_bytes_ == slot.header.bytes,
          "releases slot {} of rank {} without leaving the result", link.released, link.ends.from);
  if (!slot.loan || !slot.loan->returns) Sim::poison(slot);
  slot.state = Sim::SlotState::free;
  ++link.released;
}

bool Sim::Executor::drain(Outbound out) {
  auto& link = sim_.outbound(rank_, lane_, out.index);
  const auto ready = [&link] { return link.released_seen >= link.to_return; };
  const auto reason = [&link] {
    return fmt::format("drains its link to rank {}: posted = {}, released = {}", link.ends.to, link.posted,
                       link.released);
  };
  if (!sim_.waitFor(rank_, lane_, ready, reason)) return false;
  sim_.settle(rank_, link, link.to_return);
  return true;
}

}  // namespace tutti
