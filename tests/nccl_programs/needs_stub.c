#include <stdio.h>

int ncclOfAnotherVersion(void);

int main(void) {
  puts("started");
  return ncclOfAnotherVersion();
}
