/* SipHash-2-4: a tag that nobody can make who does not know the key. */
#ifndef SFTI_SIPHASH_H
#define SFTI_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t sfti_siphash(const uint64_t key[2], const void *bytes, size_t len);

#endif
