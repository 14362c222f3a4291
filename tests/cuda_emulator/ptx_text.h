// PTX written by hand, for what nvcc would not write.
#pragma once

#include <string>

namespace tutti::emulator {

/// A module of one kernel `k` with one pointer parameter, in %rd1, and some registers.
inline std::string kernelText(const std::string& body) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n\n.visible .entry k(\n.param .u64 k_param_0\n)\n{\n"
         ".reg .pred %p<4>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<16>;\n.reg .f32 %f<8>;\n.reg .f64 %fd<4>;\n"
         ".reg .b64 %rd<8>;\nld.param.u64 %rd1, [k_param_0];\n" +
         body + "\nret;\n}\n";
}

}  // namespace tutti::emulator
