/* Filling sft_error; the table of codes is in error.c. */
#ifndef SFTI_ERROR_H
#define SFTI_ERROR_H

#include "safetensors.h"

#include <stdarg.h>

/* The C standard's formats: gcc's plain printf is the C library's of the system, which may be an
 * older one. */
#if defined(__GNUC__) && !defined(__clang__)
#define SFTI_FORMAT(f, a) __attribute__((format(gnu_printf, f, a)))
#elif defined(__GNUC__)
#define SFTI_FORMAT(f, a) __attribute__((format(printf, f, a)))
#else
#define SFTI_FORMAT(f, a)
#endif
#if defined(__GNUC__)
#define SFTI_COLD __attribute__((cold))
#else
#define SFTI_COLD
#endif

/* Fill err (if not NULL) and return code. The text is escaped and cut to fit; the
 * hint is the code's own. "%.*s" may print raw bytes of a file. */
SFTI_COLD sft_code sfti_fail(sft_error *err, sft_code code, const char *format, ...)
    SFTI_FORMAT(3, 4);
/* The same, about a byte of a file; offset may be SFT_NO_OFFSET. */
SFTI_COLD sft_code sfti_fail_byte(sft_error *err, sft_code code, uint64_t offset,
                                  const char *format, ...) SFTI_FORMAT(4, 5);

/* The same, about a tensor. */
SFTI_COLD sft_code sfti_fail_tensor(sft_error *err, sft_code code, uint64_t offset,
                                    sft_span tensor, const char *format, ...)
    SFTI_FORMAT(5, 6);

/* The same about a place in a text: "expected <expected>, found <what stands there>".
 * base is added to at for the offset. */
SFTI_COLD sft_code sfti_fail_at(sft_error *err, sft_code code, uint64_t base, sft_span text,
                                size_t at, const char *expected);

/* SFT_BAD_ARGUMENT, about no byte of a file. */
SFTI_COLD sft_code sfti_misuse(sft_error *err, const char *format, ...) SFTI_FORMAT(2, 3);
SFTI_COLD sft_code sfti_fail_memory(sft_error *err, uint64_t bytes);
SFTI_COLD sft_code sfti_fail_cancelled(sft_error *err);
/* Hand on a failure that was kept apart until it was known to count. A caller's function may have
 * returned the code alone, and left *what as it was. */
SFTI_COLD sft_code sfti_fail_as(sft_error *err, sft_code code, const sft_error *what);

/* Another hint than the code's own; err may be NULL. */
static inline void sfti_hint(sft_error *err, sft_hint hint) {
    if (err) err->hint = hint;
}

/* A note or finding without a code of its own. */
void sfti_error_clear(sft_error *err);
void sfti_error_tensor(sft_error *err, sft_span tensor);
void sfti_error_text(sft_error *err, const char *format, ...) SFTI_FORMAT(2, 3);

/* Escape for human eyes: what sfti_utf8_unsafe tells of and bytes that are not UTF-8 become
 * \xHH or \u{HHHH}; backslash becomes \\ . Writes at most cap bytes, whole
 * escapes and characters only, no NUL; returns the bytes written, *used the bytes read. */
size_t sfti_escape(const char *from, size_t len, char *into, size_t cap, size_t *used);

static inline int sfti_at_most(size_t len, int most) {
    return len < (size_t)most ? (int)len : most;
}
/* Arguments of "%.*s": a text, cut to `most` bytes. */
#define SFTI_CLIP(text, most) sfti_at_most((text).len, most), (text).data

#endif
