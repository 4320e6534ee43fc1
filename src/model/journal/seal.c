/* Reading a journal so that no byte changes after it was verified. Tests: test_edit_journal.c. */
#include "journal/journal.h"

#include "base/checked.h"
#include "base/mem.h"
#include "base/siphash.h"

#include <errno.h>
#include <string.h>

#define SEAL_BLOCK ((size_t)32 << 10)
#define SEAL_HELD 8

/* A block's tag is a hash under a key that is drawn for this journal and never leaves memory.
 * The blocks held are those last read. */
struct sfti_journal_seal {
    size_t bytes; /* of all this */
    uint64_t key[2];
    bool closed; /* all tags are there */
    uint64_t held[SEAL_HELD]; /* block + 1, or 0 */
    char block[SEAL_HELD][SEAL_BLOCK];
    uint64_t tag[];
};

static size_t seal_block_length(const sfti_journal_file *j, uint64_t n) {
    uint64_t left = j->len - n * SEAL_BLOCK;
    return left < SEAL_BLOCK ? (size_t)left : SEAL_BLOCK;
}

/* Block n, from memory or read and held against its tag (which it gives before the closing). */
static int seal_block(const sfti_journal_file *j, uint64_t n, const char **out) {
    struct sfti_journal_seal *seal = j->seal;
    size_t got, slot = (size_t)(n % SEAL_HELD), len = seal_block_length(j, n);
    *out = seal->block[slot];
    if (seal->held[slot] == n + 1) return 0;
    seal->held[slot] = 0;
    int error = sfti_read_all(j->fd, seal->block[slot], len, n * SEAL_BLOCK, &got);
    if (!error && got < len) error = EIO;
    if (error) return error;
    uint64_t tag = sfti_siphash(seal->key, seal->block[slot], len);
    if (!seal->closed) seal->tag[n] = tag;
    else if (seal->tag[n] != tag) return EIO;
    seal->held[slot] = n + 1;
    return 0;
}

int sfti_journal_read(const sfti_journal_file *j, void *into, size_t len, uint64_t at) {
    size_t done = 0;
    if (!j->seal) {
        int error = sfti_read_all(j->fd, into, len, at, &done);
        return error ? error : done < len ? EIO : 0;
    }
    if (at > j->len || len > j->len - at) return EIO;
    while (done < len) {
        const char *block;
        uint64_t n = (at + done) / SEAL_BLOCK;
        size_t from = (size_t)((at + done) % SEAL_BLOCK), piece = seal_block_length(j, n) - from;
        int error = seal_block(j, n, &block);
        if (error) return error;
        if (piece > len - done) piece = len - done;
        memcpy((char *)into + done, block + from, piece);
        done += piece;
    }
    return 0;
}

sft_code sfti_journal_seal_begin(sfti_journal_file *j, sft_error *err) {
    uint64_t count = j->len / SEAL_BLOCK + 1, bytes;
    if (!sfti_mul(count, sizeof(uint64_t), &bytes) ||
        !sfti_add(bytes, sizeof *j->seal, &bytes) || !sfti_fits_size(bytes))
        return sfti_fail_memory(err, j->len);
    struct sfti_journal_seal *seal = sfti_take(&j->alloc, (size_t)bytes);
    if (!seal) return sfti_fail_memory(err, bytes);
    memset(seal, 0, (size_t)bytes);
    seal->bytes = (size_t)bytes;
    j->seal = seal;
    int error = sfti_os_random(seal->key, sizeof seal->key);
    return error ? sfti_io_fail(err, SFT_IO_READ, error, "draw a random key") : SFT_OK;
}

void sfti_journal_seal_close(sfti_journal_file *j) {
    if (j->seal) j->seal->closed = true;
}

void sfti_journal_seal_free(sfti_journal_file *j) {
    if (j->seal) sfti_release(&j->alloc, j->seal, j->seal->bytes);
    j->seal = NULL;
}
