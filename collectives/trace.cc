#include "collectives/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tutti {
namespace {

using Verb = TraceEvent::Verb;
using Symbols = std::vector<std::optional<Symbol>>;  // nullopt: never written

/// A misfit in the records; its text is the report.
struct Misfit {
  std::string text;
};

struct TraceSlot {
  Symbols symbols;
  std::uint64_t length = 0;
  const TraceEvent* loan =
      nullptr;  ///< not null: what was lent, and has a result to bring home if it has a dst
  Symbols results;
};

struct TraceLink {
  LinkEnds ends;
  std::vector<TraceSlot> slots;
  std::uint64_t posted = 0;
  std::uint64_t released = 0;
  bool reserved = false;
  bool awaited = false;

  TraceSlot& at(std::uint64_t sequence) { return slots[sequence % slots.size()]; }
  const TraceSlot& at(std::uint64_t sequence) const { return slots[sequence % slots.size()]; }
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2))) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 29);
}

class Player {
 public:
  Player(const Traces& traces, const ReplayOptions& options) : traces_(traces), options_(options) {
    const std::size_t nranks = traces.size();
    const std::size_t lanes = nranks == 0 ? 0 : traces[0].size();
    links_.resize(lanes);
    for (auto& lane : links_) {
      for (const LinkEnds& ends : options.links) {
        lane.push_back({.ends = ends, .slots = std::vector<TraceSlot>(slotCount())});
      }
    }
    inbound_.resize(nranks);
    outbound_.resize(nranks);
    for (std::size_t i = 0; i < options.links.size(); ++i) {
      const LinkEnds& ends = options.links[i];
      enter(inbound_, ends.to, ends.inbound, i);
      enter(outbound_, ends.from, ends.outbound, i);
    }
    outputs_.assign(nranks, Symbols(options.output_elements));
    next_.assign(nranks, std::vector<std::size_t>(lanes, 0));
    result_.sent_elements.assign(nranks, 0);
    result_.steps.assign(nranks, 0);
  }

  Replay play() {
    try {
      while (round()) {
      }
      finish();
    } catch (const Misfit& misfit) {
      result_.error = misfit.text;
    }
    return std::move(result_);
  }

 private:
  std::uint32_t slotCount() const { return options_.packets ? 2 : options_.slot_count; }

  /// Lets every lane of every rank go as far as it can. False when nothing moved.
  bool round() {
    bool moved = false;
    for (rank_ = 0; rank_ < static_cast<int>(traces_.size()); ++rank_) {
      for (lane_ = 0; lane_ < traces_[index(rank_)].size(); ++lane_) {
        const auto& events = traces_[index(rank_)][lane_];
        std::size_t& next = next_[index(rank_)][lane_];
        while (next < events.size() && step(events[next])) {
          ++next;
          moved = true;
        }
      }
    }
    return moved;
  }

  void finish() {
    for (rank_ = 0; rank_ < static_cast<int>(traces_.size()); ++rank_) {
      for (lane_ = 0; lane_ < traces_[index(rank_)].size(); ++lane_) {
        const std::size_t next = next_[index(rank_)][lane_];
        const auto& events = traces_[index(rank_)][lane_];
        require(next == events.size(), "stands still for ever");
      }
    }
    for (lane_ = 0; lane_ < links_.size(); ++lane_) {
      for (const TraceLink& link : links_[lane_]) {
        rank_ = link.ends.from;
        require(link.posted == link.released, "posted {} slots to rank {}, of which {} were released",
                link.posted, link.ends.to, link.released);
        require(!link.reserved, "reserved a slot and did not post it");
        for (const TraceSlot& slot : link.slots) {
          require(slot.loan == nullptr || slot.loan->dsts.empty(),
                  "returned without draining its loan to rank {}", link.ends.to);
        }
      }
    }
    for (const Symbols& output : outputs_) {
      auto& symbols = result_.outputs.emplace_back();
      for (const auto& symbol : output) symbols.push_back(symbol.value_or(Symbol{}));
    }
  }

  /// Plays one event; false when it has to wait.
  bool step(const TraceEvent& event) {
    switch (event.verb) {
      case Verb::await: {
        TraceLink& link = inbound(event.link);
        if (link.posted == link.released) return false;
        require(!link.awaited, "awaits a slot while it holds one of that link");
        link.awaited = true;
        return true;
      }
      case Verb::reserve:
        return reserve(event);
      case Verb::combine:
        combine(event);
        return true;
      case Verb::post:
        post(event);
        return true;
      case Verb::release: {
        TraceLink& link = inbound(event.link);
        require(link.awaited, "releases a slot that it does not hold");
        const TraceSlot& slot = link.at(link.released);
        const bool asks = slot.loan != nullptr && !slot.loan->dsts.empty();
        for (std::uint64_t i = 0; asks && i < slot.length; ++i)
          require(slot.results[i].has_value(), "releases a loan without leaving the result");
        link.awaited = false;
        ++link.released;
        return true;
      }
      case Verb::lend:
        lend(event);
        return true;
      case Verb::drain: {
        TraceLink& link = outbound(event.link);
        if (link.released != link.posted) return false;
        for (TraceSlot& slot : link.slots) bringHome(slot);
        return true;
      }
    }
    return false;
  }

  bool reserve(const TraceEvent& event) {
    TraceLink& link = outbound(event.link);
    require(!link.reserved, "reserves a slot while it holds one of that link");
    if (options_.packets) {
      // Slot k may be written once slot k - 1 of the peer has been received: it has then read k - 2.
      require(reverse(event.link).released >= link.posted,
              "writes packet slot {} to rank {} without having received slot {} from there", link.posted,
              link.ends.to, link.posted - 1);
    } else if (link.posted - link.released >= slotCount()) {
      return false;
    }
    link.reserved = true;
    TraceSlot& slot = link.at(link.posted);
    bringHome(slot);
    slot.symbols.assign(options_.slot_elements, std::nullopt);
    return true;
  }

  /// What a peer left in a loan comes to where the lender wants it.
  void bringHome(TraceSlot& slot) {
    if (slot.loan != nullptr && !slot.loan->dsts.empty()) {
      for (std::uint64_t i = 0; i < slot.length; ++i) write(slot.loan->dsts[0], nullptr, i, *slot.results[i]);
    }
    slot.loan = nullptr;
  }

  void lend(const TraceEvent& event) {
    TraceLink& link = outbound(event.link);
    require(link.reserved, "lends in a slot that it has not reserved");
    require(!options_.packets || event.dsts.empty(), "asks for a result in a packet slot");
    require(event.n <= options_.slot_elements, "lends more than a slot holds");
    TraceSlot& slot = link.at(link.posted);
    for (std::uint64_t i = 0; i < event.n; ++i) slot.symbols[i] = read(event.srcs[0], nullptr, i);
    publish(link, event.n);
    slot.loan = &event;
    slot.results.assign(event.n, std::nullopt);
  }

  void post(const TraceEvent& event) {
    TraceLink& link = outbound(event.link);
    require(link.reserved, "posts a slot that it has not reserved");
    const Symbols& symbols = link.at(link.posted).symbols;
    require(event.n <= symbols.size(), "posts more than a slot holds");
    for (std::uint64_t i = 0; i < event.n; ++i)
      require(symbols[i].has_value(), "posts elements that it has not written");
    publish(link, event.n);
  }

  void publish(TraceLink& link, std::uint64_t n) {
    TraceSlot& slot = link.at(link.posted);
    slot.length = n;
    slot.loan = nullptr;
    link.reserved = false;
    ++link.posted;
    ++result_.steps[index(rank_)];
    result_.sent_elements[index(rank_)] += n;
    result_.most_outstanding = std::max(result_.most_outstanding, link.posted - link.released);
  }

  void combine(const TraceEvent& event) {
    std::vector<Symbol> results(event.n);
    for (std::size_t s = 0; s < event.srcs.size(); ++s) {
      TraceLink* link =
          event.srcs[s].where == Operand::Where::inbound_slot ? &inbound(event.srcs[s].link) : nullptr;
      for (std::uint64_t i = 0; i < event.n; ++i) {
        const Symbol symbol = read(event.srcs[s], link, i);
        if (s == 0) {
          results[i] = symbol;
        } else {
          reduce(results[i], symbol);
        }
      }
    }
    for (const Operand& dst : event.dsts) {
      TraceLink* link = nullptr;
      if (dst.where == Operand::Where::outbound_slot) link = &outbound(dst.link);
      if (dst.where == Operand::Where::inbound_slot) link = &inbound(dst.link);
      for (std::uint64_t i = 0; i < event.n; ++i) {
        Symbol symbol = results[i];
        if (event.last) {
          ++symbol.lasts;
          symbol.terms = mixed(symbol.terms, 1);
        }
        write(dst, link, i, symbol);
      }
    }
  }

  void reduce(Symbol& result, const Symbol& more) const {
    require(result.element == more.element, "reduces element {} with element {}", result.element,
            more.element);
    require((result.own & more.own) == 0, "reduces a contribution twice");
    require(result.copied == 0 && more.copied == 0, "reduces an input that is not marked as own");
    result.own |= more.own;
    result.lasts += more.lasts;
    result.terms = mixed(result.terms, more.terms);
  }

  Symbol read(const Operand& operand, const TraceLink* link, std::uint64_t i) {
    const std::uint64_t bit = std::uint64_t{1} << rank_;
    const std::uint64_t at = operand.offset + i;
    switch (operand.where) {
      case Operand::Where::input:
        require(at < options_.input_elements, "reads past its input");
        return {.own = operand.is_own ? bit : 0,
                .copied = operand.is_own ? 0 : bit,
                .element = at,
                .terms = mixed(bit, operand.is_own ? 2 : 3)};
      case Operand::Where::output:
        require(at < options_.output_elements, "reads past its output");
        require(outputs_[index(rank_)][at].has_value(), "reads an output that it has not written");
        return *outputs_[index(rank_)][at];
      case Operand::Where::inbound_slot: {
        if (link == nullptr) break;
        require(link->awaited, "reads a slot that it does not hold");
        const TraceSlot& slot = link->at(link->released);
        require(i < slot.length, "reads more than was posted");
        if (!operand.is_own) return *slot.symbols[i];
        return ownOf(*slot.symbols[i], link->ends.from);
      }
      case Operand::Where::outbound_slot:
        break;
    }
    throw Misfit{fmt::format("rank {} lane {} reads from what it only fills", rank_, lane_)};
  }

  /// A peer's input, taken as its own contribution.
  Symbol ownOf(const Symbol& symbol, int peer) const {
    const std::uint64_t bit = std::uint64_t{1} << peer;
    require(symbol.own == 0 && symbol.copied == bit, "takes for rank {}'s own what is not its input", peer);
    return {.own = bit, .element = symbol.element, .terms = mixed(bit, 2)};
  }

  void write(const Operand& operand, TraceLink* link, std::uint64_t i, const Symbol& symbol) {
    if (operand.where == Operand::Where::output) {
      require(operand.offset + i < options_.output_elements, "writes past its output");
      outputs_[index(rank_)][operand.offset + i] = symbol;
      return;
    }
    require(operand.where != Operand::Where::input && link != nullptr, "writes to what it only reads");
    if (link == nullptr) return;
    if (operand.where == Operand::Where::inbound_slot) {
      TraceSlot& slot = link->at(link->released);
      require(link->awaited, "writes to a slot that it does not hold");
      require(slot.loan != nullptr && !slot.loan->dsts.empty() && i < slot.length,
              "leaves a result that nobody asked for");
      slot.results[i] = symbol;
      return;
    }
    require(link->reserved, "writes to a slot that it has not reserved");
    require(i < options_.slot_elements, "writes past a slot");
    link->at(link->posted).symbols[i] = symbol;
  }

  /// The link by which the peer of an outbound link sends.
  const TraceLink& reverse(std::uint16_t outbound_number) { return inbound(outbound_number); }

  TraceLink& inbound(std::uint16_t number) { return found(inbound_, number, "inbound"); }
  TraceLink& outbound(std::uint16_t number) { return found(outbound_, number, "outbound"); }

  using LinkIndex = std::vector<std::vector<std::size_t>>;  // [rank][number], npos where there is no link
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  static void enter(LinkIndex& index_of, int rank, std::uint16_t number, std::size_t link) {
    auto& numbers = index_of[index(rank)];
    if (numbers.size() <= number) numbers.resize(number + std::size_t{1}, kNone);
    numbers[number] = link;
  }

  TraceLink& found(const LinkIndex& index_of, std::uint16_t number, const char* direction) {
    const auto& numbers = index_of[index(rank_)];
    if (number < numbers.size() && numbers[number] != kNone) return links_[lane_][numbers[number]];
    throw Misfit{fmt::format("rank {} lane {} has no {} link {}", rank_, lane_, direction, number)};
  }

  /// Formats only when something does not fit: this runs for every element.
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> format, Args&&... args) const {
    if (holds) return;
    const std::string text = fmt::format(format, std::forward<Args>(args)...);
    const std::size_t done = lane_ < next_[index(rank_)].size() ? next_[index(rank_)][lane_] : 0;
    throw Misfit{fmt::format("rank {} lane {} {} (after {} verbs)", rank_, lane_, text, done)};
  }

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  const Traces& traces_;
  const ReplayOptions& options_;
  std::vector<std::vector<TraceLink>> links_;  // by lane, then as in options_.links
  LinkIndex inbound_;
  LinkIndex outbound_;
  std::vector<Symbols> outputs_;
  std::vector<std::vector<std::size_t>> next_;
  Replay result_;
  int rank_ = 0;
  std::size_t lane_ = 0;
};

std::vector<Operand> listed(const Operands& operands) {
  std::vector<Operand> list;
  for (std::uint32_t i = 0; i < operands.size(); ++i) list.push_back(operands[i]);
  return list;
}

}  // namespace

bool TraceExecutor::await(Inbound in) {
  events_.push_back({.verb = Verb::await, .link = in.index, .dsts = {}, .srcs = {}});
  return true;
}

bool TraceExecutor::reserve(Outbound out) {
  events_.push_back({.verb = Verb::reserve, .link = out.index, .dsts = {}, .srcs = {}});
  return true;
}

bool TraceExecutor::combine(Operands dsts, Operands srcs, std::uint64_t n, Last last) {
  events_.push_back(
      {.verb = Verb::combine, .n = n, .last = last == Last::yes, .dsts = listed(dsts), .srcs = listed(srcs)});
  return true;
}

void TraceExecutor::post(Outbound out, std::uint64_t n) {
  events_.push_back({.verb = Verb::post, .link = out.index, .n = n, .dsts = {}, .srcs = {}});
}

void TraceExecutor::release(Inbound in) {
  events_.push_back({.verb = Verb::release, .link = in.index, .dsts = {}, .srcs = {}});
}

void TraceExecutor::lend(Outbound out, std::uint64_t n, const Loan& loan) {
  TraceEvent event{.verb = Verb::lend, .link = out.index, .n = n, .dsts = {}, .srcs = {loan.from}};
  if (loan.returns) event.dsts.push_back(loan.to);
  events_.push_back(std::move(event));
}

bool TraceExecutor::drain(Outbound out) {
  events_.push_back({.verb = Verb::drain, .link = out.index, .dsts = {}, .srcs = {}});
  return true;
}

Replay replay(const Traces& traces, const ReplayOptions& options) { return Player(traces, options).play(); }

}  // namespace tutti
