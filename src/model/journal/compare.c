/* A file compared with its journal, byte for byte. Tests: test_edit_journal.c. */
#include "base/endian.h"
#include "journal/journal.h"

#include <string.h>

/* ── Comparing ── */

/* The file's bytes; of its head those that were read, where they were. */
typedef struct jr_bytes {
    int fd;
    sft_span header;
} jr_bytes;

static int jr_bytes_read(const jr_bytes *from, char *into, size_t len, uint64_t at, size_t *got) {
    char prefix[8];
    if (!from->header.data) return sfti_read_all(from->fd, into, len, at, got);
    sfti_put_u64(prefix, from->header.len);
    for (*got = 0; *got < len && at + *got < 8; ++*got) into[*got] = prefix[at + *got];
    uint64_t begin = at + *got - 8;
    size_t left = begin < from->header.len ? from->header.len - (size_t)begin : 0;
    if (left > len - *got) left = len - *got;
    if (left > 0) memcpy(into + *got, from->header.data + begin, left);
    *got += left;
    return 0;
}

/* A piece of the journal against the file: what was `old_len` long there is `new_len` long
 * here, and has moved up by the difference once blocks came in. */
typedef struct jr_section {
    uint64_t file_at, old_at, old_len, new_at, new_len, moved;
} jr_section;

/* Bytes [at, at + len) of part of the journal, zeros where it has none. */
static int jr_part(const sfti_journal_file *j, uint64_t part_at, uint64_t part_len, uint64_t at,
                   size_t len, char *into) {
    memset(into, 0, len);
    if (at >= part_len) return 0;
    if (part_len - at < len) len = (size_t)(part_len - at);
    return sfti_journal_read(j, into, len, part_at + at);
}

static int jr_section_piece(const sfti_journal_file *j, const jr_bytes *from,
                            const jr_section *s, uint64_t at, size_t want,
                            sfti_journal_verdict *v) {
    char *file = j->buffers->piece[0], *after = j->buffers->piece[1];
    char *before = j->buffers->piece[2], *before_in_place = j->buffers->piece[3];
    size_t got = 0;
    size_t in_place = at >= s->old_len ? 0
                      : s->old_len - at < want ? (size_t)(s->old_len - at) : want;
    int error = jr_bytes_read(from, file, want, s->file_at + at, &got);
    if (error) return error;
    if (got < want) v->is_old = v->is_new = v->is_either = false;
    if (got < want) return 0;
    /* The old bytes, `moved` further on, have zeros before them. */
    size_t zeros = at >= s->moved ? 0 : s->moved - at < want ? (size_t)(s->moved - at) : want;
    memset(before, 0, zeros);
    if (zeros < want)
        error = jr_part(j, s->old_at, s->old_len, at + zeros - s->moved, want - zeros,
                        before + zeros);
    if (!error) error = jr_part(j, s->new_at, s->new_len, at, want, after);
    if (!error) error = jr_part(j, s->old_at, s->old_len, at, want, before_in_place);
    if (error) return error;
    v->is_old = v->is_old && memcmp(file, before_in_place, in_place) == 0;
    bool is_new = memcmp(file, after, want) == 0;
    v->is_new = v->is_new && is_new;
    for (size_t i = 0; i < want && v->is_either && !is_new; i++)
        v->is_either = file[i] == before[i] || file[i] == after[i];
    return 0;
}

static int jr_section_compare(const sfti_journal_file *j, const jr_bytes *from,
                              const jr_section *s, sfti_journal_verdict *v) {
    uint64_t whole = s->old_len + s->moved;
    for (uint64_t at = 0; at < whole && (v->is_old || v->is_new || v->is_either);) {
        size_t want = whole - at < SFTI_JOURNAL_PIECE ? (size_t)(whole - at) : SFTI_JOURNAL_PIECE;
        int error = jr_section_piece(j, from, s, at, want, v);
        if (error) return error;
        at += want;
    }
    return 0;
}

int sfti_journal_compare(const sfti_journal_file *j, int fd, uint64_t size, sft_span header,
                         sfti_journal_verdict *out) {
    const uint64_t *w = j->word;
    uint64_t heads = sfti_journal_heads_at(j), data = sfti_journal_data_at(j);
    uint64_t grown = w[SFTI_JW_GROWN];
    jr_bytes head = { fd, header }, rest = { fd, { NULL, 0 } };
    *out = (sfti_journal_verdict){ false, true, true, true };
    out->came_in = grown > 0 && size >= grown && size - grown == w[SFTI_JW_SIZE];
    if (!out->came_in && size != w[SFTI_JW_SIZE])
        *out = (sfti_journal_verdict){ false, false, false, false };
    jr_section s = { 0, heads, w[SFTI_JW_BEFORE], heads + w[SFTI_JW_BEFORE], w[SFTI_JW_AFTER],
                     out->came_in ? grown : 0 };
    int error = jr_section_compare(j, &head, &s, out);
    for (uint64_t i = 0; i < w[SFTI_JW_RANGES] && !error; i++) {
        uint64_t at, len;
        error = sfti_journal_range(j, i, &at, &len);
        if (error) break;
        s = (jr_section){ at, data, len, data + len, len, 0 };
        error = jr_section_compare(j, &rest, &s, out);
        data += 2 * len;
    }
    return error;
}
