/* Sorted tables of LevelDB are read. */
#include "formats/tensorflow/table.h"

#include "base/crc32.h"
#include "base/endian.h"
#include "base/order.h"
#include "safetensors_io.h"

#include <string.h>

#define FOOTER 48
#define TRAILER 5 /* compression, checksum */
#define BLOCK_MOST (UINT64_C(64) << 20)
#define KEY_MOST 65536
#define ALL_KEYS_MOST (UINT64_C(100) << 20) /* a key can have most of its bytes from the last one */

static const uint8_t magic[8] = { 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb };

typedef struct table {
    sfti_import *im;
    const sft_source *source;
    sfti_crc32_table crc;
    sfti_table_fn each;
    void *ctx;
    char *key; /* of the last entry, KEY_MOST bytes */
    size_t key_len;
    bool has_key;
    uint64_t keys; /* bytes of all */
    uint64_t next; /* where a block may begin: behind the last one */
} table;

/* A block in memory: entries, then where they begin anew. */
typedef struct table_block {
    const uint8_t *bytes;
    size_t at, end; /* of the entries */
    uint64_t begin; /* in the file */
} table_block;

typedef struct handle {
    uint64_t offset, size;
} handle;

static sft_code table_syntax(const table *t, uint64_t at, const char *expected) {
    return sfti_fail_byte(t->im->err, SFT_FOREIGN_SYNTAX, at, "expected %s, found other bytes",
                          expected);
}

/* A number of 7 bits a byte; false if it is cut or longer than 64 bits. */
static bool table_number(const uint8_t *bytes, size_t end, size_t *at, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = bytes[(*at)++];
        if (shift == 63 && byte > 1) return false;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

static bool take_handle(const uint8_t *bytes, size_t end, size_t *at, handle *out) {
    return table_number(bytes, end, at, &out->offset) && table_number(bytes, end, at, &out->size);
}

/* ── Blocks ── */

static sft_code check_block(const table *t, const handle *h, const uint8_t *bytes) {
    uint32_t found = sfti_crc32_add(&t->crc, 0, bytes, (size_t)h->size + 1);
    uint32_t wanted = sfti_crc32c_unmask(sfti_get_u32(bytes + h->size + 1));
    if (found != wanted)
        return sfti_fail_byte(t->im->err, SFT_FOREIGN_CHECKSUM, h->offset,
                              "expected a block with the recorded CRC-32C %08x, found %08x", wanted,
                              found);
    if (bytes[h->size] == 0) return SFT_OK;
    return sfti_fail_byte(t->im->err, SFT_FOREIGN_KIND, h->offset + h->size,
                          "expected a block that is not compressed, found compression %u",
                          bytes[h->size]);
}

static sft_code load_block(const table *t, const handle *h, table_block *out) {
    uint8_t *bytes;
    if (h->size > BLOCK_MOST)
        return sfti_fail_byte(t->im->err, SFT_FOREIGN_TABLE, h->offset,
                              "expected a block of at most 64 MiB, found %llu bytes",
                              (unsigned long long)h->size);
    sft_code code = sfti_import_load(t->im, t->source, h->offset, h->size + TRAILER, &bytes);
    if (!code) code = check_block(t, h, bytes);
    if (code) return code;
    uint64_t restarts = h->size >= 4 ? sfti_get_u32(bytes + h->size - 4) : 0, tail;
    if (h->size < 4 || !sfti_mul(restarts, 4, &tail) || tail > h->size - 4)
        return table_syntax(t, h->offset, "a block with its restarts");
    *out = (table_block){ bytes, 0, (size_t)(h->size - 4 - tail), h->offset };
    return SFT_OK;
}

/* The next entry: its key in t->key, its value in *value. */
static sft_code next_entry(table *t, table_block *b, sft_span *value) {
    uint64_t shared, rest, len, at = b->begin + b->at;
    if (!table_number(b->bytes, b->end, &b->at, &shared)
        || !table_number(b->bytes, b->end, &b->at, &rest)
        || !table_number(b->bytes, b->end, &b->at, &len))
        return table_syntax(t, at, "an entry");
    if (shared > t->key_len || rest > KEY_MOST - shared || rest > b->end - b->at
        || len > b->end - b->at - rest)
        return table_syntax(t, at, "a key and a value within the block");
    memcpy(t->key + shared, b->bytes + b->at, (size_t)rest);
    t->key_len = (size_t)(shared + rest);
    t->keys += t->key_len;
    if (t->keys > ALL_KEYS_MOST)
        return sfti_fail_byte(t->im->err, SFT_FOREIGN_TABLE, at,
                              "expected keys of at most 100 MiB together, found more");
    b->at += (size_t)rest;
    *value = (sft_span){ (const char *)b->bytes + b->at, (size_t)len };
    b->at += (size_t)len;
    return SFT_OK;
}

static sft_code read_block(table *t, const handle *h, char *last) {
    table_block block;
    sft_code code = load_block(t, h, &block);
    size_t last_len = t->key_len;
    if (t->has_key) memcpy(last, t->key, last_len);
    for (t->key_len = 0; !code && block.at < block.end;) {
        sft_span value = { NULL, 0 };
        uint64_t at = block.begin + block.at;
        code = next_entry(t, &block, &value);
        /* Keys ascend, over all blocks. */
        sft_span key = { t->key, t->key_len }, before = { last, last_len };
        if (!code && t->has_key && sfti_bytes_compare(before, key) >= 0)
            code = sfti_fail_byte(t->im->err, SFT_FOREIGN_AMBIGUOUS, at,
                                  "expected keys in ascending order, found \"%.*s\" after \"%.*s\"",
                                  SFTI_CLIP(key, 150), SFTI_CLIP(before, 150));
        if (!code)
            code = t->each(t->ctx, key, value,
                           block.begin + (uint64_t)((const uint8_t *)value.data - block.bytes));
        if (code) return code;
        t->has_key = true;
        last_len = t->key_len;
        memcpy(last, t->key, last_len);
    }
    return code;
}

/* ── The table ── */

bool sfti_is_table(sfti_import *im) {
    const sft_source *source = im->input;
    uint8_t end[8];
    return source->size >= FOOTER && !sfti_import_read(im, source, source->size - 8, end, 8)
           && memcmp(end, magic, 8) == 0;
}

static sft_code table_index(table *t, handle *out) {
    uint8_t footer[FOOTER];
    size_t at = 0;
    handle meta;
    uint64_t begin = t->source->size - FOOTER;
    if (t->source->size < FOOTER) return table_syntax(t, 0, "a table of at least 48 bytes");
    sft_code code = sfti_import_read(t->im, t->source, begin, footer, FOOTER);
    if (code) return code;
    sft_source_expect(t->source, &(sft_run){ 0, begin }, 1); /* nearly all of it is read */
    if (!take_handle(footer, FOOTER - 8, &at, &meta) || !take_handle(footer, FOOTER - 8, &at, out))
        return table_syntax(t, begin, "where the index is");
    return SFT_OK;
}

/* The index is a block as well: its values tell where the others are. */
static sft_code read_blocks(table *t, const handle *index, char *last, char *keys) {
    table_block block;
    table names = *t;
    names.key = keys;
    sft_code code = load_block(t, index, &block);
    while (!code && block.at < block.end) {
        sft_span value = { NULL, 0 };
        handle h;
        size_t at = 0;
        uint64_t begin = block.begin + block.at;
        code = next_entry(&names, &block, &value);
        if (code) break;
        if (!take_handle((const uint8_t *)value.data, value.len, &at, &h))
            return table_syntax(t, begin, "where a block is");
        if (h.offset < t->next || h.size > index->offset || h.offset > index->offset - h.size)
            return sfti_fail_byte(t->im->err, SFT_FOREIGN_AMBIGUOUS, begin, "expected a block "
                                  "between the last one and the index, found one at byte %llu",
                                  (unsigned long long)h.offset);
        t->next = h.offset + h.size;
        code = read_block(t, &h, last);
    }
    return code;
}

sft_code sfti_table_read(sfti_import *im, sfti_table_fn each, void *ctx) {
    sfti_arena *arena = &im->arena;
    table *t = sfti_arena_take(arena, sizeof *t);
    char *keys = sfti_arena_take(arena, 3 * KEY_MOST);
    handle index;
    if (!t || !keys) return sfti_fail_memory(im->err, 3 * KEY_MOST);
    *t = (table){ .im = im, .source = im->input, .each = each, .ctx = ctx,
                  .key = keys };
    sfti_crc32_begin(&t->crc, true);
    sft_code code = table_index(t, &index);
    return code ? code : read_blocks(t, &index, keys + KEY_MOST, keys + 2 * KEY_MOST);
}
