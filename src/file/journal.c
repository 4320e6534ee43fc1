#include "file/journal.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>

/* The journal's bytes: twelve words, the heads, the checksum as a word. */
static const char journal_magic[8] = { 's', 'f', 't', '-', 'e', 'd', 'i', 't' };
enum {
    JW_MAGIC, JW_VERSION, JW_METHOD, JW_DEVICE, JW_INODE, JW_SIZE, JW_GROWN, JW_BEFORE, JW_AFTER,
    JW_COUNT
};
#define JOURNAL_FIXED ((size_t)JW_COUNT * 8)
#define JOURNAL_MOST (UINT64_C(5) << 30) /* two heads of 2^31 bytes, and more */
#define JOURNAL_NAME_MOST 200            /* of NAME in the journal's name */

/* ── Checksum: CRC-32 as of gzip, half a byte at a time ── */

static uint32_t journal_sum(uint32_t sum, const void *bytes, size_t len) {
    static const uint32_t step[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c };
    const uint8_t *p = bytes;
    sum = ~sum;
    for (size_t i = 0; i < len; i++) {
        sum ^= p[i];
        sum = sum >> 4 ^ step[sum & 15];
        sum = sum >> 4 ^ step[sum & 15];
    }
    return ~sum;
}

/* ── Its name ── */

bool sfti_journal_path(const char *path, char out[SFTI_JOURNAL_PATH]) {
    static const char tail[] = ".sft-journal";
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, name = strlen(path + folder);
    if (name > JOURNAL_NAME_MOST) {
        name = JOURNAL_NAME_MOST;
        while (name > 0 && ((unsigned char)path[folder + name] & 0xc0) == 0x80) name--;
    }
    if (folder + 1 + name + sizeof tail > SFTI_JOURNAL_PATH) return false;
    memcpy(out, path, folder);
    out[folder] = '.';
    memcpy(out + folder + 1, path + folder, name);
    memcpy(out + folder + 1 + name, tail, sizeof tail);
    return true;
}

/* ── Writing ── */

int sfti_write_all(int fd, const void *bytes, size_t len, uint64_t offset) {
    for (size_t done = 0; done < len;) {
        size_t put = 0;
        int error = os_pwrite(fd, (const char *)bytes + done, len - done, offset + done, &put);
        if (!error && put == 0) error = EIO;
        if (error) return error;
        done += put;
    }
    return 0;
}

static void journal_words(const sfti_journal *j, char out[JOURNAL_FIXED]) {
    const uint64_t words[JW_COUNT] = { 0, 1, j->method, j->device, j->inode, j->size,
                                       j->grown, j->before.len, j->after.len };
    for (size_t i = 0; i < JW_COUNT; i++) sfti_put_u64(out + 8 * i, words[i]);
    memcpy(out, journal_magic, sizeof journal_magic);
}

static sft_code journal_pieces(const sfti_journal *j, const sft_sink *sink, sft_error *err) {
    char words[JOURNAL_FIXED], sum[8];
    journal_words(j, words);
    const sft_span pieces[] = { { words, sizeof words }, j->before, j->after,
                                { sum, sizeof sum } };
    uint64_t at = 0;
    uint32_t crc = 0;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < 4 && code == SFT_OK; i++) {
        if (i == 3) sfti_put_u64(sum, crc);
        crc = journal_sum(crc, pieces[i].data, pieces[i].len);
        code = sink->write_at(sink->ctx, at, pieces[i].data, pieces[i].len, err);
        at += pieces[i].len;
    }
    return code;
}

/* It was named, and only its folder could not be synced: nothing has begun yet. */
static sft_code journal_unmade(const char *journal, sft_code code, sft_error *err) {
    if (code == SFT_IO_SYNC) (void)os_unlink(journal);
    if (code != SFT_EXISTS) return code;
    int32_t os_errno = err ? err->os_errno : 0;
    code = sfti_fail(err, SFT_EDIT_BUSY, SFT_NO_OFFSET,
                     "expected no other change of the file, found the journal of one");
    if (err) err->os_errno = os_errno;
    return code;
}

sft_code sfti_journal_write(const char *path, const sfti_journal *journal, uint32_t mode,
                            bool no_sync, const sft_allocator *alloc, sft_error *err) {
    char name[SFTI_JOURNAL_PATH];
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    if (!sfti_journal_path(path, name)) {
        return sfti_fail(err, SFT_IO_OPEN, SFT_NO_OFFSET,
                         "expected a path with room for the name of a journal, found %zu bytes",
                         strlen(path));
    }
    options.no_sync = no_sync;
    options.no_clobber = true;
    options.mode = (mode & 0777) | 0600;
    options.alloc = alloc;
    sft_code code = sft_sink_path(name, &options, &sink, err);
    if (code != SFT_OK) return code;
    code = journal_pieces(journal, &sink, err);
    if (code == SFT_OK) return journal_unmade(name, sink.finish(sink.ctx, err), err);
    sink.abandon(sink.ctx);
    return code;
}

int sfti_journal_remove(const char *path) {
    char name[SFTI_JOURNAL_PATH];
    return sfti_journal_path(path, name) ? os_unlink(name) : 0;
}

int sfti_journal_settle(const char *path) {
    char folder[SFTI_JOURNAL_PATH];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    if (len >= sizeof folder) return 0;
    memcpy(folder, len ? path : ".", len ? len : 1);
    folder[len ? len : 1] = '\0';
    int error = os_sync_folder(folder);
    return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS ? 0 : error;
}

/* ── Reading ── */

/* A journal in memory. */
typedef struct journal_text {
    char *data;
    size_t len;
    bool there;
    sfti_journal journal;
} journal_text;

static void journal_free(journal_text *text, const sft_allocator *alloc) {
    sfti_release(alloc, text->data, text->len);
    memset(text, 0, sizeof *text);
}

static sft_code journal_bad(const char *what, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET, "expected the journal of an edit, "
              "found %s; it is left alone", what);
    if (err) err->hint = "look at the file .NAME.sft-journal beside it; remove that when the "
                         "model is as it should be";
    return SFT_EDIT_INTERRUPTED;
}

static sft_code journal_parse(journal_text *text, sft_error *err) {
    const char *at = text->data;
    sfti_journal *j = &text->journal;
    uint64_t word[JW_COUNT], whole = JOURNAL_FIXED + 8, sum;
    if (text->len < whole || memcmp(at, journal_magic, sizeof journal_magic) != 0)
        return journal_bad("something else", err);
    for (size_t i = 0; i < JW_COUNT; i++) word[i] = sfti_get_u64(at + 8 * i);
    bool fits = sfti_add(whole, word[JW_BEFORE], &whole) && sfti_add(whole, word[JW_AFTER], &whole);
    if (!fits || whole != text->len || word[JW_VERSION] != 1)
        return journal_bad("one of another length or version", err);
    sum = sfti_get_u64(at + text->len - 8);
    if (sum != journal_sum(0, at, text->len - 8)) return journal_bad("a wrong checksum", err);
    if (word[JW_BEFORE] > word[JW_AFTER] || word[JW_AFTER] - word[JW_BEFORE] != word[JW_GROWN])
        return journal_bad("headers that do not fit one another", err);
    *j = (sfti_journal){ (uint32_t)word[JW_METHOD], word[JW_DEVICE], word[JW_INODE],
                         word[JW_SIZE], word[JW_GROWN],
                         { at + JOURNAL_FIXED, (size_t)word[JW_BEFORE] },
                         { at + JOURNAL_FIXED + word[JW_BEFORE], (size_t)word[JW_AFTER] } };
    return SFT_OK;
}

static sft_code journal_read_fd(int fd, journal_text *text, const sft_allocator *alloc,
                                sft_error *err) {
    os_info info;
    sft_source source;
    int error = os_info_fd(fd, &info);
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "look at the journal of an edit");
    if (info.kind != OS_FILE || info.size > JOURNAL_MOST || !sfti_fits_size(info.size))
        return journal_bad("something else", err);
    sft_code code = sft_source_fd(fd, alloc, &source, err);
    if (code != SFT_OK) return code;
    text->len = (size_t)info.size;
    text->data = sfti_take(alloc, text->len ? text->len : 1);
    if (!text->data) {
        code = sfti_fail_memory(err, text->len);
        text->len = 0;
    } else {
        if (text->len == 0) text->len = 1, text->data[0] = 0;
        code = info.size ? sfti_source_read(&source, 0, text->data, text->len, err) : SFT_OK;
    }
    sfti_source_close(&source);
    return code == SFT_OK ? journal_parse(text, err) : code;
}

/* No journal is no failure: then text->there is false. */
static sft_code journal_read(const char *path, journal_text *text, const sft_allocator *alloc,
                             sft_error *err) {
    char name[SFTI_JOURNAL_PATH];
    int fd;
    memset(text, 0, sizeof *text);
    if (!sfti_journal_path(path, name)) return SFT_OK;
    int error = os_open_read(name, &fd);
    if (error == ENOENT) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open the journal of an edit");
    text->there = true;
    sft_code code = journal_read_fd(fd, text, alloc, err);
    (void)os_close(fd);
    if (code != SFT_OK) journal_free(text, alloc);
    text->there = true;
    return code;
}

/* ── Looking ── */

static bool head_is(sft_span head, sft_span header) {
    return head.len == header.len + 8 && sfti_get_u64(head.data) == header.len &&
           memcmp(head.data + 8, header.data, header.len) == 0;
}

static bool is_whole(const sfti_journal *j, uint64_t size, sft_span header) {
    if (!header.data) return false;
    return (size == j->size && head_is(j->before, header)) ||
           (size == j->size + j->grown && head_is(j->after, header));
}

static sft_code journal_tell(sft_error *err) {
    return sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
                     "expected a header as before or after a change of it, found an edit that "
                     "was interrupted and has left its journal");
}

sft_code sfti_journal_check(const char *path, const os_info *fd_info, sft_span header,
                            const sft_allocator *alloc, sft_error *err) {
    char name[SFTI_JOURNAL_PATH];
    journal_text text;
    os_info info;
    if (!sfti_journal_path(path, name) || os_info_path(name, false, &info)) return SFT_OK;
    sft_code code = journal_read(path, &text, alloc, err);
    if (code == SFT_EDIT_INTERRUPTED && header.data) return SFT_OK; /* nobody's journal */
    if (code != SFT_OK || !text.there) return code;
    const sfti_journal *j = &text.journal;
    bool ours = j->inode == fd_info->inode;
    if (ours && !is_whole(j, fd_info->size, header)) code = journal_tell(err);
    journal_free(&text, alloc);
    return code;
}

/* ── Recovery ── */

/* What the first bytes of a file are, held against a journal. */
typedef struct head_state {
    bool is_old;    /* as before, where they were */
    bool is_new;    /* as after */
    bool is_either; /* each byte one of them, at its place */
} head_state;

static char byte_before(const sfti_journal *j, uint64_t i, uint64_t grown) {
    return i < grown ? '\0' : j->before.data[i - grown];
}

/* grown: what has come in by the file's length. */
static int head_compare(int fd, const sfti_journal *j, uint64_t grown, head_state *out) {
    char piece[4096];
    uint64_t whole = j->before.len + grown;
    *out = (head_state){ true, true, true };
    for (uint64_t at = 0; at < whole;) {
        size_t got = 0, want = whole - at < sizeof piece ? (size_t)(whole - at) : sizeof piece;
        int error = os_pread(fd, piece, want, at, &got);
        if (error) return error;
        if (got == 0) *out = (head_state){ false, false, false };
        if (got == 0) return 0;
        for (size_t i = 0; i < got; i++) {
            bool before = piece[i] == byte_before(j, at + i, grown);
            bool after = piece[i] == j->after.data[at + i];
            bool in_place = at + i >= j->before.len || piece[i] == j->before.data[at + i];
            out->is_old = out->is_old && in_place;
            out->is_new = out->is_new && after;
            out->is_either = out->is_either && (before || after);
        }
        at += got;
    }
    return 0;
}

/* A file being mended. */
typedef struct mending {
    const char *path;
    const sfti_journal *journal;
    int fd;
    os_info info;
    bool no_sync;
} mending;

static sft_code mend_refuse(const char *what, sft_error *err) {
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              "expected the file that the journal of an interrupted edit tells of, found %s; "
              "both are left alone", what);
    if (err) err->hint = "look at the file .NAME.sft-journal beside it; remove that when the "
                         "model is as it should be";
    return SFT_EDIT_INTERRUPTED;
}

static sft_code mend_half(const mending *m, sft_error *err) {
    uint64_t hole = m->journal->size;
    (void)os_find_hole(m->fd, 0, &hole);
    if (hole > m->journal->size) hole = m->journal->size;
    sfti_fail(err, SFT_EDIT_INTERRUPTED, SFT_NO_OFFSET,
              "expected %llu bytes to have come in before the header, found it in its place "
              "and a hole at byte %llu: \"fallocate --collapse-range --offset %llu --length "
              "%llu FILE\" (or, at the end, \"truncate --size %llu FILE\") takes it out",
              (unsigned long long)m->journal->grown, (unsigned long long)hole,
              (unsigned long long)hole, (unsigned long long)m->journal->grown,
              (unsigned long long)m->journal->size);
    if (err) err->hint = "keep a copy of file and journal; then \"safetensors meta recover "
                         "FILE\"";
    return SFT_EDIT_INTERRUPTED;
}

static sft_code mend_write(const mending *m, sft_error *err) {
    const sfti_journal *j = m->journal;
    int error = sfti_write_all(m->fd, j->after.data, j->after.len, 0);
    if (error) return sfti_io_fail(err, SFT_IO_WRITE, error, "finish an interrupted edit");
    return SFT_OK;
}

static sft_code mend_known(const mending *m, sft_edit_found *found, sft_error *err) {
    const sfti_journal *j = m->journal;
    head_state state;
    bool grown = j->grown > 0 && m->info.size == j->size + j->grown;
    if (!grown && m->info.size != j->size) return mend_refuse("one of another length", err);
    int error = head_compare(m->fd, j, grown ? j->grown : 0, &state);
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read the header");
    if (!grown && state.is_old) {
        *found = SFT_EDIT_OLD;
        return SFT_OK;
    }
    bool shorter = !grown && j->grown > 0; /* nothing came in, and yet bytes changed */
    if (!shorter && state.is_either) {
        *found = SFT_EDIT_NEW;
        return state.is_new ? SFT_OK : mend_write(m, err);
    }
    if (grown && state.is_old) return mend_half(m, err);
    return mend_refuse("bytes that are neither the old nor the new ones", err);
}

static sft_code mend_open_file(const mending *m, bool force, sft_edit_found *found,
                               sft_error *err) {
    const sfti_journal *j = m->journal;
    if (m->info.kind != OS_FILE || m->info.inode != j->inode)
        return mend_refuse("another file", err);
    if (m->info.device != j->device && !force) {
        mend_refuse("the same on another device", err);
        if (err) err->hint = "--force mends it all the same, where every byte fits";
        return SFT_EDIT_INTERRUPTED;
    }
    int error = os_lock(m->fd);
    if (error == EAGAIN) {
        sfti_fail(err, SFT_EDIT_BUSY, SFT_NO_OFFSET,
                  "expected no other program to change the file, found one");
        if (err) err->os_errno = error;
        return SFT_EDIT_BUSY;
    }
    sft_code code = mend_known(m, found, err);
    if (code != SFT_OK) return code;
    error = m->no_sync ? 0 : os_sync(m->fd);
    if (error) return sfti_io_fail(err, SFT_IO_SYNC, error, "sync the file");
    return SFT_OK;
}

static sft_code mend_journal(mending *m, bool force, sft_edit_found *found, sft_error *err) {
    char name[SFTI_JOURNAL_PATH];
    int error = os_open_write(m->path, &m->fd);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open the file to mend it");
    error = os_info_fd(m->fd, &m->info);
    sft_code code = error ? sfti_io_fail(err, SFT_IO_OPEN, error, "look at the file")
                          : mend_open_file(m, force, found, err);
    error = 0;
    if (code == SFT_OK && sfti_journal_path(m->path, name)) error = os_unlink(name);
    (void)os_close(m->fd);
    if (error && error != ENOENT)
        return sfti_io_fail(err, SFT_IO_PUBLISH, error, "remove the journal of the edit");
    return code;
}

sft_code sfti_journal_recover(const char *path, bool force, bool no_sync,
                              const sft_allocator *alloc, sft_edit_found *found,
                              sft_error *err) {
    journal_text text;
    sft_edit_found state = SFT_EDIT_CLEAN;
    sft_code code = journal_read(path, &text, alloc, err);
    if (code == SFT_OK && text.there) {
        mending m = { path, &text.journal, -1, { OS_FILE, 0, 0, 0, 0, 0, 0, 0 }, no_sync };
        code = mend_journal(&m, force, &state, err);
    }
    journal_free(&text, alloc);
    if (code == SFT_OK && found) *found = state;
    return code;
}
