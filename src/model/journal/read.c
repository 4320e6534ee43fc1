/* Opening a journal, and verifying all of it. Tests: test_edit_journal.c. */
#include "journal/journal.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/mem.h"
#include "format/format.h"

#include <errno.h>
#include <string.h>

#define JR_TRIES 8
#define JR_OTHER_FILE (-1) /* the name led to another one meanwhile */

/* ── Bytes ── */

uint64_t sfti_journal_heads_at(const sfti_journal_file *j) {
    return SFTI_JOURNAL_FIXED + 16 * j->word[SFTI_JW_RANGES];
}

uint64_t sfti_journal_data_at(const sfti_journal_file *j) {
    return sfti_journal_heads_at(j) + j->word[SFTI_JW_BEFORE] + j->word[SFTI_JW_AFTER];
}

int sfti_journal_range(const sfti_journal_file *j, uint64_t i, uint64_t *at, uint64_t *len) {
    char entry[16];
    int error = sfti_journal_read(j, entry, sizeof entry, SFTI_JOURNAL_FIXED + 16 * i);
    *at = error ? 0 : sfti_get_u64(entry);
    *len = error ? 0 : sfti_get_u64(entry + 8);
    return error;
}

/* ── Opening ── */

static bool jr_lengths_fit(const sfti_journal_file *j) {
    const uint64_t *w = j->word;
    uint64_t whole = SFTI_JOURNAL_FIXED + 8;
    if (w[SFTI_JW_RANGES] > SFTI_JOURNAL_RANGES || w[SFTI_JW_DATA] > w[SFTI_JW_SIZE]) return false;
    if (w[SFTI_JW_BEFORE] > w[SFTI_JW_AFTER] || w[SFTI_JW_BEFORE] > w[SFTI_JW_SIZE]) return false;
    if (w[SFTI_JW_BEFORE] < SFTI_PREFIX) return false;
    if (w[SFTI_JW_AFTER] > SFTI_MOST_HEADER + SFTI_PREFIX) return false;
    if (w[SFTI_JW_AFTER] - w[SFTI_JW_BEFORE] != w[SFTI_JW_GROWN]) return false;
    if (w[SFTI_JW_GROWN] > 0 && w[SFTI_JW_RANGES] > 0) return false;
    return sfti_add(whole, 16 * w[SFTI_JW_RANGES], &whole) &&
           sfti_add(whole, w[SFTI_JW_BEFORE], &whole) &&
           sfti_add(whole, w[SFTI_JW_AFTER], &whole) &&
           sfti_add(whole, w[SFTI_JW_DATA], &whole) &&
           sfti_add(whole, w[SFTI_JW_DATA], &whole) && whole == j->len;
}

static void jr_be(sfti_journal_file *j, sfti_journal_state state, const char *wrong) {
    j->state = state;
    j->wrong = wrong;
}

static void jr_words(sfti_journal_file *j, const char *bytes, size_t len) {
    size_t known = 8 * ((size_t)SFTI_JW_SIZE + 1);
    jr_be(j, SFTI_JOURNAL_ALIEN, "something else");
    if (len < known || memcmp(bytes, sfti_journal_magic, sizeof sfti_journal_magic) != 0) return;
    for (size_t i = 0; 8 * (i + 1) <= len; i++) j->word[i] = sfti_get_u64(bytes + 8 * i);
    jr_be(j, SFTI_JOURNAL_ODD, "one of another version");
    if (j->word[SFTI_JW_VERSION] != SFTI_JOURNAL_VERSION) return;
    jr_be(j, SFTI_JOURNAL_ODD, "one of another length");
    if (len == SFTI_JOURNAL_FIXED && jr_lengths_fit(j)) jr_be(j, SFTI_JOURNAL_SOUND, NULL);
}

/* A journal is followed only if it belongs to the caller or to the model's owner, and nobody else
 * could have written to it who could not write to the model as well. Any other is foreign. One
 * whose owner cannot have edited the model (not root, no write access) is a stranger's. */
static void jr_judge_owner(sfti_journal_file *j, const os_info *there, const os_info *model) {
    j->owner = there->owner;
    j->foreign = NULL;
    bool known = there->owner == sfti_os_user() || there->owner == model->owner;
    bool open = (there->mode & 022) != 0 && (model->mode & 02) == 0;
    if (!known) j->foreign = "one of another user";
    else if (open) j->foreign = "one that others may write to";
    else if (there->links > 1) j->foreign = "one with several names (hard links)";
    j->stranger = !known && there->owner != 0 && (model->mode & 022) == 0;
}

static int jr_open(sfti_journal_file *j, const char *name, const os_info *model) {
    os_info before, there;
    int error = sfti_os_info_path(name, false, &before);
    jr_be(j, SFTI_JOURNAL_ALIEN, "something else");
    if (error || before.kind != OS_FILE) return error;
    jr_judge_owner(j, &before, model);
    if (j->stranger) return 0; /* not opened: its owner could block us with a lease */
    error = sfti_os_open_no_link(name, false, &j->fd);
    if (error) j->fd = -1;
    if (error) return j->foreign && (error == EACCES || error == EPERM) ? 0 : error;
    error = sfti_os_info_fd(j->fd, &there);
    if (error || there.kind != OS_FILE) return error;
    if (there.inode != before.inode || there.device != before.device) return JR_OTHER_FILE;
    j->len = there.size;
    jr_judge_owner(j, &there, model);
    return 0;
}

/*  1  The name is checked first, so that a link, a pipe or a folder is never opened; it is opened
 *     without following a link, and the open file must be the one that was checked. If the name
 *     leads to another file by then, the check is repeated.
 *  2  The owner is then taken from the open file, as is everything read from here on. */
sft_code sfti_journal_open(const char *path, const os_info *model, const sft_allocator *alloc,
                           sfti_journal_file *out, sft_error *err) {
    char name[SFTI_JOURNAL_PATH];
    memset(out, 0, sizeof *out);
    out->fd = -1;
    out->alloc = *alloc;
    if (!sfti_journal_path(path, name)) return SFT_OK;
    int error = JR_OTHER_FILE;
    for (int i = 0; i < JR_TRIES && error == JR_OTHER_FILE; i++) {
        if (out->fd >= 0) (void)sfti_os_close(out->fd);
        out->fd = -1;
        error = jr_open(out, name, model);
    }
    if (error == JR_OTHER_FILE) error = EBUSY;
    if (!error && out->fd >= 0) {
        char bytes[SFTI_JOURNAL_FIXED];
        size_t got;
        error = sfti_read_all(out->fd, bytes, sizeof bytes, 0, &got);
        if (!error) jr_words(out, bytes, got);
    }
    if (error == ENOENT) jr_be(out, SFTI_JOURNAL_NONE, NULL);
    else if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read the journal of an edit");
    if (out->state != SFTI_JOURNAL_SOUND) return SFT_OK;
    out->buffers = sfti_take(alloc, sizeof *out->buffers);
    return out->buffers ? SFT_OK : sfti_fail_memory(err, sizeof *out->buffers);
}

void sfti_journal_close(sfti_journal_file *j) {
    if (j->fd >= 0) (void)sfti_os_close(j->fd);
    sfti_release(&j->alloc, j->buffers, sizeof *j->buffers);
    sfti_journal_seal_free(j);
    j->fd = -1;
    j->buffers = NULL;
}

bool sfti_journal_is_gone(const sfti_journal_file *j) {
    os_info info;
    return j->fd >= 0 && sfti_os_info_fd(j->fd, &info) == 0 && info.links == 0;
}

/* ── Verifying ── */

static int jr_sum(const sfti_journal_file *j, bool *right) {
    struct sfti_journal_buffers *buffers = j->buffers;
    char sum[8];
    uint32_t crc = 0;
    sfti_crc32_begin(&buffers->table, false);
    for (uint64_t at = 0; at < j->len - 8;) {
        const size_t most = sizeof buffers->piece;
        size_t want = j->len - 8 - at < most ? (size_t)(j->len - 8 - at) : most;
        int error = sfti_journal_read(j, buffers->piece, want, at);
        if (error) return error;
        crc = sfti_crc32_add(&buffers->table, crc, buffers->piece, want);
        at += want;
    }
    int error = sfti_journal_read(j, sum, sizeof sum, j->len - 8);
    *right = !error && sfti_get_u64(sum) == crc;
    return error;
}

/* The ranges must ascend, begin after the head and have the total length that the words state. */
static int jr_ranges(const sfti_journal_file *j, bool *right) {
    uint64_t end = j->word[SFTI_JW_BEFORE], all = 0, at, len;
    *right = true;
    for (uint64_t i = 0; i < j->word[SFTI_JW_RANGES] && *right; i++) {
        int error = sfti_journal_range(j, i, &at, &len);
        if (error) return error;
        *right = at >= end && len > 0 && sfti_add(at, len, &end) &&
                 end <= j->word[SFTI_JW_SIZE] && sfti_add(all, len, &all);
    }
    *right = *right && all == j->word[SFTI_JW_DATA];
    return 0;
}

/* Whether a reader at the least strict level accepts the head for a file of this size. */
static sft_code jr_head(const sfti_journal_file *j, uint64_t at, uint64_t len, uint64_t size,
                        bool *right, sft_error *err) {
    static const sfti_limits least = { .level = SFT_LEVEL_COMPAT, .legacy = true };
    sfti_arena arena = { .alloc = j->alloc };
    sfti_model model;
    uint64_t seed[2];
    sft_error own = SFT_ERROR_INIT;
    char *head = sfti_take(&j->alloc, (size_t)len);
    if (!head) return sfti_fail_memory(err, len);
    int error = sfti_journal_read(j, head, (size_t)len, at);
    *right = !error && sfti_get_u64(head) == len - SFTI_PREFIX;
    sft_span text = { head + SFTI_PREFIX, (size_t)len - SFTI_PREFIX };
    sfti_seed_draw(&arena, seed);
    sft_code code = *right ? sfti_model_read(text, size, &least, seed, NULL, &arena, &model, &own)
                           : SFT_OK;
    sfti_arena_free(&arena);
    sfti_release(&j->alloc, head, (size_t)len);
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read the journal of an edit");
    if (code == SFT_OUT_OF_MEMORY && err) *err = own;
    if (code == SFT_OUT_OF_MEMORY) return code;
    *right = *right && !code;
    return SFT_OK;
}

static sft_code jr_verify(sfti_journal_file *j, sft_error *err) {
    const uint64_t *w = j->word;
    bool right = false;
    const char *wrong = "one with a wrong checksum";
    int error = jr_sum(j, &right);
    sfti_journal_seal_close(j);
    if (!error && right) {
        /* The words were read before the checksum was computed. */
        char bytes[SFTI_JOURNAL_FIXED];
        wrong = "one that changes while it is read";
        error = sfti_journal_read(j, bytes, sizeof bytes, 0);
        right = !error && memcmp(bytes, sfti_journal_magic, sizeof sfti_journal_magic) == 0;
        for (size_t i = 1; i < SFTI_JW_COUNT && right; i++)
            right = sfti_get_u64(bytes + 8 * i) == w[i];
    }
    if (!error && right) {
        wrong = "one of bytes that the file has not";
        error = jr_ranges(j, &right);
    }
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read the journal of an edit");
    sft_code code = SFT_OK;
    if (right) {
        uint64_t at = sfti_journal_heads_at(j), size;
        wrong = "one whose headers are none";
        right = sfti_add(w[SFTI_JW_SIZE], w[SFTI_JW_GROWN], &size);
        if (right) code = jr_head(j, at, w[SFTI_JW_BEFORE], w[SFTI_JW_SIZE], &right, err);
        at += w[SFTI_JW_BEFORE];
        if (!code && right) code = jr_head(j, at, w[SFTI_JW_AFTER], size, &right, err);
    }
    if (!code && !right) jr_be(j, SFTI_JOURNAL_ODD, wrong);
    return code;
}

/*  1  One pass over the journal computes its checksum and, if it is to be applied, a tag of each
 *     block under a secret key.
 *  2  Words, ranges and heads are then read and checked, and the data compared or applied: each
 *     read is of a block still in memory, or one whose tag must match again.
 *  3  So whoever can write to the journal meanwhile can make it unreadable, but no byte that was
 *     not checked gets into the file. */
sft_code sfti_journal_verify(sfti_journal_file *j, bool to_apply, sft_error *err) {
    if (j->state != SFTI_JOURNAL_SOUND) return SFT_OK;
    sft_code code = to_apply ? sfti_journal_seal_begin(j, err) : SFT_OK;
    return code ? code : jr_verify(j, err);
}

sft_code sfti_journal_refuse(const sfti_journal_file *j, sft_error *err) {
    if (j->foreign) { /* only its owner knows whether it is a journal */
        sfti_fail(err, SFT_EDIT_INTERRUPTED, "expected a journal of an edit by this user or the "
                  "file's owner, found %s (user %u); it is left alone", j->foreign,
                  (unsigned)j->owner);
        sfti_hint(err, SFT_HINT_JOURNAL_OWNER);
    } else {
        sfti_fail(err, SFT_EDIT_INTERRUPTED,
                  "expected the journal of an edit, found %s; it is left alone", j->wrong);
        sfti_hint(err, SFT_HINT_JOURNAL_REMOVE);
    }
    return SFT_EDIT_INTERRUPTED;
}
