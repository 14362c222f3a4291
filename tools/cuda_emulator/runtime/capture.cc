#include "tools/cuda_emulator/runtime/capture.h"

#include <algorithm>
#include <utility>

#include "tools/cuda_emulator/runtime/handles.h"

namespace tutti::emulator {

Capture::Capture(StreamPtr origin, cudaStreamCaptureMode mode, std::uint64_t id)
    : origin_(std::move(origin)), mode_(mode), id_(id), graph_handle_(graphHandles().add(graph_)) {
  tips_[origin_];
}

bool Capture::has(const Stream& stream) const {
  return std::any_of(tips_.begin(), tips_.end(), [&](const auto& tip) { return tip.first.get() == &stream; });
}

void Capture::add(const StreamPtr& stream, const Operation& operation) {
  auto& tips = tips_.at(stream);
  tips = {graph_->add(operation, {tips.begin(), tips.end()})};
}

void Capture::follow(const StreamPtr& stream, const std::vector<std::size_t>& nodes) {
  tips_[stream].insert(nodes.begin(), nodes.end());
}

void Capture::setTips(const StreamPtr& stream, const std::vector<std::size_t>& nodes) {
  tips_.at(stream) = {nodes.begin(), nodes.end()};
}

bool Capture::joined() const {
  const auto nodes = graph_->nodes();
  std::vector<bool> before_origin(nodes.size(), false);
  for (const auto tip : tips_.at(origin_)) before_origin[tip] = true;
  for (std::size_t node = nodes.size(); node-- > 0;) {
    if (!before_origin[node]) continue;
    for (const auto dependency : nodes[node].dependencies) before_origin[dependency] = true;
  }
  return std::all_of(tips_.begin(), tips_.end(), [&](const auto& stream) {
    const auto& tips = stream.second;
    return std::all_of(tips.begin(), tips.end(), [&](std::size_t tip) { return before_origin[tip]; });
  });
}

const std::vector<cudaGraphNode_t>& Capture::tipHandles(const StreamPtr& stream) {
  tip_handles_.clear();
  for (const auto tip : tips_.at(stream)) tip_handles_.push_back(graph_->handle(tip));
  return tip_handles_;
}

}  // namespace tutti::emulator
