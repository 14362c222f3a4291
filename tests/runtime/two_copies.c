// A program that is linked with both libraries, in an order that the build chooses. Prints what each API
// says.
#include <nccl.h>
#include <stdio.h>
#include <tutti/launch.h>

int main(void) {
  ncclUniqueId id;
  tuttiLaunch_t launch;
  const ncclResult_t by_nccl = ncclGetUniqueId(&id);
  printf("ncclGetUniqueId: %d %s\n", by_nccl, ncclGetLastError(NULL));
  // The words that the other library keeps are out of reach: ncclGetLastError is a function of one of them.
  printf("tuttiLaunchFromEnvironment: %d\n", tuttiLaunchFromEnvironment(&launch));
  return 0;
}
