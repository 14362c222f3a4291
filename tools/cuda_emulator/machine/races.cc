#include "tools/cuda_emulator/machine/races.h"

#include "kernels/fibre/thread_sanitizer.h"

#if defined(__SANITIZE_THREAD__)
namespace tutti::emulator::detector {

void hide() { hideFromThreadSanitizer(); }
void show() { showToThreadSanitizer(); }

void release(void* word) {
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  __tsan_release(word);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

void acquire(void* word) {
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  __tsan_acquire(word);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

void name(const char* words) { __tsan_set_fiber_name(__tsan_get_current_fiber(), words); }

}  // namespace tutti::emulator::detector
#endif
