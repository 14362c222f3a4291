#pragma once

namespace tutti::test {

/// Launches a kernel that traps: CUDA's calls of this process fail from then on.
void breakGpu();

}  // namespace tutti::test
