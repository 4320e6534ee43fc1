/* An error as a line of text. Tests: test_error_text.c. */
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "os/path.h"

#include <string.h>

typedef struct error_line {
    char *into;
    size_t room, put; /* bytes that still fit, 0 from the first cut on; bytes written */
    size_t len;       /* of the whole */
} error_line;

static void put_bytes(error_line *line, const char *text, size_t len) {
    size_t fits = sfti_utf8_cut((sft_span){ text, len }, line->room);
    if (fits > 0) memcpy(line->into + line->put, text, fits);
    line->room = fits == len ? line->room - len : 0;
    line->put += fits;
    line->len += len;
}

static void put_line(error_line *line, const char *text) {
    put_bytes(line, text, strlen(text));
}

typedef size_t error_escape(sft_span text, char *into, size_t cap, size_t *used);

static size_t escape_name(sft_span text, char *into, size_t cap, size_t *used) {
    return sfti_escape(text.data, text.len, into, cap, used);
}

static void put_escape(error_line *line, sft_span text, error_escape *escape) {
    char buffer[256];
    for (size_t used = 1; text.len > 0 && used > 0; text.data += used, text.len -= used)
        put_bytes(line, buffer, escape(text, buffer, sizeof buffer, &used));
}

/* The path that a message begins with, and the ": " behind it. */
static size_t error_path_len(const sft_error *err) {
    size_t most = strlen(err->message);
    size_t len = err->path_len < most ? (size_t)err->path_len : most;
    return len > 0 && most - len >= 2 && memcmp(err->message + len, ": ", 2) == 0 ? len + 2 : 0;
}

size_t sft_error_text(const sft_error *err, const char *path, char *into, size_t cap) {
    return sft_error_text_as(err, path, NULL, into, cap);
}

size_t sft_error_text_as(const sft_error *err, const char *path, sft_words_fn words, char *into,
                         size_t cap) {
    error_line line = { into, cap > 0 ? cap - 1 : 0, 0, 0 };
    char number[SFTI_UINT_SIZE];
    static const sft_error none = SFT_ERROR_INIT;
    if (!err) err = &none;
    if (path) {
        put_escape(&line, sft_span_cstr(path), sfti_path_escape);
        put_line(&line, ": ");
    }
    size_t other = error_path_len(err);
    put_bytes(&line, err->message, other);
    if (err->offset != SFT_NO_OFFSET) {
        put_line(&line, "byte ");
        put_bytes(&line, number, sfti_uint_text(err->offset, 0, number));
        put_line(&line, ": ");
    }
    if (err->tensor_len != SFT_NO_TENSOR) {
        size_t len = err->tensor_len < sizeof err->tensor ? err->tensor_len : sizeof err->tensor;
        put_line(&line, "tensor \"");
        put_escape(&line, (sft_span){ err->tensor, len }, escape_name);
        put_line(&line, "\": ");
    }
    put_line(&line, err->message[0] ? err->message + other
                                    : sft_code_describe(err->code)->sentence);
    const char *hint = words && err->hint != SFT_HINT_NONE ? words(err->hint) : NULL;
    if (!hint) hint = sft_hint_text(err->hint);
    if (hint) {
        put_line(&line, "; ");
        put_line(&line, hint);
    }
    if (cap > 0) into[line.put] = '\0';
    return line.len;
}
