/* Deflated entries as sources. Tests: test_import_zip.c. */
#include "formats/zip/zip.h"

#include "base/crc32.h"
#include "os/os.h"
#include "safetensors_io.h"

#include <string.h>

#if defined(SFTI_FOUND_ZLIB)
#include <zlib.h>

#define INFLATE_SLOTS 8 /* tensors that are read at the same time without starting again */
#define INFLATE_IN ((size_t)64 << 10)
#define INFLATE_SKIP ((size_t)16 << 10)

typedef struct inflated {
    sfti_inflater *by;
    sfti_deflated bytes;
} inflated;

typedef struct inflate_slot {
    const inflated *of;  /* NULL: free */
    uint64_t at;         /* bytes that it has made of its entry */
    uint64_t taken;      /* bytes of the archive that it was given of it */
    uint64_t used;       /* when it was used last, in reads */
    uint32_t crc;
    bool begun;          /* stream is initialised */
    uint8_t *in;         /* INFLATE_IN bytes */
    z_stream stream;
} inflate_slot;

/* Reads take turns: the mutex guards all below it. */
struct sfti_inflater {
    const sft_source *archive;
    sft_allocator alloc;
    os_mutex mutex;
    uint64_t reads;
    uint8_t *skipped; /* INFLATE_SKIP bytes that nobody asked for */
    sfti_crc32_table table;
    inflate_slot slots[INFLATE_SLOTS];
};

/* ── zlib's memory: each block remembers its size ── */

#define INFLATE_HEAD ((size_t)16)

static voidpf take_for_zlib(voidpf ctx, uInt items, uInt each) {
    const sft_allocator *alloc = ctx;
    size_t size = INFLATE_HEAD + (size_t)items * each;
    char *block = sfti_take(alloc, size);
    if (!block) return NULL;
    memcpy(block, &size, sizeof size);
    return block + INFLATE_HEAD;
}

static void release_for_zlib(voidpf ctx, voidpf at) {
    size_t size;
    char *block = (char *)at - INFLATE_HEAD;
    memcpy(&size, block, sizeof size);
    sfti_release(ctx, block, size);
}

/* ── One slot ── */

static sft_code inflate_begin(sfti_inflater *by, inflate_slot *slot, const inflated *of,
                           sft_error *err) {
    slot->of = NULL;
    if (!slot->in) slot->in = sfti_take(&by->alloc, INFLATE_IN);
    if (!by->skipped) by->skipped = sfti_take(&by->alloc, INFLATE_SKIP);
    if (!slot->in || !by->skipped) return sfti_fail_memory(err, INFLATE_IN);
    int status;
    if (slot->begun) {
        status = inflateReset(&slot->stream);
    } else {
        memset(&slot->stream, 0, sizeof slot->stream);
        slot->stream.zalloc = take_for_zlib;
        slot->stream.zfree = release_for_zlib;
        slot->stream.opaque = &by->alloc;
        status = inflateInit2(&slot->stream, -MAX_WBITS);
    }
    if (status != Z_OK) return sfti_fail_memory(err, (uint64_t)1 << MAX_WBITS);
    slot->begun = true;
    slot->of = of;
    slot->at = slot->taken = 0;
    slot->crc = 0;
    slot->stream.avail_in = 0;
    return SFT_OK;
}

static uint64_t inflate_offset(const inflate_slot *slot) {
    return slot->of->bytes.begin + slot->taken - slot->stream.avail_in;
}

/* zlib has used up what it was given. */
static sft_code inflate_fill(sfti_inflater *by, inflate_slot *slot, sft_error *err) {
    const sfti_deflated *bytes = &slot->of->bytes;
    uint64_t left = bytes->stored - slot->taken;
    size_t len = left < INFLATE_IN ? (size_t)left : INFLATE_IN, got = 0;
    if (len == 0)
        return sfti_fail_byte(err, SFT_FOREIGN_SIZE, inflate_offset(slot), "expected %llu inflated "
                              "bytes, found the end of the deflated ones after %llu",
                              (unsigned long long)bytes->size, (unsigned long long)slot->at);
    sft_code code = sft_source_read(by->archive, bytes->begin + slot->taken, slot->in, len, &got,
                                    err);
    if (code) return code;
    if (got < len)
        return sfti_fail_byte(err, SFT_FOREIGN_TRUNCATED, bytes->begin + slot->taken + got,
                              "expected %zu bytes, found the end of the file", len - got);
    slot->taken += len;
    slot->stream.next_in = slot->in;
    slot->stream.avail_in = (uInt)len;
    return SFT_OK;
}

/* Inflate as much as fits; *ended: the deflated data are over. */
static sft_code inflate_run(sfti_inflater *by, inflate_slot *slot, bool *ended, sft_error *err) {
    int status = inflate(&slot->stream, Z_NO_FLUSH);
    *ended = status == Z_STREAM_END;
    if (status == Z_OK || *ended) return SFT_OK;
    if (status == Z_BUF_ERROR) return inflate_fill(by, slot, err);
    if (status == Z_MEM_ERROR) return sfti_fail_memory(err, (uint64_t)1 << MAX_WBITS);
    return sfti_fail_byte(err, SFT_FOREIGN_SYNTAX, inflate_offset(slot),
                          "expected deflated data, found %s",
                          slot->stream.msg ? slot->stream.msg : "others");
}

/* The next len bytes, at least one, into `into`. */
static sft_code inflate_step(sfti_inflater *by, inflate_slot *slot, void *into, size_t len,
                          sft_error *err) {
    slot->stream.next_out = into;
    slot->stream.avail_out = (uInt)len;
    while (slot->stream.avail_out > 0) {
        bool ended;
        sft_code code = inflate_run(by, slot, &ended, err);
        if (code) return code;
        if (ended && slot->stream.avail_out > 0)
            return sfti_fail_byte(err, SFT_FOREIGN_SIZE, inflate_offset(slot),
                                  "expected %llu inflated bytes, found %llu",
                                  (unsigned long long)slot->of->bytes.size,
                                  (unsigned long long)(slot->at + len - slot->stream.avail_out));
    }
    slot->at += len;
    slot->crc = sfti_crc32_add(&by->table, slot->crc, into, len);
    return SFT_OK;
}

/* All bytes are made: nothing may follow them, and they must be those of the checksum. */
static sft_code inflate_finish(sfti_inflater *by, inflate_slot *slot, sft_error *err) {
    const sfti_deflated *bytes = &slot->of->bytes;
    uint8_t more;
    bool ended = false;
    slot->stream.next_out = &more;
    slot->stream.avail_out = 1;
    while (!ended && slot->stream.avail_out > 0) {
        sft_code code = inflate_run(by, slot, &ended, err);
        if (code) return code;
    }
    if (slot->stream.avail_out == 0 || slot->stream.avail_in > 0 || slot->taken < bytes->stored)
        return sfti_fail_byte(err, SFT_FOREIGN_SIZE, inflate_offset(slot), "expected the deflated "
                              "data to end with %llu inflated bytes, found more",
                              (unsigned long long)bytes->size);
    if (slot->crc == bytes->crc32) return SFT_OK;
    return sfti_fail_byte(err, SFT_FOREIGN_CHECKSUM, bytes->begin,
                          "expected bytes of CRC-32 %08x, found %08x", (unsigned)bytes->crc32,
                          (unsigned)slot->crc);
}

/* ── The source ── */

/* The slot to read from `offset` on with: one that is at or before it in these bytes; else the one
 * not used for longest. */
static inflate_slot *choose_slot(sfti_inflater *by, const inflated *of, uint64_t offset) {
    inflate_slot *oldest = &by->slots[0];
    for (size_t i = 0; i < INFLATE_SLOTS; i++) {
        inflate_slot *slot = &by->slots[i];
        if (slot->of == of && slot->at <= offset) return slot;
        if (slot->used < oldest->used) oldest = slot;
    }
    return oldest;
}

static sft_code read_turn(const inflated *of, uint64_t offset, uint8_t *into, size_t len,
                          sft_error *err) {
    sfti_inflater *by = of->by;
    inflate_slot *slot = choose_slot(by, of, offset);
    sft_code code = SFT_OK;
    slot->used = ++by->reads;
    if (slot->of != of || slot->at > offset) code = inflate_begin(by, slot, of, err);
    while (!code && slot->at < offset) {
        uint64_t skip = offset - slot->at;
        size_t some = skip < INFLATE_SKIP ? (size_t)skip : INFLATE_SKIP;
        code = inflate_step(by, slot, by->skipped, some, err);
    }
    while (!code && len > 0) {
        size_t some = len < (size_t)1 << 30 ? len : (size_t)1 << 30;
        code = inflate_step(by, slot, into, some, err);
        into += some;
        len -= some;
    }
    if (!code && slot->at == of->bytes.size) code = inflate_finish(by, slot, err);
    if (code || slot->at == of->bytes.size) slot->of = NULL;
    return code;
}

static sft_code read_inflated(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                              sft_error *err) {
    const inflated *of = ctx;
    *got = 0;
    if (len == 0) return SFT_OK;
    sfti_os_mutex_lock(&of->by->mutex);
    sft_code code = read_turn(of, offset, into, len, err);
    sfti_os_mutex_unlock(&of->by->mutex);
    if (!code) *got = len;
    return code;
}

/* Inflating begins at the beginning, whatever is wanted. */
static void expect_inflated(void *ctx, const sft_run *runs, size_t count) {
    const inflated *of = ctx;
    sft_run run = { of->bytes.begin, of->bytes.stored };
    if (count > 0 && runs->offset == 0) sft_source_expect(of->by->archive, &run, run.len > 0);
}

static uint32_t mode_inflated(void *ctx) {
    return sft_source_mode(((const inflated *)ctx)->by->archive);
}

static const sft_source_vtable inflated_source_vtable = {
    sizeof(sft_source_vtable), read_inflated, NULL, expect_inflated, mode_inflated
};

sft_code sfti_inflate_source(sfti_import *im, sfti_inflater *inflater, const sfti_deflated *bytes,
                             const sft_source **out) {
    inflated *of = sfti_arena_take(&im->arena, sizeof *of);
    if (!of) return sfti_fail_memory(im->err, sizeof *of);
    *of = (inflated){ inflater, *bytes };
    sft_source source = { of, &inflated_source_vtable, bytes->size, NULL, false };
    return sfti_import_own(im, &source, out);
}

/* ── All of them: a source of nothing, which the import closes ── */

static sft_code read_nothing(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    (void)ctx, (void)offset, (void)into, (void)len, (void)err;
    *got = 0;
    return SFT_OK;
}

static void close_inflater(void *ctx) {
    sfti_inflater *by = ctx;
    for (size_t i = 0; i < INFLATE_SLOTS; i++) {
        if (by->slots[i].begun) (void)inflateEnd(&by->slots[i].stream);
        sfti_release(&by->alloc, by->slots[i].in, INFLATE_IN);
    }
    sfti_release(&by->alloc, by->skipped, INFLATE_SKIP);
    sfti_os_mutex_free(&by->mutex);
}

static const sft_source_vtable inflater_vtable = {
    sizeof(sft_source_vtable), read_nothing, close_inflater, NULL, NULL
};

sft_code sfti_inflater_new(sfti_import *im, const sft_source *archive, sfti_inflater **out) {
    sfti_arena *arena = &im->arena;
    const sft_source *kept;
    sfti_inflater *by = *out = sfti_arena_take(arena, sizeof *by);
    if (!by) return sfti_fail_memory(im->err, sizeof *by);
    memset(by, 0, sizeof *by);
    by->archive = archive;
    by->alloc = arena->alloc;
    sfti_crc32_begin(&by->table, false);
    if (sfti_os_mutex_init(&by->mutex) != 0)
        return sfti_fail_memory(im->err, sizeof by->mutex);
    sft_source source = { by, &inflater_vtable, 0, NULL, false };
    return sfti_import_own(im, &source, &kept);
}

#else

struct sfti_inflater {
    const sft_source *archive;
};

sft_code sfti_inflater_new(sfti_import *im, const sft_source *archive, sfti_inflater **out) {
    *out = sfti_arena_take(&im->arena, sizeof **out);
    if (!*out) return sfti_fail_memory(im->err, sizeof **out);
    (*out)->archive = archive;
    return SFT_OK;
}

sft_code sfti_inflate_source(sfti_import *im, sfti_inflater *inflater, const sfti_deflated *bytes,
                             const sft_source **out) {
    (void)inflater, (void)out;
    return sfti_fail_byte(im->err, SFT_FOREIGN_KIND, bytes->begin, "expected bytes that are stored "
                          "as they are, found deflated ones, and this build has no zlib to inflate "
                          "them");
}

#endif
