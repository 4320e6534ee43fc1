/* Arguments of a pickle's opcodes that are lines of text. */
#ifndef SFTI_PICKLE_TEXT_H
#define SFTI_PICKLE_TEXT_H

#include "formats/parts/value.h"

/* "12", "-3", "12L": 1 if the value is in *out, 0 if it is wider than 64 bits, -1 if it is no
 * integer. */
int sfti_pickle_decimal(sft_span text, int64_t *out);
/* Two's complement, little-endian, of any length: false if it is wider than 64 bits. */
bool sfti_pickle_long(const uint8_t *bytes, size_t len, int64_t *out);
/* 'text' or "text" with Python's escapes, into as many bytes at most; false if it is neither. */
bool sfti_pickle_quoted(sft_span text, char *into, size_t *len);
/* Text with \uXXXX and \UXXXXXXXX, and bytes that are Latin-1. into has room for twice as many
 * bytes. False: an escape that is none. */
bool sfti_pickle_unicode(sft_span text, char *into, size_t *len);

#endif
