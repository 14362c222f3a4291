#include "runtime/core/descriptor.h"

#include <fmt/format.h>

namespace tutti {

std::string describe(const Descriptor& d) {
  if (isTransfer(d)) return fmt::format("Send/Recv({} bytes)", d.count);
  if (static_cast<int>(d.collective) >= kCollectiveCount || static_cast<int>(d.type) >= kDataTypeCount ||
      static_cast<int>(d.op) >= kAllRedOpCount) {
    return "an operation this version does not know";
  }
  const auto call = fmt::format("{}(count {}, {}", name(d.collective), d.count, name(d.type));
  if (isReduction(d.collective)) return fmt::format("{}, {})", call, name(d.op));
  if (hasRoot(d.collective)) return fmt::format("{}, root {})", call, d.root);
  return call + ")";
}

}  // namespace tutti
