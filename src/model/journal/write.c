/* Writing a journal. Tests: test_edit_journal.c. */
#include "journal/journal.h"

#include "base/endian.h"
#include "base/job.h"

#include <string.h>

const char sfti_journal_magic[8] = { 's', 'f', 't', '-', 'e', 'd', 'i', 't' };

/* A journal being written: bytes go out in order, and into the checksum. */
typedef struct journal_out {
    sft_sink inner;
    uint64_t at;
    uint32_t sum;
    sfti_crc32_table table;
} journal_out;

static sft_code out_put(journal_out *out, const void *bytes, size_t len, sft_error *err) {
    sft_code code = sft_sink_write(&out->inner, out->at, bytes, len, err);
    out->sum = sfti_crc32_add(&out->table, out->sum, bytes, len);
    out->at += len;
    return code;
}

static sft_code out_write_at(void *ctx, uint64_t offset, const void *bytes, size_t len,
                             sft_error *err) {
    (void)offset;
    return out_put(ctx, bytes, len, err);
}

static sft_code out_ranges(const sfti_journal *j, journal_out *out, sft_error *err) {
    char bytes[64 * 16];
    size_t len = 0;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < j->patch_count && !code; i++) {
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
    sizeof(sft_sink_vtable), NULL, out_write_at, NULL, NULL, NULL, NULL
};

/* Old and new bytes of each range. */
static sft_code out_data(const sfti_journal *j, journal_out *out, const sft_allocator *alloc,
                         const sft_job *job, sft_error *err) {
    sft_sink sink = { out, &out_sink_vtable, false };
    sft_source file;
    sfti_stages stages;
    sft_code code = sft_source_fd(j->fd, alloc, &file, err);
    if (code) return code;
    sfti_stages_begin(&stages, job, 2 * j->patch_bytes);
    for (size_t i = 0; i < j->patch_count && !code; i++) {
        const sfti_patch *patch = &j->patches[i];
        code = sfti_copy_into(&file, patch->at, patch->at + patch->len, &sink, 0, alloc,
                              &stages.job, err);
        stages.done += patch->len;
        if (!code) code = sfti_patch_write(patch, &sink, 0, alloc, &stages.job, err);
        stages.done += patch->len;
    }
    sft_source_close(&file);
    return code;
}

/*  1  the journal is written to a temporary file beside the model and synced: a crash leaves the
 *     old file, and at most a temporary
 *  2  it takes its name, unless that is taken: then another program is editing the file, or was
 *     interrupted. A crash leaves the old file and a journal whose old bytes match it */
sft_code sfti_journal_write(const char *path, const sfti_journal *j, uint32_t mode,
                            bool no_sync, const sft_allocator *alloc, const sft_job *job,
                            sft_error *err) {
    const uint64_t words[SFTI_JW_COUNT] = {
        0, SFTI_JOURNAL_VERSION, j->method, j->device, j->inode, j->size, j->grown,
        j->before.len, j->after.len, j->patch_count, j->patch_bytes };
    char name[SFTI_JOURNAL_PATH], fixed[SFTI_JOURNAL_FIXED], sum[8];
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    journal_out out = { .at = 0 };
    if (!sfti_journal_path(path, name)) {
        return sfti_fail(err, SFT_IO_OPEN,
                         "expected a path short enough for the name of its journal, found %zu "
                         "bytes", strlen(path));
    }
    options.no_sync = no_sync;
    options.no_clobber = true;
    options.mode = (mode & 02 ? mode & 0777 : mode & 0755) | 0600;
    options.alloc = alloc;
    sft_code code = sft_sink_path(name, &options, &out.inner, err);
    if (code) return code;
    sfti_crc32_begin(&out.table, false);
    for (size_t i = 0; i < SFTI_JW_COUNT; i++) sfti_put_u64(fixed + 8 * i, words[i]);
    memcpy(fixed, sfti_journal_magic, sizeof sfti_journal_magic);
    code = out_put(&out, fixed, sizeof fixed, err);
    if (!code && j->patch_count > 0) code = out_ranges(j, &out, err);
    if (!code) code = out_put(&out, j->before.data, j->before.len, err);
    if (!code) code = out_put(&out, j->after.data, j->after.len, err);
    if (!code && j->patch_count > 0) code = out_data(j, &out, alloc, job, err);
    sfti_put_u64(sum, out.sum);
    if (!code) code = out_put(&out, sum, sizeof sum, err);
    if (code) {
        sft_sink_abandon(&out.inner);
        /* Offsets in the journal mean nothing to the caller, who asked for a change of the file. */
        if (code == SFT_IO_WRITE && err)
            return sfti_io_fail(err, code, err->os_errno, "write the journal of the edit");
        return code;
    }
    code = sft_sink_finish(&out.inner, err);
    if (code != SFT_EXISTS) return code;
    int32_t os_errno = err ? err->os_errno : 0;
    code = sfti_fail(err, SFT_EDIT_BUSY,
                     "expected no other change of the file, found the journal of one");
    if (err) err->os_errno = os_errno;
    return code;
}

int sfti_journal_remove(const char *path) {
    char name[SFTI_JOURNAL_PATH];
    return sfti_journal_path(path, name) ? sfti_os_unlink(name) : 0;
}
