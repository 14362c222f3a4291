#include "runtime/core/descriptor.h"

#include <fmt/format.h>

namespace tutti {

std::string describe(const Descriptor& d, std::uint64_t number) {
  if (isTransfer(d)) return fmt::format("Send/Recv of {} bytes", d.count);
  if (static_cast<int>(d.collective) >= kCollectiveCount || static_cast<int>(d.type) >= kDataTypeCount ||
      static_cast<int>(d.op) >= kAllRedOpCount) {
    return "an operation this version does not know";
  }
  std::string call(name(d.collective));
  if (number != 0) call += fmt::format(" #{}", number);
  if (isReduction(d.collective)) call += fmt::format(" {}", name(d.op));
  call += fmt::format(" {} ×{}", name(d.type), d.count);
  if (hasRoot(d.collective)) call += fmt::format(" root {}", d.root);
  return call;
}

}  // namespace tutti
