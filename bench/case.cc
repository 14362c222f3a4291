#include "bench/case.h"

#include <fmt/format.h>

#include "bench/verify.h"

namespace tutti::perf {
namespace {

/// The case without a size.
std::vector<Case> kindsOf(const Options& options, const Collective& collective, int nranks) {
  std::vector<Case> kinds;
  for (const ncclDataType_t type : options.types) {
    const auto add = [&](std::optional<ncclRedOp_t> op, int root) {
      kinds.push_back({.type = type,
                       .op = op,
                       .root = root,
                       .element_bytes = elementBytes(type),
                       .count = 0,
                       .asked_bytes = 0,
                       .span_bytes = 0});
    };
    const auto addRoots = [&](std::optional<ncclRedOp_t> op) {
      if (collective.rooted && options.root == Options::kAllRoots) {
        for (int root = 0; root < nranks; ++root) add(op, root);
      } else {
        add(op, collective.rooted ? options.root : -1);
      }
    };
    if (collective.reduces()) {
      for (const ncclRedOp_t op : options.ops) addRoots(op);
    } else {
      addRoots(std::nullopt);
    }
  }
  return kinds;
}

}  // namespace

std::string Case::describe(bool in_place) const {
  std::string text = fmt::format("size {} {}", span_bytes, typeName(type));
  if (op) text += fmt::format(" {}", opName(*op));
  if (root >= 0) text += fmt::format(" root {}", root);
  return text + (in_place ? " in-place" : " out-of-place");
}

std::vector<Case> casesOf(const Options& options, const Collective& collective, int nranks) {
  const std::vector<std::size_t> sizes = sizesOf(options.sizes);
  std::vector<Case> all;
  for (Case& item : kindsOf(options, collective, nranks)) {
    for (const std::size_t bytes : sizes) {
      const Layout layout = collective.layout(bytes, item.element_bytes, nranks, 0);
      item.asked_bytes = bytes;
      item.count = layout.param;
      item.span_bytes = collective.span(bytes, item.element_bytes, nranks) * item.element_bytes;
      all.push_back(item);
    }
  }
  return all;
}

}  // namespace tutti::perf
