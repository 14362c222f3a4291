/* In place of a library that tutti-run is to see a program need. */
int ncclOfAnotherVersion(void) { return 0; }
