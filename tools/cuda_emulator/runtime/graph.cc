#include "tools/cuda_emulator/runtime/graph.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "tools/cuda_emulator/runtime/error.h"
#include "tools/cuda_emulator/runtime/handles.h"

namespace tutti::emulator {

Graph::~Graph() {
  for (auto* const handle : handles_) {
    if (handle != nullptr) nodeHandles().remove(handle);
  }
}

std::size_t Graph::add(Operation operation, std::vector<std::size_t> dependencies) {
  const std::lock_guard lock(mutex_);
  for (const auto dependency : dependencies) require(dependency < nodes_.size(), cudaErrorInvalidValue);
  nodes_.push_back({std::move(operation), std::move(dependencies)});
  handles_.push_back(nullptr);
  return nodes_.size() - 1;
}

std::vector<GraphNode> Graph::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

std::size_t Graph::size() const {
  const std::lock_guard lock(mutex_);
  return nodes_.size();
}

cudaGraphNode_t Graph::handle(std::size_t index) {
  const std::lock_guard lock(mutex_);
  auto& handle = handles_.at(index);
  if (handle == nullptr)
    handle = nodeHandles().add(std::make_shared<NodeReference>(NodeReference{this, index}));
  return handle;
}

std::size_t Graph::indexOf(cudaGraphNode_t handle) const {
  const auto reference = nodeHandles().get(handle, cudaErrorInvalidValue);
  require(reference->graph == this, cudaErrorInvalidValue);
  return reference->index;
}

void Graph::keep(const UserObjectPtr& object, std::size_t count) {
  const std::lock_guard lock(mutex_);
  kept_.insert(kept_.end(), count, object);
}

std::vector<UserObjectPtr> Graph::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

namespace {

/// Divides the nodes into lanes: a node goes on in the lane of a node that it waits for, if no other did.
///
///   0 ─ 1 ─ 3 ─ 4      lane 0: 0 1 3 4
///    ╲─ 2 ─╱           lane 1: 2
std::vector<std::vector<std::size_t>> divideIntoLanes(const std::vector<GraphNode>& nodes) {
  std::vector<std::vector<std::size_t>> lanes;
  std::vector<std::size_t> lane_of(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto& before = nodes[node].dependencies;
    const auto last = std::find_if(before.begin(), before.end(),
                                   [&](std::size_t other) { return lanes[lane_of[other]].back() == other; });
    lane_of[node] = last != before.end() ? lane_of[*last] : lanes.size();
    if (last == before.end()) lanes.emplace_back();
    lanes[lane_of[node]].push_back(node);
  }
  return lanes;
}

}  // namespace

/// One launch.
struct ExecutableGraph::Run {
  std::shared_ptr<ExecutableGraph> graph;  // keeps what the work needs
  std::vector<std::vector<std::size_t>> lanes;
  std::vector<std::vector<std::size_t>> dependencies;
  std::vector<Work> works;
  std::vector<Completion> done;
  CompletionPtr previous;  // launch of the same graph; nullptr: there is none
  CompletionPtr finished;

  explicit Run(std::size_t count) : dependencies(count), works(count), done(count) {}

  void runLane(const std::vector<std::size_t>& lane) {
    for (const auto node : lane) {
      for (const auto dependency : dependencies[node]) done[dependency].wait();
      works[node]();
      done[node].complete();
    }
  }

  void run() {
    if (previous != nullptr) previous->wait();
    {
      std::vector<std::jthread> others;
      for (std::size_t lane = 1; lane < lanes.size(); ++lane) {
        others.emplace_back([this, lane] { runLane(lanes[lane]); });
      }
      if (!lanes.empty()) runLane(lanes.front());
    }
    finished->complete();
  }
};

ExecutableGraph::ExecutableGraph(const Graph& graph)
    : kept_(graph.kept()), nodes_(graph.nodes()), lanes_(divideIntoLanes(nodes_)) {}

Operation ExecutableGraph::launch() {
  return {cudaGraphNodeTypeGraph, [self = shared_from_this()] { return self->bind(); }};
}

Work ExecutableGraph::bind() {
  const std::lock_guard lock(mutex_);
  auto run = std::make_shared<Run>(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    run->dependencies[node] = nodes_[node].dependencies;
    run->works[node] = nodes_[node].operation.bind();
  }
  run->lanes = lanes_;
  run->graph = shared_from_this();
  run->previous = last_launch_;
  run->finished = last_launch_ = std::make_shared<Completion>();
  return [run] { run->run(); };
}

bool ExecutableGraph::update(const Graph& graph) {
  auto nodes = graph.nodes();
  auto kept = graph.kept();
  const auto same = [](const GraphNode& a, const GraphNode& b) {
    return a.operation.type == b.operation.type && a.dependencies == b.dependencies;
  };
  const std::lock_guard lock(mutex_);
  if (!std::equal(nodes.begin(), nodes.end(), nodes_.begin(), nodes_.end(), same)) return false;
  nodes_ = std::move(nodes);
  // What is no longer kept ends without the lock, since that calls the program.
  kept_.swap(kept);
  return true;
}

}  // namespace tutti::emulator
