#include "runtime/core/descriptor.h"

#include <fmt/format.h>

namespace tutti {

std::string describe(const Descriptor& d) {
  if (isTransfer(d)) return fmt::format("Send/Recv({} bytes)", d.count);
  if (static_cast<int>(d.collective) >= kCollectiveCount || static_cast<int>(d.type) >= kDataTypeCount ||
      static_cast<int>(d.op) >= kAllRedOpCount) {
    return "an operation this version does not know";
  }
  auto call = fmt::format("{}(count {}, {}", name(d.collective), d.count, name(d.type));
  if (isReduction(d.collective)) call += fmt::format(", {}", name(d.op));
  if (hasRoot(d.collective)) call += fmt::format(", root {}", d.root);
  return call + ")";
}

}  // namespace tutti
