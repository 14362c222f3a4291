// The picture of a machine.
#pragma once

#include <string>

#include "tools/topo/machine.h"

namespace tutti::topo {

/// A whole SVG document. Up to four hosts are all drawn; of more, one of each shape. Text size is fixed, so
/// the picture is as large as the machine.
std::string svgPicture(const Machine& machine);

}  // namespace tutti::topo
