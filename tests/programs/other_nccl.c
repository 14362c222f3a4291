/* Another library of NCCL's name, and a program that says whose functions it got. */
#ifdef TUTTI_TEST_LIBRARY
int ncclGetVersion(int* version);

int ncclGetVersion(int* version) {
  *version = 1;
  return 0;
}
#else
#include <stdio.h>

int ncclGetVersion(int* version);

int main(void) {
  int version = 0;
  ncclGetVersion(&version);
  puts(version == 1 ? "another" : "Tutti's");
  return 0;
}
#endif
