# What a source of a newer instruction set defines for the linker: its table, and nothing that could be taken for a
# function of the rest of the program. Run with -DNM= and -DOBJECTS= (a list with ',' between).
string(REPLACE "," ";" objects "${OBJECTS}")
foreach(set IN ITEMS avx2 avx512)
  set(found ${objects})
  list(FILTER found INCLUDE REGEX "combine_${set}\\.cc")
  if(NOT found)
    message(FATAL_ERROR "no object of combine_${set}.cc among ${objects}")
  endif()
  execute_process(COMMAND ${NM} --defined-only --extern-only --demangle ${found}
                  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${symbols}" symbols)
  if(NOT symbols MATCHES "^[0-9a-f]+ [A-Z] tutti::kCombineAvx[0-9]+$")
    message(FATAL_ERROR "combine_${set}.cc must define its table only, but defines:\n${symbols}")
  endif()
endforeach()
