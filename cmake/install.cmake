# `cmake --install`: libraries, headers, programs, the CMake package (find_package(Tutti) → Tutti::tutti and
# Tutti::nccl) and the pkg-config modules tutti and nccl. All of it works wherever the prefix is moved to.
include(CMakePackageConfigHelpers)
set(TUTTI_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
install(TARGETS tutti tutti_nccl EXPORT tutti-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY runtime/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tutti-targets NAMESPACE Tutti:: DESTINATION ${TUTTI_PACKAGE_DIR})
configure_package_config_file(cmake/tutti-config.cmake.in tutti-config.cmake INSTALL_DESTINATION ${TUTTI_PACKAGE_DIR})
write_basic_package_version_file(tutti-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tutti-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/tutti-config-version.cmake
        DESTINATION ${TUTTI_PACKAGE_DIR})

# pkg-config's files name the prefix by their own place, unless the folders were configured as absolute paths.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(TUTTI_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(TUTTI_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  set(TUTTI_PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(TUTTI_PC_PREFIX "\${pcfiledir}/${up}")
  set(TUTTI_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  set(TUTTI_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
foreach(module tutti nccl)
  configure_file(cmake/${module}.pc.in ${module}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
get_property(TUTTI_PROGRAMS GLOBAL PROPERTY TUTTI_PROGRAMS)
if(TUTTI_PROGRAMS)
  install(TARGETS ${TUTTI_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
