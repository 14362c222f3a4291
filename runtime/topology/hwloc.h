// hwloc, opened at run time: it tells of this machine in its XML, which hwloc_xml.h reads.
#pragma once

#include <string>

namespace tutti {

struct HwlocView {
  std::string xml;
  std::string problem;  ///< why there is no xml
};

/// Takes 5 s at most. Without those of its plugins that would ask GPUs and displays. Throws nothing.
HwlocView askHwloc();

}  // namespace tutti
