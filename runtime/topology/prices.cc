#include "runtime/topology/prices.h"

#include <algorithm>
#include <limits>

namespace tutti {
namespace {

constexpr double kZero = 1e-9;
/// Of the table: 2 MiB.
constexpr std::size_t kMostCells = std::size_t{1} << 18;
constexpr int kMostPivots = 300;
/// From here on the first column that improves is taken, not the best: so it cannot go round in circles.
constexpr int kCarefulPivots = 200;

/// The simplex method: maximise the sum of all x >= 0 with, for each row, the sum of a[row][c] x[c] <=
/// b[row], where b > 0.
class Simplex {
 public:
  Simplex(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), width_(columns + rows + 1), table_((rows + 1) * width_) {
    for (std::size_t row = 0; row < rows; ++row) {
      cell(row, columns + row) = 1;
      basis_.push_back(columns + row);
    }
    for (std::size_t column = 0; column < columns; ++column) cell(rows, column) = -1;
  }

  double& coefficient(std::size_t row, std::size_t column) { return cell(row, column); }
  double& limit(std::size_t row) { return cell(row, width_ - 1); }

  void solve() {
    for (int pivots = 0; pivots < kMostPivots; ++pivots) {
      const std::size_t column = entering(pivots >= kCarefulPivots);
      const std::size_t row = column < width_ ? leaving(column) : rows_;
      if (row == rows_) return;
      pivot(row, column);
    }
  }

  /// Of a row: the price of one more in its limit.
  double price(std::size_t row) { return std::max(0.0, cell(rows_, columns_ + row)); }
  std::vector<double> solution() {
    std::vector<double> x(columns_);
    for (std::size_t row = 0; row < rows_; ++row) {
      if (basis_[row] < columns_) x[basis_[row]] = limit(row);
    }
    return x;
  }

 private:
  double& cell(std::size_t row, std::size_t column) { return table_[row * width_ + column]; }

  std::size_t entering(bool is_careful) {
    std::size_t best = width_;
    for (std::size_t column = 0; column + 1 < width_; ++column) {
      const double gain = -cell(rows_, column);
      if (gain <= kZero || (best < width_ && gain <= -cell(rows_, best))) continue;
      best = column;
      if (is_careful) break;
    }
    return best;
  }

  std::size_t leaving(std::size_t column) {
    std::size_t best = rows_;
    double least = std::numeric_limits<double>::max();
    for (std::size_t row = 0; row < rows_; ++row) {
      if (cell(row, column) <= kZero) continue;
      const double ratio = limit(row) / cell(row, column);
      if (ratio < least - kZero || (ratio < least + kZero && basis_[row] < basis_[best])) {
        least = std::min(least, ratio);
        best = row;
      }
    }
    return best;
  }

  void pivot(std::size_t row, std::size_t column) {
    const double scale = 1 / cell(row, column);
    for (std::size_t c = 0; c < width_; ++c) cell(row, c) *= scale;
    for (std::size_t r = 0; r <= rows_; ++r) {
      const double factor = cell(r, column);
      if (r == row || factor == 0) continue;
      for (std::size_t c = 0; c < width_; ++c) cell(r, c) -= factor * cell(row, c);
    }
    basis_[row] = column;
  }

  std::size_t rows_;
  std::size_t columns_;
  std::size_t width_;
  std::vector<double> table_;  ///< the last row is the objective, the last column the limits
  std::vector<std::size_t> basis_;
};

LinkPrices unpriced(std::size_t routes) {
  return {
      {}, std::numeric_limits<double>::max(), std::vector<double>(routes, 1), std::vector<double>(routes)};
}

}  // namespace

LinkPrices priceLinks(const ChannelProblem& problem, const std::vector<Route>& routes) {
  const std::size_t links = problem.links.size();
  if (links * (links + routes.size()) > kMostCells) return unpriced(routes.size());
  Simplex simplex(links, routes.size());
  for (std::size_t link = 0; link < links; ++link) {
    simplex.limit(link) = problem.links[link].gbytes_per_s;
    for (std::size_t r = 0; r < routes.size(); ++r)
      simplex.coefficient(link, r) = routes[r].uses[link] / 10.0;
  }
  simplex.solve();
  LinkPrices prices;
  prices.use_gbytes = simplex.solution();
  for (std::size_t link = 0; link < links; ++link) prices.by_link.push_back(simplex.price(link));
  double least = std::numeric_limits<double>::max();
  for (const Route& route : routes) {
    double sum = 0;
    for (std::size_t link = 0; link < links; ++link) sum += prices.by_link[link] * route.uses[link] / 10;
    prices.by_route.push_back(sum);
    least = std::min(least, sum);
  }
  if (least < kZero) return unpriced(routes.size());
  // Nobody may pay less than 1.
  for (double& price : prices.by_link) price /= least;
  for (double& price : prices.by_route) price /= least;
  for (std::size_t link = 0; link < links; ++link) {
    prices.bound_gbytes_per_s += prices.by_link[link] * problem.links[link].gbytes_per_s;
  }
  return prices;
}

}  // namespace tutti
