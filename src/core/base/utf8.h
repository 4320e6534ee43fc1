/* Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef SFTI_UTF8_H
#define SFTI_UTF8_H

#include "safetensors.h"

/* Bytes of the character at p (1 to 4), *out its code point; 0 if ill-formed. */
size_t sfti_utf8_decode(const uint8_t *p, const uint8_t *end, uint32_t *out);
/* Bytes written to out (1 to 4). code must be a scalar value. */
size_t sfti_utf8_encode(uint32_t code, char *out);
/* First ill-formed byte, or len. */
size_t sfti_utf8_check(const char *text, size_t len);
/* Bytes of the longest beginning of at most `most` bytes that ends between two characters. */
size_t sfti_utf8_cut(sft_span text, size_t most);
/* Whether a text has control characters: C0, DEL or C1. */
bool sfti_utf8_has_control(sft_span text);

/* Whether a code point is shown as an escape, never as itself: controls, line and paragraph
 * separators, format characters (Cf) and whatever else has no glyph (Default_Ignorable). They
 * move the cursor, reorder text or make two different names look the same. */
bool sfti_utf8_unsafe(uint32_t code);

/* Whether text begins with a mark of other scripts, such as "，", "：" or "「": of U+2000 to 203F,
 * 3000 to 303F, FF00 to FF3F. */
bool sfti_utf8_mark(sft_span text);

#endif
