// ThreadSanitizer's own functions, where it is there: some of them have no header.
#pragma once

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#include <sys/mman.h>

#include <cstddef>

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace tutti {

/// From now on ThreadSanitizer sees nothing of what this thread or fibre accesses, and no order that it
/// makes. Does not nest.
inline void hideFromThreadSanitizer() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);  // writes, too
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
inline void showToThreadSanitizer() {
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

/// While hidden: nothing is known any more of accesses to these pages, which lose their contents.
inline void makeThreadSanitizerForget(void* pages, std::size_t bytes) {
  ::mmap(pages, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

}  // namespace tutti
#endif
