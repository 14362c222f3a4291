// Graphs: operations and what each of them waits for; and their executable form.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/cuda_emulator/runtime/operation.h"
#include "tools/cuda_emulator/runtime/user_object.h"

namespace tutti::emulator {

struct GraphNode {
  Operation operation;
  std::vector<std::size_t> dependencies;  ///< indices of nodes, all lower than its own
};

/// Only grows, so that the order of its nodes is one in which they can run. Thread-safe.
class Graph {
 public:
  ~Graph();

  /// Throws cudaErrorInvalidValue for a dependency that is no node of it.
  std::size_t add(Operation operation, std::vector<std::size_t> dependencies);
  std::vector<GraphNode> nodes() const;
  std::size_t size() const;

  /// The handle of node `index`, the same at each call; it ends with the graph.
  cudaGraphNode_t handle(std::size_t index);
  /// Throws cudaErrorInvalidValue where the node is another graph's.
  std::size_t indexOf(cudaGraphNode_t handle) const;

  /// Keeps `count` references of a user's object for as long as the graph, or what was made of it, lives.
  void keep(const UserObjectPtr& object, std::size_t count);
  std::vector<UserObjectPtr> kept() const;

 private:
  mutable std::mutex mutex_;
  std::vector<GraphNode> nodes_;
  std::vector<cudaGraphNode_t> handles_;
  std::vector<UserObjectPtr> kept_;
};

/// A copy of a graph that can be launched again and again; launches follow one another. Branches of the graph
/// run side by side, each in a thread. Held by a shared_ptr, also by what is under way. Thread-safe.
class ExecutableGraph : public std::enable_shared_from_this<ExecutableGraph> {
 public:
  explicit ExecutableGraph(const Graph& graph);

  /// What a launch puts into a stream.
  Operation launch();
  /// Takes the operations of `graph`. False, and nothing changes, where its nodes or edges are others.
  bool update(const Graph& graph);

 private:
  struct Run;
  Work bind();

  std::mutex mutex_;
  std::vector<UserObjectPtr> kept_;  // also by launches, which keep this object
  std::vector<GraphNode> nodes_;
  std::vector<std::vector<std::size_t>> lanes_;  // nodes that one thread runs in this order
  CompletionPtr last_launch_;
};

}  // namespace tutti::emulator
