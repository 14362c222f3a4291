# Libraries that are not our subject, from the distribution's packages (tools/install-packages names them).
# What the shared library needs is linked in statically, so that it NEEDs only the C/C++ runtime.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# tutti_import_static(target pkg-config-module archive): an imported static library.
function(tutti_import_static target module archive)
  pkg_check_modules(${target}_PC REQUIRED QUIET ${module})
  find_library(${target}_ARCHIVE NAMES ${archive} HINTS ${${target}_PC_LIBRARY_DIRS} REQUIRED)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${target}_ARCHIVE}
                                             INTERFACE_INCLUDE_DIRECTORIES "${${target}_PC_INCLUDE_DIRS}")
endfunction()

tutti_import_static(sodium libsodium libsodium.a)
tutti_import_static(xxhash libxxhash libxxhash.a)
tutti_import_static(pugixml pugixml libpugixml.a)
# The fibres' stack switch. Not by find_package(Boost): that takes the shared library where both are installed.
find_library(boost_context_ARCHIVE NAMES libboost_context.a REQUIRED)
find_path(boost_context_INCLUDE boost/context/fiber.hpp REQUIRED)
add_library(boost_context STATIC IMPORTED GLOBAL)
set_target_properties(boost_context PROPERTIES IMPORTED_LOCATION ${boost_context_ARCHIVE}
                                               INTERFACE_INCLUDE_DIRECTORIES ${boost_context_INCLUDE})
find_package(fmt REQUIRED)
# {fmt} compiled once, where its version is one that runtime/core/fmt.cc can compile; else in every source.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
try_compile(TUTTI_FMT_COMPILES ${CMAKE_BINARY_DIR}/fmt_check ${PROJECT_SOURCE_DIR}/runtime/core/fmt.cc CXX_STANDARD 20)
unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
if(TUTTI_TOOLS OR TUTTI_BENCH)
  find_package(CLI11 REQUIRED)
  find_package(nlohmann_json REQUIRED)
endif()
if(TUTTI_BENCH)
  find_package(benchmark REQUIRED)
  # Peers that bench/compare measures against, both optional; by their own module names, because plain "mpi"
  # is only one of them.
  pkg_check_modules(OPENMPI QUIET ompi-c)
  pkg_check_modules(MPICH QUIET mpich)
endif()
if(TUTTI_TESTS)
  find_package(GTest REQUIRED)
endif()

# tutti_optional(NAME found what): resolves an AUTO/ON/OFF option into TUTTI_HAVE_NAME and a line of the summary.
function(tutti_optional name found what)
  set(have OFF)
  if(TUTTI_${name} STREQUAL "OFF")
    set(line "off (TUTTI_${name}=OFF)")
  elseif(found)
    set(have ON)
    set(line "${what} found")
  elseif(TUTTI_${name} STREQUAL "ON")
    message(FATAL_ERROR "TUTTI_${name}=ON, but ${what} was not found. Install it, or use TUTTI_${name}=AUTO.")
  elseif(TUTTI_${name} STREQUAL "AUTO")
    set(line "off (${what} not found)")
  else()
    message(FATAL_ERROR "TUTTI_${name}=${TUTTI_${name}}: use AUTO, ON or OFF.")
  endif()
  set(TUTTI_HAVE_${name} ${have} PARENT_SCOPE)
  set(TUTTI_SUMMARY_${name} "${line}" PARENT_SCOPE)
endfunction()

find_package(CUDAToolkit QUIET)
find_path(TUTTI_VERBS_INCLUDE infiniband/verbs.h)
find_package(Python3 QUIET COMPONENTS Development.Module)
tutti_optional(CUDA "${CUDAToolkit_FOUND}" "the CUDA toolkit")
tutti_optional(VERBS "${TUTTI_VERBS_INCLUDE}" "rdma-core's infiniband/verbs.h")
tutti_optional(PYTHON "${Python3_Development.Module_FOUND}" "Python's development headers")
foreach(later PYTHON)
  if(TUTTI_HAVE_${later})
    string(APPEND TUTTI_SUMMARY_${later} "; nothing in this version builds on it yet")
  endif()
endforeach()
