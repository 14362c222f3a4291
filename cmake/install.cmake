# `cmake --install`: library, headers, programs and the CMake package (find_package(Tutti) → Tutti::tutti).
include(CMakePackageConfigHelpers)
install(TARGETS tutti EXPORT TuttiTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY runtime/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT TuttiTargets NAMESPACE Tutti:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti)
configure_package_config_file(cmake/TuttiConfig.cmake.in TuttiConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti)
write_basic_package_version_file(TuttiConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/TuttiConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/TuttiConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
get_property(TUTTI_PROGRAMS GLOBAL PROPERTY TUTTI_PROGRAMS)
if(TUTTI_PROGRAMS)
  install(TARGETS ${TUTTI_PROGRAMS} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
