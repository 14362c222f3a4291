#include <cstddef>
#include <cstdint>

#include "tests/topology/fuzz/properties.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::test::checkHwlocXml({reinterpret_cast<const char*>(data), size});
  return 0;
}
