// Two binary trees over the same nodes, of which each carries half the data.
//
// Tree 0 of seven nodes and of six, and tree 1, which has the numbers shifted by one, or for an even count
// reversed:
//
//        3                 3                  2                 2
//      /   \             /   \              /   \             /   \             .
//     1     5           1     5            0     4           4     0
//    / \   / \         / \   /            / \   / \         / \   /
//   0   2 4   6       0   2 4            6   1 3   5       5   3 1
//
// (Tree 1 of six: node n is where 5 - n is in tree 0.) In tree 0 nodes of odd number have children, in tree 1
// those of even number: no node has children in both, so none sends more than others.
#pragma once

#include <array>
#include <vector>

#include "runtime/topology/search.h"

namespace tutti {

/// By node, of `count` nodes.
std::array<std::vector<TreePlace>, 2> doubleTree(int count);

}  // namespace tutti
