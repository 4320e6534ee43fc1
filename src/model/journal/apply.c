/* Writing to a file what its journal holds. Tests: test_edit_journal.c. */
#include "journal/journal.h"

static int jr_copy(const sfti_journal_file *j, uint64_t from, uint64_t len, int fd, uint64_t to) {
    struct sfti_journal_buffers *buffers = j->buffers;
    for (uint64_t at = 0; at < len;) {
        const size_t most = sizeof buffers->piece;
        size_t want = len - at < most ? (size_t)(len - at) : most;
        int error = sfti_journal_read(j, buffers->piece, want, from + at);
        if (!error) error = sfti_write_all(fd, buffers->piece, want, to + at);
        if (error) return error;
        at += want;
    }
    return 0;
}

int sfti_journal_apply_head(const sfti_journal_file *j, int fd) {
    uint64_t after = sfti_journal_heads_at(j) + j->word[SFTI_JW_BEFORE];
    return jr_copy(j, after, j->word[SFTI_JW_AFTER], fd, 0);
}

int sfti_journal_apply_data(const sfti_journal_file *j, int fd, bool old) {
    uint64_t from = sfti_journal_data_at(j), at, len;
    for (uint64_t i = 0; i < j->word[SFTI_JW_RANGES]; i++) {
        int error = sfti_journal_range(j, i, &at, &len);
        if (!error) error = jr_copy(j, from + (old ? 0 : len), len, fd, at);
        if (error) return error;
        from += 2 * len;
    }
    return 0;
}
