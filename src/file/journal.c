#include "file/journal.h"

#include "base/checked.h"
#include "base/endian.h"

#include <errno.h>
#include <string.h>

const char sfti_journal_magic[8] = { 's', 'f', 't', '-', 'e', 'd', 'i', 't' };
#define JOURNAL_NAME_MOST 200 /* of NAME in the journal's name */
#define JOURNAL_DIGEST ((size_t)17) /* "-" and 16 digits */

/* ── Checksum ── */

void sfti_journal_sum_begin(sfti_journal_sum *s) {
    s->sum = ~UINT32_C(0);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? UINT32_C(0xedb88320) : 0);
        s->table[0][i] = c;
    }
    for (int k = 1; k < 8; k++) {
        for (int i = 0; i < 256; i++) {
            uint32_t c = s->table[k - 1][i];
            s->table[k][i] = c >> 8 ^ s->table[0][c & 255];
        }
    }
}

void sfti_journal_sum_add(sfti_journal_sum *s, const void *bytes, size_t len) {
    const uint8_t *p = bytes;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t x = sfti_get_u64(p) ^ s->sum;
        uint32_t sum = 0;
        for (int i = 0; i < 8; i++) sum ^= s->table[7 - i][x >> (8 * i) & 255];
        s->sum = sum;
    }
    for (; len > 0; len--) s->sum = s->sum >> 8 ^ s->table[0][(s->sum ^ *p++) & 255];
}

/* ── Its name ── */

/* Behind the first bytes of a long name: no two such names share a journal, and none is that of
 * a short name, which is shorter. */
static size_t journal_digest(const char *name, size_t *len, char out[JOURNAL_DIGEST]) {
    static const uint64_t key[2] = { 0, 0 };
    uint64_t hash = sfti_journal_hash(key, name, *len);
    size_t cut = JOURNAL_NAME_MOST;
    while (cut > JOURNAL_NAME_MOST - 3 && ((unsigned char)name[cut] & 0xc0) == 0x80) cut--;
    *len = cut;
    out[0] = '-';
    for (size_t i = 0; i < 16; i++) out[1 + i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    return JOURNAL_DIGEST;
}

bool sfti_journal_path(const char *path, char out[SFTI_JOURNAL_PATH]) {
    static const char tail[] = ".sft-journal";
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, name = strlen(path + folder), more = 0;
    char digest[JOURNAL_DIGEST];
    if (name > JOURNAL_NAME_MOST) more = journal_digest(path + folder, &name, digest);
    if (folder + 1 + name + more + sizeof tail > SFTI_JOURNAL_PATH) return false;
    memcpy(out, path, folder);
    out[folder] = '.';
    memcpy(out + folder + 1, path + folder, name);
    memcpy(out + folder + 1 + name, digest, more);
    memcpy(out + folder + 1 + name + more, tail, sizeof tail);
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

/* A journal on its way to the disk: bytes go in order, and into the checksum. */
typedef struct journal_out {
    sft_sink inner;
    uint64_t at;
    sfti_journal_sum sum;
} journal_out;

static sft_code out_put(journal_out *out, const void *bytes, size_t len, sft_error *err) {
    sft_code code = sft_sink_write(&out->inner, out->at, bytes, len, err);
    sfti_journal_sum_add(&out->sum, bytes, len);
    out->at += len;
    return code;
}

static sft_code out_write_at(void *ctx, uint64_t offset, const void *bytes, size_t len,
                             sft_error *err) {
    (void)offset;
    return out_put(ctx, bytes, len, err);
}

static sft_code out_words(const sfti_journal *j, journal_out *out, sft_error *err) {
    const uint64_t words[SFTI_JW_COUNT] = {
        0, SFTI_JOURNAL_VERSION, j->method, j->device, j->inode, j->size, j->grown,
        j->before.len, j->after.len, j->patch_count, j->patch_bytes };
    char bytes[SFTI_JOURNAL_FIXED];
    for (size_t i = 0; i < SFTI_JW_COUNT; i++) sfti_put_u64(bytes + 8 * i, words[i]);
    memcpy(bytes, sfti_journal_magic, sizeof sfti_journal_magic);
    return out_put(out, bytes, sizeof bytes, err);
}

static sft_code out_ranges(const sfti_journal *j, journal_out *out, sft_error *err) {
    char bytes[64 * 16];
    size_t len = 0;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < j->patch_count && code == SFT_OK; i++) {
        sfti_put_u64(bytes + len, j->patches[i].at);
        sfti_put_u64(bytes + len + 8, j->patches[i].len);
        len += 16;
        if (len < sizeof bytes && i + 1 < j->patch_count) continue;
        code = out_put(out, bytes, len, err);
        len = 0;
    }
    return code;
}

static const sft_sink_vtable out_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, out_write_at, NULL, NULL
};

/* Old and new bytes of a range. */
static sft_code out_range(const sfti_patch *patch, const sft_source *file, journal_out *out,
                          const sft_allocator *alloc, sfti_stages *stages, sft_error *err) {
    sft_sink sink = { out, &out_sink_vtable, false };
    sft_code code = sfti_copy_into(file, patch->at, patch->at + patch->len, &sink, 0, alloc,
                                   &stages->job, err);
    stages->done += patch->len;
    if (code == SFT_OK) code = sfti_patch_write(patch, &sink, 0, alloc, &stages->job, err);
    stages->done += patch->len;
    return code;
}

static sft_code out_data(const sfti_journal *j, journal_out *out, const sft_allocator *alloc,
                         const sft_job *job, sft_error *err) {
    sft_source file;
    sfti_stages stages;
    if (j->patch_count == 0) return SFT_OK;
    sft_code code = sft_source_fd(j->fd, alloc, &file, err);
    if (code != SFT_OK) return code;
    sfti_stages_begin(&stages, job, 2 * j->patch_bytes);
    for (size_t i = 0; i < j->patch_count && code == SFT_OK; i++)
        code = out_range(&j->patches[i], &file, out, alloc, &stages, err);
    sft_source_close(&file);
    return code;
}

static sft_code journal_pieces(const sfti_journal *j, const sft_sink *sink,
                               const sft_allocator *alloc, const sft_job *job, sft_error *err) {
    char sum[8];
    journal_out out = { .inner = *sink };
    sfti_journal_sum_begin(&out.sum);
    sft_code code = out_words(j, &out, err);
    if (code == SFT_OK) code = out_ranges(j, &out, err);
    if (code == SFT_OK) code = out_put(&out, j->before.data, j->before.len, err);
    if (code == SFT_OK) code = out_put(&out, j->after.data, j->after.len, err);
    if (code == SFT_OK) code = out_data(j, &out, alloc, job, err);
    sfti_put_u64(sum, ~out.sum.sum & UINT32_MAX);
    return code == SFT_OK ? out_put(&out, sum, sizeof sum, err) : code;
}

static sft_code journal_unmade(sft_code code, sft_error *err) {
    if (code != SFT_EXISTS) return code;
    int32_t os_errno = err ? err->os_errno : 0;
    code = sfti_fail(err, SFT_EDIT_BUSY, SFT_NO_OFFSET,
                     "expected no other change of the file, found the journal of one");
    if (err) err->os_errno = os_errno;
    return code;
}

/* Offsets in it mean nothing to who asked for a change of the file. */
static sft_code journal_unwritten(sft_code code, sft_error *err) {
    if (code == SFT_IO_WRITE && err)
        return sfti_io_fail(err, code, err->os_errno, "write the journal of the edit");
    return code;
}

sft_code sfti_journal_write(const char *path, const sfti_journal *journal, uint32_t mode,
                            bool no_sync, const sft_allocator *alloc, const sft_job *job,
                            sft_error *err) {
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
    options.mode = (mode & 02 ? mode & 0777 : mode & 0755) | 0600;
    options.alloc = alloc;
    sft_code code = sft_sink_path(name, &options, &sink, err);
    if (code != SFT_OK) return code;
    code = journal_pieces(journal, &sink, alloc, job, err);
    if (code == SFT_OK) return journal_unmade(sft_sink_finish(&sink, err), err);
    sft_sink_abandon(&sink);
    return journal_unwritten(code, err);
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
