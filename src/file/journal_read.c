#include "file/journal.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/mem.h"
#include "file/file.h"

#include <errno.h>
#include <string.h>

#define JR_PIECE ((size_t)32 << 10)
#define JR_TRIES 8

struct sfti_journal_room {
    char piece[4][JR_PIECE]; /* of the file, after, before, before where it was */
    sfti_journal_sum sum;
};

/* ── Bytes ── */

int sfti_read_all(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    *got = 0;
    while (*got < len) {
        size_t piece = 0;
        int error = os_pread(fd, (char *)into + *got, len - *got, offset + *got, &piece);
        if (error) return error;
        if (piece == 0) return 0;
        *got += piece;
    }
    return 0;
}

static uint64_t jr_heads_at(const sfti_journal_file *j) {
    return SFTI_JOURNAL_FIXED + 16 * j->word[SFTI_JW_RANGES];
}

static uint64_t jr_data_at(const sfti_journal_file *j) {
    return jr_heads_at(j) + j->word[SFTI_JW_BEFORE] + j->word[SFTI_JW_AFTER];
}

static int jr_range(const sfti_journal_file *j, uint64_t i, uint64_t *at, uint64_t *len) {
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

/* Whose word is followed: that of who asks, and of the model's owner. Others must not have had a
 * hand in it, but where they have one in the model anyway. Nobody else can have edited the file,
 * but root and those who may write to it. */
static void jr_judge_owner(sfti_journal_file *j, const os_info *there, const os_info *model) {
    j->owner = there->owner;
    j->foreign = NULL;
    bool known = there->owner == os_user() || there->owner == model->owner;
    bool open = (there->mode & 022) != 0 && (model->mode & 02) == 0;
    if (!known) j->foreign = "one of another user";
    else if (open) j->foreign = "one that others may write to";
    else if (there->links > 1) j->foreign = "one with several names (hard links)";
    j->stranger = !known && there->owner != 0 && (model->mode & 022) == 0;
}

static int jr_open(sfti_journal_file *j, const char *name, const os_info *model) {
    os_info before, there;
    int error = os_info_path(name, false, &before);
    jr_be(j, SFTI_JOURNAL_ALIEN, "something else");
    if (error || before.kind != OS_FILE) return error;
    jr_judge_owner(j, &before, model);
    if (j->stranger) return 0; /* who could make us wait by a lease on it */
    error = os_open_no_link(name, false, &j->fd);
    if (error) j->fd = -1;
    if (error) return j->foreign && (error == EACCES || error == EPERM) ? 0 : error;
    error = os_info_fd(j->fd, &there);
    if (error || there.kind != OS_FILE) return error;
    if (there.inode != before.inode || there.device != before.device) return ESTALE;
    j->len = there.size;
    jr_judge_owner(j, &there, model);
    return 0;
}

static int jr_look(sfti_journal_file *j, const char *name, const os_info *model) {
    char bytes[SFTI_JOURNAL_FIXED];
    size_t got;
    int error = ESTALE;
    for (int i = 0; i < JR_TRIES && error == ESTALE; i++) {
        if (j->fd >= 0) (void)os_close(j->fd);
        j->fd = -1;
        error = jr_open(j, name, model);
    }
    if (error || j->fd < 0) return error;
    error = sfti_read_all(j->fd, bytes, sizeof bytes, 0, &got);
    if (!error) jr_words(j, bytes, got);
    return error;
}

/*  1  a link, a pipe or a folder is never opened: looked at first, opened without following a
 *     link, and held against the look; a name that leads elsewhere meanwhile is looked at again
 *  2  whose it is is asked of what is open, as all that is read from here on */
sft_code sfti_journal_open(const char *path, const os_info *model, const sft_allocator *alloc,
                           sfti_journal_file *out, sft_error *err) {
    char name[SFTI_JOURNAL_PATH];
    memset(out, 0, sizeof *out);
    out->fd = -1;
    out->alloc = *alloc;
    if (!sfti_journal_path(path, name)) return SFT_OK;
    int error = jr_look(out, name, model);
    if (error == ENOENT) jr_be(out, SFTI_JOURNAL_NONE, NULL);
    else if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read the journal of an edit");
    if (out->state != SFTI_JOURNAL_SOUND) return SFT_OK;
    out->room = sfti_take(alloc, sizeof *out->room);
    return out->room ? SFT_OK : sfti_fail_memory(err, sizeof *out->room);
}

void sfti_journal_close(sfti_journal_file *j) {
    if (j->fd >= 0) (void)os_close(j->fd);
    sfti_release(&j->alloc, j->room, sizeof *j->room);
    sfti_journal_seal_free(j);
    j->fd = -1;
    j->room = NULL;
}

bool sfti_journal_is_gone(const sfti_journal_file *j) {
    os_info info;
    return j->fd >= 0 && os_info_fd(j->fd, &info) == 0 && info.links == 0;
}

/* ── Verifying ── */

static int jr_sum(const sfti_journal_file *j, bool *right) {
    struct sfti_journal_room *room = j->room;
    char sum[8];
    sfti_journal_sum_begin(&room->sum);
    for (uint64_t at = 0; at < j->len - 8;) {
        size_t want = j->len - 8 - at < sizeof room->piece ? (size_t)(j->len - 8 - at)
                                                           : sizeof room->piece;
        int error = sfti_journal_read(j, room->piece, want, at);
        if (error) return error;
        sfti_journal_sum_add(&room->sum, room->piece, want);
        at += want;
    }
    int error = sfti_journal_read(j, sum, sizeof sum, j->len - 8);
    *right = !error && sfti_get_u64(sum) == (~room->sum.sum & UINT32_MAX);
    return error;
}

/* Ascending, behind the head, and as long together as the words say. */
static int jr_ranges(const sfti_journal_file *j, bool *right) {
    uint64_t end = j->word[SFTI_JW_BEFORE], all = 0, at, len;
    *right = true;
    for (uint64_t i = 0; i < j->word[SFTI_JW_RANGES] && *right; i++) {
        int error = jr_range(j, i, &at, &len);
        if (error) return error;
        *right = at >= end && len > 0 && sfti_add(at, len, &end) &&
                 end <= j->word[SFTI_JW_SIZE] && sfti_add(all, len, &all);
    }
    *right = *right && all == j->word[SFTI_JW_DATA];
    return 0;
}

/* The words were read before all the rest. */
static int jr_words_again(const sfti_journal_file *j, bool *right) {
    char bytes[SFTI_JOURNAL_FIXED];
    int error = sfti_journal_read(j, bytes, sizeof bytes, 0);
    *right = !error && memcmp(bytes, sfti_journal_magic, sizeof sfti_journal_magic) == 0;
    for (size_t i = 1; i < SFTI_JW_COUNT && *right; i++)
        *right = sfti_get_u64(bytes + 8 * i) == j->word[i];
    return error;
}

/* A head is what a reader takes for one, at the least strict level, of a file so long. */
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
    *right = *right && code == SFT_OK;
    return SFT_OK;
}

static sft_code jr_heads(const sfti_journal_file *j, bool *right, sft_error *err) {
    const uint64_t *w = j->word;
    uint64_t at = jr_heads_at(j), size;
    *right = sfti_add(w[SFTI_JW_SIZE], w[SFTI_JW_GROWN], &size);
    if (!*right) return SFT_OK;
    sft_code code = jr_head(j, at, w[SFTI_JW_BEFORE], w[SFTI_JW_SIZE], right, err);
    if (code != SFT_OK || !*right) return code;
    return jr_head(j, at + w[SFTI_JW_BEFORE], w[SFTI_JW_AFTER], size, right, err);
}

static sft_code jr_verify(sfti_journal_file *j, sft_error *err) {
    bool right = false;
    const char *wrong = "one with a wrong checksum";
    int error = jr_sum(j, &right);
    sfti_journal_seal_close(j);
    if (!error && right) {
        wrong = "one that changes while it is read";
        error = jr_words_again(j, &right);
    }
    if (!error && right) {
        wrong = "one of bytes that the file has not";
        error = jr_ranges(j, &right);
    }
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read the journal of an edit");
    sft_code code = SFT_OK;
    if (right) {
        wrong = "one whose headers are none";
        code = jr_heads(j, &right, err);
    }
    if (code == SFT_OK && !right) jr_be(j, SFTI_JOURNAL_ODD, wrong);
    return code;
}

/*  1  one pass over the journal gives its checksum and, for who is to write, the tag of each
 *     block under a secret key
 *  2  words, ranges and heads are then read and judged, and what follows compared and played:
 *     each of these reads is of a block that is in memory since, or has its tag again
 *  3  so whoever can write to the journal makes it unreadable, but no byte that was not judged
 *     gets into the file */
sft_code sfti_journal_verify(sfti_journal_file *j, bool to_play, sft_error *err) {
    if (j->state != SFTI_JOURNAL_SOUND) return SFT_OK;
    sft_code code = to_play ? sfti_journal_seal_begin(j, err) : SFT_OK;
    return code == SFT_OK ? jr_verify(j, err) : code;
}

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
    if (*got == len) return 0;
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

/* The old bytes, `moved` further on. */
static int jr_part_moved(const sfti_journal_file *j, const jr_section *s, uint64_t at, size_t len,
                         char *into) {
    size_t zeros = at >= s->moved ? 0 : s->moved - at < len ? (size_t)(s->moved - at) : len;
    memset(into, 0, zeros);
    if (zeros == len) return 0;
    return jr_part(j, s->old_at, s->old_len, at + zeros - s->moved, len - zeros, into + zeros);
}

static void jr_judge(const struct sfti_journal_room *room, size_t len, size_t in_place,
                     sfti_journal_verdict *v) {
    const char *file = room->piece[0], *after = room->piece[1], *before = room->piece[2];
    v->is_old = v->is_old && memcmp(file, room->piece[3], in_place) == 0;
    v->is_new = v->is_new && memcmp(file, after, len) == 0;
    if (!v->is_either || memcmp(file, after, len) == 0) return;
    for (size_t i = 0; i < len && v->is_either; i++)
        v->is_either = file[i] == before[i] || file[i] == after[i];
}

static int jr_section_piece(const sfti_journal_file *j, const jr_bytes *from,
                            const jr_section *s, uint64_t at, size_t want,
                            sfti_journal_verdict *v) {
    struct sfti_journal_room *room = j->room;
    size_t got = 0;
    size_t in_place = at >= s->old_len ? 0
                      : s->old_len - at < want ? (size_t)(s->old_len - at) : want;
    int error = jr_bytes_read(from, room->piece[0], want, s->file_at + at, &got);
    if (error) return error;
    if (got < want) v->is_old = v->is_new = v->is_either = false;
    if (got < want) return 0;
    error = jr_part(j, s->new_at, s->new_len, at, want, room->piece[1]);
    if (!error) error = jr_part_moved(j, s, at, want, room->piece[2]);
    if (!error) error = jr_part(j, s->old_at, s->old_len, at, want, room->piece[3]);
    if (!error) jr_judge(room, want, in_place, v);
    return error;
}

static int jr_section_compare(const sfti_journal_file *j, const jr_bytes *from,
                              const jr_section *s, sfti_journal_verdict *v) {
    uint64_t whole = s->old_len + s->moved;
    for (uint64_t at = 0; at < whole && (v->is_old || v->is_new || v->is_either);) {
        size_t want = whole - at < JR_PIECE ? (size_t)(whole - at) : JR_PIECE;
        int error = jr_section_piece(j, from, s, at, want, v);
        if (error) return error;
        at += want;
    }
    return 0;
}

int sfti_journal_compare(const sfti_journal_file *j, int fd, uint64_t size, sft_span header,
                         sfti_journal_verdict *out) {
    const uint64_t *w = j->word;
    uint64_t heads = jr_heads_at(j), data = jr_data_at(j), grown = w[SFTI_JW_GROWN];
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
        error = jr_range(j, i, &at, &len);
        if (error) break;
        s = (jr_section){ at, data, len, data + len, len, 0 };
        error = jr_section_compare(j, &rest, &s, out);
        data += 2 * len;
    }
    return error;
}

/* ── Playing ── */

static int jr_copy(const sfti_journal_file *j, uint64_t from, uint64_t len, int fd, uint64_t to) {
    struct sfti_journal_room *room = j->room;
    for (uint64_t at = 0; at < len;) {
        size_t want = len - at < sizeof room->piece ? (size_t)(len - at) : sizeof room->piece;
        int error = sfti_journal_read(j, room->piece, want, from + at);
        if (!error) error = sfti_write_all(fd, room->piece, want, to + at);
        if (error) return error;
        at += want;
    }
    return 0;
}

int sfti_journal_play_head(const sfti_journal_file *j, int fd) {
    return jr_copy(j, jr_heads_at(j) + j->word[SFTI_JW_BEFORE], j->word[SFTI_JW_AFTER], fd, 0);
}

int sfti_journal_play_data(const sfti_journal_file *j, int fd, bool old) {
    uint64_t from = jr_data_at(j), at, len;
    for (uint64_t i = 0; i < j->word[SFTI_JW_RANGES]; i++) {
        int error = jr_range(j, i, &at, &len);
        if (!error) error = jr_copy(j, from + (old ? 0 : len), len, fd, at);
        if (error) return error;
        from += 2 * len;
    }
    return 0;
}
