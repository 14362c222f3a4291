#include "collectives/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

struct TraceLink {
  LinkEnds ends;
  std::vector<Symbols> slots;
  std::vector<std::uint64_t> lengths;
  std::uint64_t posted = 0;
  std::uint64_t released = 0;
  bool reserved = false;
  bool awaited = false;

  std::size_t at(std::uint64_t sequence) const { return sequence % slots.size(); }
};

class Player {
 public:
  Player(const Traces& traces, const ReplayOptions& options) : traces_(traces), options_(options) {
    const std::size_t nranks = traces.size();
    const std::size_t lanes = nranks == 0 ? 0 : traces[0].size();
    links_.resize(lanes);
    for (auto& lane : links_) {
      for (const LinkEnds& ends : options.links) {
        lane.push_back({.ends = ends, .slots = std::vector<Symbols>(options.slot_count), .lengths = {}});
        lane.back().lengths.resize(options.slot_count);
      }
    }
    for (std::size_t i = 0; i < options.links.size(); ++i) {
      const LinkEnds& ends = options.links[i];
      inbound_[{ends.to, ends.inbound}] = i;
      outbound_[{ends.from, ends.outbound}] = i;
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
      case Verb::reserve: {
        TraceLink& link = outbound(event.link);
        if (link.posted - link.released >= options_.slot_count) return false;
        require(!link.reserved, "reserves a slot while it holds one of that link");
        link.reserved = true;
        link.slots[link.at(link.posted)].assign(options_.slot_elements, std::nullopt);
        return true;
      }
      case Verb::combine:
        combine(event);
        return true;
      case Verb::post:
        post(event);
        return true;
      case Verb::release: {
        TraceLink& link = inbound(event.link);
        require(link.awaited, "releases a slot that it does not hold");
        link.awaited = false;
        ++link.released;
        return true;
      }
    }
    return false;
  }

  void post(const TraceEvent& event) {
    TraceLink& link = outbound(event.link);
    require(link.reserved, "posts a slot that it has not reserved");
    const auto& slot = link.slots[link.at(link.posted)];
    require(event.n <= slot.size(), "posts more than a slot holds");
    for (std::uint64_t i = 0; i < event.n; ++i)
      require(slot[i].has_value(), "posts elements that it has not written");
    link.lengths[link.at(link.posted)] = event.n;
    link.reserved = false;
    ++link.posted;
    ++result_.steps[index(rank_)];
    result_.sent_elements[index(rank_)] += event.n;
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
      TraceLink* link = dst.where == Operand::Where::outbound_slot ? &outbound(dst.link) : nullptr;
      for (std::uint64_t i = 0; i < event.n; ++i) {
        Symbol symbol = results[i];
        if (event.last) ++symbol.lasts;
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
  }

  Symbol read(const Operand& operand, const TraceLink* link, std::uint64_t i) {
    const std::uint64_t bit = std::uint64_t{1} << rank_;
    const std::uint64_t at = operand.offset + i;
    switch (operand.where) {
      case Operand::Where::input:
        require(at < options_.input_elements, "reads past its input");
        return {.own = operand.is_own ? bit : 0, .copied = operand.is_own ? 0 : bit, .element = at};
      case Operand::Where::output:
        require(at < options_.output_elements, "reads past its output");
        require(outputs_[index(rank_)][at].has_value(), "reads an output that it has not written");
        return *outputs_[index(rank_)][at];
      case Operand::Where::inbound_slot: {
        if (link == nullptr) break;
        require(link->awaited, "reads a slot that it does not hold");
        const std::size_t slot = link->at(link->released);
        require(i < link->lengths[slot], "reads more than was posted");
        return *link->slots[slot][i];
      }
      case Operand::Where::outbound_slot:
        break;
    }
    throw Misfit{fmt::format("rank {} lane {} reads from what it only fills", rank_, lane_)};
  }

  void write(const Operand& operand, TraceLink* link, std::uint64_t i, const Symbol& symbol) {
    if (operand.where == Operand::Where::output) {
      require(operand.offset + i < options_.output_elements, "writes past its output");
      outputs_[index(rank_)][operand.offset + i] = symbol;
      return;
    }
    require(operand.where == Operand::Where::outbound_slot, "writes to what it only reads");
    if (link == nullptr) return;
    require(link->reserved, "writes to a slot that it has not reserved");
    require(i < options_.slot_elements, "writes past a slot");
    link->slots[link->at(link->posted)][i] = symbol;
  }

  TraceLink& inbound(std::uint16_t number) {
    const auto found = inbound_.find({rank_, number});
    if (found != inbound_.end()) return links_[lane_][found->second];
    throw Misfit{fmt::format("rank {} lane {} has no inbound link {}", rank_, lane_, number)};
  }

  TraceLink& outbound(std::uint16_t number) {
    const auto found = outbound_.find({rank_, number});
    if (found != outbound_.end()) return links_[lane_][found->second];
    throw Misfit{fmt::format("rank {} lane {} has no outbound link {}", rank_, lane_, number)};
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
  std::vector<std::vector<TraceLink>> links_;                     // by lane, then as in options_.links
  std::map<std::pair<int, std::uint16_t>, std::size_t> inbound_;  // (rank, number) to index in links_[lane]
  std::map<std::pair<int, std::uint16_t>, std::size_t> outbound_;
  std::vector<Symbols> outputs_;
  std::vector<std::vector<std::size_t>> next_;
  Replay result_;
  int rank_ = 0;
  std::size_t lane_ = 0;
};

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
  events_.push_back({.verb = Verb::combine,
                     .n = n,
                     .last = last == Last::yes,
                     .dsts = {dsts.begin(), dsts.end()},
                     .srcs = {srcs.begin(), srcs.end()}});
  return true;
}

void TraceExecutor::post(Outbound out, std::uint64_t n) {
  events_.push_back({.verb = Verb::post, .link = out.index, .n = n, .dsts = {}, .srcs = {}});
}

void TraceExecutor::release(Inbound in) {
  events_.push_back({.verb = Verb::release, .link = in.index, .dsts = {}, .srcs = {}});
}

Replay replay(const Traces& traces, const ReplayOptions& options) { return Player(traces, options).play(); }

}  // namespace tutti
