#include_next <sys/random.h>

#ifndef SHIM_RANDOM
#define SHIM_RANDOM

int shim_getentropy(void *into, size_t len);
#define getentropy shim_getentropy
#define getrandom shim_has_no_getrandom

#endif
