// Which devices and ports the user wants.
#pragma once

#include <string>
#include <vector>

namespace tutti {

/// NCCL_IB_HCA: names or prefixes of devices, each perhaps with ":PORT", separated by commas. "=" before them
/// all: whole names; "^": all others; both, in either order.
class HcaRule {
 public:
  /// Throws Error(ncclInvalidUsage) for a port that is no number of 1 to 255.
  explicit HcaRule(const std::string& text);
  bool allows(const std::string& device, int port) const;
  /// Whether any port of the device is wanted, were it there: else it need not be opened.
  bool allowsSomeOf(const std::string& device) const;

 private:
  struct Item {
    std::string name;
    int port = -1;  ///< any
  };
  bool excludes_ = false;
  bool is_exact_ = false;
  std::vector<Item> items_;
};

}  // namespace tutti
