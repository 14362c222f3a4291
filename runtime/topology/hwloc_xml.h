// hwloc's XML, version 2: what lstopo exports, and what hwloc itself tells of this machine (discovery).
#pragma once

#include <string>
#include <string_view>

#include "runtime/topology/nccl_xml.h"

namespace tutti {

/// Throws FileError, as readNcclXml. One host.
TopologyFile readHwlocXml(std::string_view text, const std::string& name);

/// Either format, by the root element. Throws FileError; also for files that cannot be opened or are larger
/// than 64 MiB.
TopologyFile readTopologyFile(const std::string& path);

}  // namespace tutti
