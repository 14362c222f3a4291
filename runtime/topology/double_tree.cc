#include "runtime/topology/double_tree.h"

#include <algorithm>

namespace tutti {
namespace {

/// In the order of positions 1 to count, a position's height in the tree is its number of trailing zeroes;
/// it hangs at the position half as far away as its sibling. -1: the root.
int parentOf(int position, int count) {
  const int bit = position & -position;
  const int left = position & ~bit;
  const int right = left | bit << 1;
  if (right <= count) return right;
  return left == 0 ? -1 : left;
}

/// `node_at(position)`: who is where.
template <typename NodeAt>
std::vector<TreePlace> treeOf(int count, NodeAt node_at) {
  std::vector<TreePlace> tree(static_cast<std::size_t>(count));
  for (int position = 1; position <= count; ++position) {
    const int parent = parentOf(position, count);
    if (parent < 0) continue;
    const int node = node_at(position);
    const int up = node_at(parent);
    tree[static_cast<std::size_t>(node)].up = up;
    tree[static_cast<std::size_t>(up)].down.push_back(node);
  }
  return tree;
}

}  // namespace

std::array<std::vector<TreePlace>, 2> doubleTree(int count) {
  const auto in_order = [](int position) { return position - 1; };
  const auto reversed = [count](int position) { return count - position; };
  const auto shifted = [count](int position) { return (position - 2 + count) % count; };
  return {treeOf(count, in_order), count % 2 == 0 ? treeOf(count, reversed) : treeOf(count, shifted)};
}

}  // namespace tutti
