# What tools/gpu-check runs, as a target to build; and, as an install component that a plain `cmake --install` leaves out,
# what it needs on another machine beside what is installed anyway. All of it finds its libraries by $ORIGIN.
get_property(gpu_tests GLOBAL PROPERTY TUTTI_GPU_TESTS)
get_property(plugins GLOBAL PROPERTY TUTTI_PROGRAM_PLUGINS)
get_property(programs GLOBAL PROPERTY TUTTI_PROGRAMS)
set(helpers ${gpu_tests})
list(FILTER gpu_tests INCLUDE REGEX "_test$")
list(FILTER helpers EXCLUDE REGEX "_test$")
add_custom_target(gpu_check_programs)
add_dependencies(gpu_check_programs ${gpu_tests} ${helpers} ${plugins} ${programs} tutti-gpu-bench tutti tutti_nccl tutti_cuda
                                    tutti_cudart)

set(component COMPONENT gpu-check EXCLUDE_FROM_ALL)
install(TARGETS ${gpu_tests} RUNTIME DESTINATION tests ${component})
install(TARGETS ${helpers} tutti-gpu-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${component})
install(PROGRAMS tools/gpu-check DESTINATION tools ${component})
install(DIRECTORY tools/gpu_check DESTINATION tools ${component} FILES_MATCHING PATTERN "*.py")
install(FILES LICENSE DESTINATION share/tutti RENAME text ${component})  # what the training run reads
# NVIDIA permits to pass its runtime on (CUDA's EULA, attachment A).
file(REAL_PATH ${CUDA_cudart_LIBRARY} cudart)
install(FILES ${cudart} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME libcudart.so.13 ${component})
