/* A zip archive of tensors is written. Tests: test_export.c. */
#include "formats/zip/zip_write.h"

#include "base/crc32.h"
#include "base/endian.h"
#include "base/job.h"
#include "base/sink.h"
#include "bytes/source.h"
#include "formats/zip/zip_format.h"
#include "safetensors_io.h"

#include <string.h>

#define ZIP_BUFFER ((size_t)1 << 20)
#define ZIP_ALIGN 64
#define ZIP_DATE 0x21 /* 1 January 1980, the first that there is: the same every time */
#define ZIP_NARROW UINT64_C(0x7fffffff) /* Python's zipfile writes more as ZIP64 */
#define ZIP_LOCAL_MOST (ZIP_LOCAL_LEN + 65535 + 28 + 4 + ZIP_ALIGN)

typedef struct zip_out {
    const sft_sink *sink;
    const sft_job *job;
    sft_error *err;
    bool torch;
    uint64_t at;          /* of the sink: all before it is there */
    uint64_t done, total; /* bytes of tensors */
    uint8_t *buffer;      /* ZIP_BUFFER bytes */
    uint8_t *header;      /* ZIP_LOCAL_MOST bytes */
    sfti_crc32_table table;
} zip_out;

static sft_code out_write(zip_out *z, const void *bytes, size_t len) {
    sft_code code = len > 0 ? sft_sink_write(z->sink, z->at, bytes, len, z->err) : SFT_OK;
    z->at += len;
    return code;
}

static void put_u16(uint8_t *at, uint64_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static uint32_t zip_narrow(uint64_t value, uint64_t most) {
    return value > most ? ZIP_WIDE : (uint32_t)value;
}

/* ── Layout ── */

/* The ZIP64 field: the sizes, the offset, or both, as far as they are over `most`. PyTorch has it
 * in local headers, too. */
static size_t put_wide(const sfti_zip_member *m, uint64_t most, uint8_t *out) {
    size_t len = 4;
    if (m->size > most) {
        sfti_put_u64(out + len, m->size);
        sfti_put_u64(out + len + 8, m->size);
        len += 16;
    }
    if (m->at > most) {
        sfti_put_u64(out + len, m->at);
        len += 8;
    }
    put_u16(out, 1);
    put_u16(out + 2, len - 4);
    return len == 4 ? 0 : len;
}

/* The fields from `need` to the sizes, which local headers and the directory have in common. */
static void put_common(const zip_out *z, const sfti_zip_member *m, uint8_t *at) {
    bool utf8 = z->torch;
    for (size_t i = 0; !utf8 && i < m->name.len; i++) utf8 = m->name.data[i] & 0x80;
    put_u16(at, z->torch ? 0 : 45);
    put_u16(at + 2, (utf8 ? ZIP_UTF8 : 0) | (m->described ? ZIP_DESCRIBED : 0));
    put_u16(at + 4, 0);
    put_u16(at + 6, 0);
    put_u16(at + 8, ZIP_DATE);
}

/* The local header into z->header; its length. */
static size_t make_local(zip_out *z, const sfti_zip_member *m) {
    uint8_t *h = z->header, *extra = h + ZIP_LOCAL_LEN + m->name.len;
    sfti_put_u32(h, ZIP_LOCAL);
    put_common(z, m, h + 4);
    sfti_put_u32(h + 14, m->described ? 0 : m->crc32);
    sfti_put_u32(h + 18, z->torch ? 0 : ZIP_WIDE);
    sfti_put_u32(h + 22, z->torch ? 0 : ZIP_WIDE);
    size_t len = 20;
    if (z->torch) {
        len = put_wide(m, ZIP_WIDE - 1, extra);
        uint64_t start = m->at + ZIP_LOCAL_LEN + m->name.len + len + 4;
        size_t padding = (size_t)(-start % ZIP_ALIGN); /* up to the next multiple of 64 */
        memcpy(extra + len, "FB", 2);
        put_u16(extra + len + 2, padding);
        memset(extra + len + 4, 'Z', padding);
        len += 4 + padding;
    } else {
        put_u16(extra, 1);
        put_u16(extra + 2, 16);
        sfti_put_u64(extra + 4, m->described ? 0 : m->size);
        sfti_put_u64(extra + 12, m->described ? 0 : m->size);
    }
    put_u16(h + 26, m->name.len);
    put_u16(h + 28, len);
    memcpy(h + ZIP_LOCAL_LEN, m->name.data, m->name.len);
    return ZIP_LOCAL_LEN + m->name.len + len;
}

static size_t make_descriptor(const zip_out *z, const sfti_zip_member *m, uint8_t out[24]) {
    if (!m->described) return 0;
    sfti_put_u32(out, ZIP_DESCRIPTOR);
    sfti_put_u32(out + 4, m->crc32);
    if (!z->torch || m->size >= ZIP_WIDE || m->at >= ZIP_WIDE) {
        sfti_put_u64(out + 8, m->size);
        sfti_put_u64(out + 16, m->size);
        return 24;
    }
    sfti_put_u32(out + 8, (uint32_t)m->size);
    sfti_put_u32(out + 12, (uint32_t)m->size);
    return 16;
}

/* The row of the directory into z->header; its length. */
static size_t make_central(zip_out *z, const sfti_zip_member *m) {
    uint8_t *h = z->header, *extra = h + ZIP_CENTRAL_LEN + m->name.len;
    uint64_t most = z->torch ? ZIP_WIDE - 1 : ZIP_NARROW;
    memset(h, 0, ZIP_CENTRAL_LEN);
    sfti_put_u32(h, ZIP_CENTRAL);
    put_u16(h + 4, z->torch ? 0 : 0x032d);
    put_common(z, m, h + 6);
    sfti_put_u32(h + 16, m->crc32);
    sfti_put_u32(h + 20, zip_narrow(m->size, most));
    sfti_put_u32(h + 24, zip_narrow(m->size, most));
    put_u16(h + 28, m->name.len);
    if (!z->torch) sfti_put_u32(h + 38, UINT32_C(0600) << 16);
    sfti_put_u32(h + 42, zip_narrow(m->at, most));
    memcpy(h + ZIP_CENTRAL_LEN, m->name.data, m->name.len);
    size_t wide = put_wide(m, most, extra);
    put_u16(h + 30, wide);
    return ZIP_CENTRAL_LEN + m->name.len + wide;
}

static size_t make_end(const zip_out *z, uint64_t count, uint64_t at, uint8_t *out) {
    uint64_t size = z->at - at, most = z->torch ? ZIP_WIDE - 1 : ZIP_NARROW;
    uint8_t *end = out;
    if (z->torch || count > 0xffff || size > most || at > most) {
        memset(out, 0, ZIP_END64_LEN + ZIP_LOCATOR64_LEN);
        sfti_put_u32(out, ZIP_END64);
        sfti_put_u64(out + 4, ZIP_END64_LEN - 12);
        put_u16(out + 12, 45);
        put_u16(out + 14, 45);
        sfti_put_u64(out + 24, count);
        sfti_put_u64(out + 32, count);
        sfti_put_u64(out + 40, size);
        sfti_put_u64(out + 48, at);
        sfti_put_u32(out + 56, ZIP_LOCATOR64);
        sfti_put_u64(out + 64, z->at);
        sfti_put_u32(out + 72, 1);
        end += ZIP_END64_LEN + ZIP_LOCATOR64_LEN;
    }
    memset(end, 0, ZIP_END_LEN);
    sfti_put_u32(end, ZIP_END);
    put_u16(end + 8, count < 0xffff ? count : 0xffff);
    put_u16(end + 10, count < 0xffff ? count : 0xffff);
    sfti_put_u32(end + 12, size < ZIP_WIDE ? (uint32_t)size : ZIP_WIDE);
    sfti_put_u32(end + 16, at < ZIP_WIDE ? (uint32_t)at : ZIP_WIDE);
    return (size_t)(end - out) + ZIP_END_LEN;
}

/* ── Writing ── */

/* Where everything goes, and the length of the whole. */
static sft_code out_plan(zip_out *z, sfti_zip_member *members, size_t count) {
    uint8_t room[24];
    uint64_t at = 0, directory;
    for (size_t i = 0; i < count; i++) {
        sfti_zip_member *m = &members[i];
        m->at = at;
        if (!sfti_add(m->head.len, m->bytes, &m->size)
            || !sfti_add(at, ZIP_LOCAL_MOST + (uint64_t)sizeof room, &at)
            || !sfti_add(at, m->size, &at))
            return sfti_fail(z->err, SFT_SIZE_OVERFLOW,
                             "expected tensors of less than 2^64 bytes, found more");
        m->described = z->torch ? m->size > 0 : m->size > ZIP_BUFFER && !z->sink->seekable;
        at = m->at + make_local(z, m) + m->size;
        at += make_descriptor(z, m, room);
        sfti_total_add(&z->total, m->bytes);
    }
    directory = at;
    for (size_t i = 0; i < count; i++) at += make_central(z, &members[i]);
    z->at = at;
    at += make_end(z, count, directory, z->buffer);
    z->at = 0;
    return sft_sink_expect(z->sink, at, z->err);
}

/* Bytes [from, from + len) of head and part. */
static sft_code load_member(const zip_out *z, const sfti_zip_member *m, uint64_t from, size_t len,
                            uint8_t *into) {
    if (from < m->head.len) {
        size_t some = m->head.len - (size_t)from < len ? m->head.len - (size_t)from : len;
        memcpy(into, m->head.data + from, some);
        into += some;
        len -= some;
        from += some;
    }
    if (len == 0) return SFT_OK;
    return sfti_source_all(m->part->source, m->part->begin + (from - m->head.len), into, len,
                           z->err);
}

/* The next piece of a member into the buffer, counted in its checksum. */
static sft_code next_piece(zip_out *z, sfti_zip_member *m, uint64_t from, size_t *len) {
    *len = m->size - from < ZIP_BUFFER ? (size_t)(m->size - from) : ZIP_BUFFER;
    sft_code code = load_member(z, m, from, *len, z->buffer);
    if (code) {
        if (z->err && m->part) sfti_error_tensor(z->err, m->part->spec.name);
        return code;
    }
    m->crc32 = sfti_crc32_add(&z->table, m->crc32, z->buffer, *len);
    if (!m->part) return SFT_OK;
    uint64_t of_head = from < m->head.len ? m->head.len - from : 0;
    sfti_total_add(&z->done, *len - (of_head < *len ? of_head : *len));
    return sfti_job_tick(z->job, z->done, z->total, z->err);
}

static sft_code write_data(zip_out *z, sfti_zip_member *m) {
    for (uint64_t from = 0; from < m->size;) {
        size_t len;
        sft_code code = next_piece(z, m, from, &len);
        if (!code) code = out_write(z, z->buffer, len);
        if (code) return code;
        from += len;
    }
    return SFT_OK;
}

/* A header that tells the checksum is written once that is known: of what fits the buffer before
 * the data, else after them, which a forward sink cannot do (then it follows the data). */
static sft_code write_member(zip_out *z, sfti_zip_member *m) {
    uint8_t after[24];
    size_t len = make_local(z, m), piece;
    sft_code code;
    if (m->described) {
        code = out_write(z, z->header, len);
        if (!code) code = write_data(z, m);
        return code ? code : out_write(z, after, make_descriptor(z, m, after));
    }
    if (m->size <= ZIP_BUFFER) {
        code = next_piece(z, m, 0, &piece);
        if (code) return code;
        code = out_write(z, z->header, make_local(z, m));
        return code ? code : out_write(z, z->buffer, piece);
    }
    z->at = m->at + len;
    code = write_data(z, m);
    if (code) return code;
    (void)make_local(z, m);
    return sft_sink_write(z->sink, m->at, z->header, len, z->err);
}

static sft_code write_directory(zip_out *z, const sfti_zip_member *members, size_t count) {
    uint64_t at = z->at;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t len = make_central(z, &members[i]);
        if (used + len > ZIP_BUFFER) {
            sft_code code = out_write(z, z->buffer, used);
            if (code) return code;
            used = 0;
        }
        memcpy(z->buffer + used, z->header, len);
        used += len;
    }
    sft_code code = out_write(z, z->buffer, used);
    return code ? code : out_write(z, z->buffer, make_end(z, count, at, z->buffer));
}

sft_code sfti_zip_write(sfti_zip_member *members, size_t count, sfti_zip_layout layout,
                        sft_sink sink, const sft_allocator *alloc, const sft_job *job,
                        sft_error *err) {
    sfti_arena arena = { .alloc = sfti_allocator(alloc) };
    zip_out z = { .sink = &sink, .job = job, .err = err, .torch = layout == SFTI_ZIP_TORCH };
    sfti_crc32_begin(&z.table, false);
    z.buffer = sfti_arena_take(&arena, ZIP_BUFFER);
    z.header = sfti_arena_take(&arena, ZIP_LOCAL_MOST);
    sft_code code = SFT_OK;
    if (!z.buffer || !z.header) code = sfti_fail_memory(err, ZIP_BUFFER);
    if (!code) code = out_plan(&z, members, count);
    for (size_t i = 0; !code && i < count; i++)
        if (members[i].part)
            code = sft_sink_limit_mode(&sink, sft_source_mode(members[i].part->source), err);
    for (size_t i = 0; !code && i < count; i++) code = write_member(&z, &members[i]);
    if (!code) code = write_directory(&z, members, count);
    sfti_arena_free(&arena);
    return sfti_sink_end(&sink, code, err);
}
