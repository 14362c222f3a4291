// In which order ranks stand round the ring of each lane: fixed when a communicator is made, equal on all
// ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tutti {

/// What programs see of the orders: a view of memory that outlives every operation, where they run.
struct RingOrders {
  /// One after the other: the ranks by place, then the places by rank. nullptr: everywhere as numbered.
  const std::uint16_t* tables = nullptr;
  std::uint32_t count = 0;  ///< lane l takes order l % count

  /// nullptr: ranks stand in the order of their numbers.
  constexpr const std::uint16_t* of(std::uint32_t lane, std::int32_t nranks) const {
    if (tables == nullptr) return nullptr;
    return tables + std::uint64_t{lane % count} * 2 * static_cast<std::uint64_t>(nranks);
  }
};

/// The orders of a communicator. Holds nothing where all are as numbered, so that those cost nothing.
class RingTables {
 public:
  RingTables() = default;
  /// Each order lists every rank once; all start where they like, a ring has no first.
  explicit RingTables(std::vector<std::vector<int>> orders) {
    for (auto& order : orders) std::rotate(order.begin(), std::ranges::find(order, 0), order.end());
    if (std::ranges::adjacent_find(orders, std::not_equal_to()) == orders.end() && !orders.empty()) {
      orders.resize(1);
    }
    if (orders.empty() || (orders.size() == 1 && std::ranges::is_sorted(orders.front()))) return;
    count_ = static_cast<std::uint32_t>(orders.size());
    for (const auto& order : orders) append(order);
  }

  RingOrders view() const { return viewAt(tables_.data()); }
  /// The same orders, where `copy` is a copy of tables().
  RingOrders viewAt(const std::uint16_t* copy) const { return {count_ == 0 ? nullptr : copy, count_}; }
  std::span<const std::uint16_t> tables() const { return tables_; }

 private:
  void append(const std::vector<int>& order) {
    const std::size_t places_at = tables_.size() + order.size();
    tables_.resize(tables_.size() + 2 * order.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
      const auto rank = static_cast<std::size_t>(order[place]);
      tables_[places_at - order.size() + place] = static_cast<std::uint16_t>(rank);
      tables_[places_at + rank] = static_cast<std::uint16_t>(place);
    }
  }

  std::vector<std::uint16_t> tables_;
  std::uint32_t count_ = 0;
};

}  // namespace tutti
