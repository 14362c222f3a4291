# Functions of nccl.h that not every version declares: TUTTI_BENCH_FEATURES defines TUTTI_HAS_... as 1 for those
# that are there, else as 0. nccl.h declares what is implemented, and nothing else.
set(header ${PROJECT_SOURCE_DIR}/runtime/include/nccl.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
set(TUTTI_BENCH_FEATURES)
foreach(pair REGISTER:ncclCommRegister REDUCE:ncclReduce SEND_RECV:ncclSend PREMULSUM:ncclRedOpCreatePreMulSum
             GROUP:ncclGroupStart)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 feature)
  list(GET pair 1 function)
  file(STRINGS ${header} declaration REGEX "^ncclResult_t ${function}\\(")
  if(declaration)
    list(APPEND TUTTI_BENCH_FEATURES TUTTI_HAS_${feature}=1)
  else()
    list(APPEND TUTTI_BENCH_FEATURES TUTTI_HAS_${feature}=0)
  endif()
endforeach()
