# CUDA code: found by cmake/dependencies.cmake, compiled by nvcc. The CUDA runtime is linked shared, so that it can be
# stood in for (tools/cuda_emulator).
set(TUTTI_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures, such as 80;90;100: machine code of each, and PTX")
set(TUTTI_CUDA_KERNELS_FROM "" CACHE PATH "A build folder whose objects of kernels are used, if it has them: no sanitizer changes these")
set(CMAKE_CUDA_ARCHITECTURES ${TUTTI_CUDA_ARCHITECTURES})
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know nvcc's
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

# What every CUDA source of the project is compiled with: one rounding per operation, as on the host.
add_library(tutti_cuda_flags INTERFACE)
target_include_directories(tutti_cuda_flags INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runtime/include)
target_compile_options(tutti_cuda_flags INTERFACE
                       "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra>")
