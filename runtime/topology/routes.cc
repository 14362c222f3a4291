#include "runtime/topology/routes.h"

#include <algorithm>
#include <tuple>

namespace tutti {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// A route that has not visited all places yet.
struct Partial {
  Route route;
  std::uint64_t visited = 0;

  int last() const { return route.order.back(); }
  auto state() const { return std::tuple(route.in, visited, last()); }
};

bool usesNoLess(const Route& a, const Route& b) {
  return std::ranges::equal(a.uses, b.uses, std::ranges::greater_equal{});
}

bool comesBefore(const Route& a, const Route& b) {
  return std::tie(a.hops, a.in, a.out, a.order) < std::tie(b.hops, b.in, b.out, b.order);
}

class RouteFinder {
 public:
  RouteFinder(const ChannelProblem& problem, const RouteRules& rules) : problem_(problem), rules_(rules) {}

  Routes find() {
    std::vector<Partial> partial = starts();
    for (std::size_t length = 1; length < problem_.count(); ++length) {
      std::vector<Partial> longer;
      for (const Partial& p : partial) grow(p, longer);
      keepBest(longer);
      partial = std::move(longer);
    }
    for (const Partial& p : partial) finish(p.route);
    dropUseless();
    return std::move(found_);
  }

 private:
  static void take(Route& route, const Leg& leg) {
    for (const LinkUse& use : leg.links) {
      route.uses[at(use.link)] = static_cast<std::uint16_t>(route.uses[at(use.link)] + use.tenths);
    }
    route.hops += static_cast<int>(leg.links.size());
  }
  bool mayEnter(const Leg& leg) const { return leg.path_class <= rules_.inside; }
  bool mayReach(const Leg& leg) const { return leg.path_class <= rules_.to_ports; }

  void takeInside(Route& route, const Leg& leg) const {
    take(route, leg);
    route.inside = std::max(route.inside, leg.path_class);
  }
  void takePort(Route& route, const Leg& leg) const {
    take(route, leg);
    route.to_ports = std::max(route.to_ports, leg.path_class);
  }

  Partial startAt(std::size_t place) const {
    Partial partial;
    partial.route.order = {static_cast<int>(place)};
    partial.route.uses.resize(problem_.links.size());
    partial.visited = std::uint64_t{1} << place;
    return partial;
  }

  std::vector<Partial> starts() const {
    std::vector<Partial> found;
    if (!hasPorts(problem_.form)) {
      const std::size_t places = problem_.form == RouteForm::ring ? 1 : problem_.count();
      for (std::size_t place = 0; place < places; ++place) found.push_back(startAt(place));
      return found;
    }
    for (std::size_t port = 0; port < problem_.ports.size(); ++port) {
      for (std::size_t place = 0; place < problem_.count(); ++place) startByPort(port, place, found);
    }
    return found;
  }

  void startByPort(std::size_t port, std::size_t place, std::vector<Partial>& found) const {
    const Leg& in = problem_.legIn(port, place);
    const Leg& out = problem_.legOut(port, place);
    const bool is_chain = isBothWays(problem_.form);
    if (!mayReach(in) || (is_chain && !mayReach(out))) return;
    Partial partial = startAt(place);
    partial.route.in = static_cast<int>(port);
    takePort(partial.route, in);
    if (is_chain) {
      partial.route.out = static_cast<int>(port);
      takePort(partial.route, out);
    }
    found.push_back(std::move(partial));
  }

  void grow(const Partial& partial, std::vector<Partial>& longer) const {
    const std::size_t last = at(partial.last());
    for (std::size_t next = 0; next < problem_.count(); ++next) {
      if ((partial.visited >> next & 1) != 0) continue;
      const Leg& leg = problem_.leg(last, next);
      const Leg& back = problem_.leg(next, last);
      if (!mayEnter(leg) || (isBothWays(problem_.form) && !mayEnter(back))) continue;
      Partial more = partial;
      takeInside(more.route, leg);
      if (isBothWays(problem_.form)) takeInside(more.route, back);
      more.route.order.push_back(static_cast<int>(next));
      more.visited |= std::uint64_t{1} << next;
      longer.push_back(std::move(more));
    }
  }

  /// The most that a channel over these links could carry.
  double width(const Route& route) const {
    double least = 1e30;
    for (std::size_t link = 0; link < route.uses.size(); ++link) {
      if (route.uses[link] > 0) least = std::min(least, problem_.links[link].gbytes_per_s / route.uses[link]);
    }
    return least;
  }

  void keepBest(std::vector<Partial>& partial) {
    std::ranges::sort(partial, [](const Partial& a, const Partial& b) {
      return a.state() != b.state() ? a.state() < b.state() : comesBefore(a.route, b.route);
    });
    std::vector<Partial> kept;
    std::size_t same_state = 0;  // where in `kept` they begin
    for (Partial& p : partial) {
      if (!kept.empty() && kept.back().state() != p.state()) same_state = kept.size();
      const auto begin = kept.begin() + static_cast<std::ptrdiff_t>(same_state);
      const bool is_useless = std::any_of(
          begin, kept.end(), [&p](const Partial& other) { return usesNoLess(p.route, other.route); });
      if (!is_useless) kept.push_back(std::move(p));
    }
    partial = std::move(kept);
    keepWidest(partial);
  }

  using Place = std::vector<Partial>::iterator;

  /// The places of the `most` widest, among equals those with the fewest hops, then the first.
  std::vector<std::ptrdiff_t> widest(Place begin, Place end, std::ptrdiff_t most) const {
    std::vector<std::tuple<double, int, std::ptrdiff_t>> order;
    for (auto p = begin; p != end; ++p) order.emplace_back(-width(p->route), p->route.hops, p - begin);
    std::ranges::partial_sort(order, order.begin() + most);
    std::vector<std::ptrdiff_t> places;
    for (std::ptrdiff_t i = 0; i < most; ++i)
      places.push_back(std::get<2>(order[static_cast<std::size_t>(i)]));
    return places;
  }

  /// `partial` is ordered by ports.
  void keepWidest(std::vector<Partial>& partial) {
    const std::size_t ports = std::max<std::size_t>(1, problem_.ports.size());
    const std::size_t cost = problem_.count() * problem_.count() * (1 + problem_.links.size() / kManyLinks);
    const auto most =
        static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, kMostPartialRoutes / cost / ports));
    std::vector<Partial> kept;
    for (auto begin = partial.begin(); begin != partial.end();) {
      const auto end = std::find_if(begin, partial.end(),
                                    [begin](const Partial& p) { return p.route.in != begin->route.in; });
      if (end - begin > most) {
        found_.is_complete = false;
        for (const std::ptrdiff_t place : widest(begin, end, most)) kept.push_back(std::move(begin[place]));
      } else {
        std::move(begin, end, std::back_inserter(kept));
      }
      begin = end;
    }
    partial = std::move(kept);
  }

  void finish(const Route& route) {
    const std::size_t last = at(route.order.back());
    if (problem_.form == RouteForm::ring) {
      Route closed = route;
      const Leg& leg = problem_.leg(last, at(route.order.front()));
      if (problem_.count() > 1) {
        if (!mayEnter(leg)) return;
        takeInside(closed, leg);
      }
      found_.routes.push_back(std::move(closed));
    } else if (problem_.form == RouteForm::ported_ring) {
      for (std::size_t port = 0; port < problem_.ports.size(); ++port) {
        const Leg& leg = problem_.legOut(port, last);
        if (!mayReach(leg) || (!rules_.crosses_ports && port != at(route.in))) continue;
        Route left = route;
        left.out = static_cast<int>(port);
        takePort(left, leg);
        found_.routes.push_back(std::move(left));
      }
    } else {
      found_.routes.push_back(route);
    }
  }

  void dropUseless() {
    std::ranges::sort(found_.routes, comesBefore);
    std::vector<Route> kept;
    const std::size_t ports = std::max<std::size_t>(1, problem_.ports.size());
    std::vector<std::size_t> of_port(ports);
    for (Route& route : found_.routes) {
      std::size_t& count = of_port[at(std::max(0, route.in))];
      if (count == kMostRoutes / ports) {
        found_.is_complete = false;
        continue;
      }
      const bool is_useless =
          std::ranges::any_of(kept, [&route](const Route& other) { return usesNoLess(route, other); });
      if (is_useless) continue;
      kept.push_back(std::move(route));
      ++count;
    }
    found_.routes = std::move(kept);
  }

  const ChannelProblem& problem_;
  const RouteRules& rules_;
  Routes found_;
};

}  // namespace

Routes findRoutes(const ChannelProblem& problem, const RouteRules& rules) {
  return RouteFinder(problem, rules).find();
}

}  // namespace tutti
