/* One pass over a file for all digests asked for. Tests: test_hash.c. */
#include "keys/digest_keys.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/mem.h"
#include "hash/hash.h"

#include <string.h>

#define READ_MIB (UINT64_C(1) << 20)
#define READ_AUTOV1_BEGIN READ_MIB
#define READ_AUTOV1_END (READ_MIB + (READ_MIB >> 4))
#define READ_CIVITAI_LEAST (2 * READ_MIB)
#define READ_CIVITAI_HEADER (16 * READ_MIB) /* CivitAI hashes a longer header as data */

static bool is_asked(const sfti_pass *r, sft_hash_algo algo) {
    return (r->algos & SFT_HASH_BIT(algo)) != 0;
}

static uint64_t at_most(uint64_t a, uint64_t most) {
    return a < most ? a : most;
}

static void part_begin(sfti_pass *r, int i, uint64_t begin, uint64_t end) {
    sfti_part *part = &r->parts[i];
    part->on = true;
    part->begin = at_most(begin, r->size);
    part->end = at_most(end, r->size);
    sfti_sha256_begin(&part->sum);
}

/* ── sshs_legacy: the header that sd-scripts would write ── */

/* Where the data would begin in sd-scripts' copy for hashing; UINT64_MAX: unknown. */
static sft_code legacy_data_offset(const sft_file *file, const sft_allocator *alloc, uint64_t *out,
                                   sft_error *err) {
    sfti_arena arena = { .alloc = *alloc };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_plan *plan = NULL;
    size_t count = sft_file_tensor_count(file), pairs = sft_file_metadata_count(file), kept = 0;
    sft_spec *specs = sfti_arena_take(&arena, (count + 1) * sizeof *specs);
    sft_pair *training = sfti_arena_take(&arena, (pairs + 1) * sizeof *training);
    sft_code code = SFT_OUT_OF_MEMORY;
    options.has_metadata = true;
    options.level = SFT_LEVEL_COMPAT;
    options.alloc = alloc;
    *out = UINT64_MAX;
    if (specs && training) {
        for (size_t i = 0; i < count; i++)
            specs[i] = sft_part_of(sft_file_tensor_at(file, i), NULL).spec;
        for (size_t i = 0; i < pairs; i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            if (sfti_is_training_key(pair.key)) training[kept++] = pair;
        }
        code = sft_plan_new(specs, count, training, kept, &options, &plan, err);
    } else {
        sfti_fail_memory(err, count * sizeof *specs);
    }
    bool same = !code;
    for (size_t i = 0; same && i < count; i++) {
        const sft_tensor *now = sft_file_tensor_at(file, i);
        const sft_tensor *then = sft_plan_tensor_at(plan, sft_plan_position(plan, i));
        same = now->begin == now->end || now->begin == then->begin;
    }
    if (same) *out = sft_plan_head(plan).len;
    sft_plan_free(plan);
    sfti_arena_free(&arena);
    return code == SFT_OUT_OF_MEMORY ? code : SFT_OK;
}

static sft_code legacy_begin(sfti_pass *r, const sft_allocator *alloc, sft_error *err) {
    uint64_t offset, data = sft_file_data_offset(r->file);
    size_t pairs = sft_file_metadata_count(r->file), i = 0;
    while (i < pairs && sfti_is_training_key(sft_file_metadata_at(r->file, i).key)) i++;
    r->legacy_is_autov1 = i == pairs; /* all are of training, or there are none */
    if (r->legacy_is_autov1) return SFT_OK;
    sft_code code = legacy_data_offset(r->file, alloc, &offset, err);
    if (code || offset > READ_AUTOV1_BEGIN) return code;
    part_begin(r, SFTI_OF_LEGACY, data + READ_AUTOV1_BEGIN - offset,
               data + READ_AUTOV1_END - offset);
    return SFT_OK;
}

/* ── Beginning ── */

sft_code sfti_pass_begin(sfti_pass *pass, const sfti_hash_impl *impl, uint32_t algos,
                            uint64_t size, const sft_file *file, uint8_t (*digests)[32],
                            const sft_allocator *alloc, sft_error *err) {
    sft_code code = SFT_OK;
    memset(pass, 0, offsetof(sfti_pass, parts));
    for (int i = 0; i < SFTI_PARTS; i++) pass->parts[i].on = false;
    pass->impl = impl;
    pass->algos = algos;
    pass->size = size;
    pass->file = file;
    pass->digests = algos & SFT_HASH_BIT(SFT_HASH_CONTENT) ? digests : NULL;
    pass->legacy_is_autov1 = false;
    pass->crc = 0;
    pass->tensor = pass->turn = 0;
    if (file) {
        uint64_t data = sft_file_data_offset(file);
        bool civitai = sft_file_header_bytes(file) >= READ_CIVITAI_HEADER;
        bool autov3 = is_asked(pass, SFT_HASH_AUTOV3);
        if (is_asked(pass, SFT_HASH_SSHS_MODEL) || (autov3 && !civitai))
            part_begin(pass, SFTI_OF_DATA, data, UINT64_MAX);
        if (autov3 && civitai) part_begin(pass, SFTI_OF_AUTOV3, 8, UINT64_MAX);
        if (is_asked(pass, SFT_HASH_SSHS_LEGACY)) code = legacy_begin(pass, alloc, err);
    }
    if (is_asked(pass, SFT_HASH_SHA256) || is_asked(pass, SFT_HASH_AUTOV2))
        part_begin(pass, SFTI_OF_FILE, 0, UINT64_MAX);
    if (is_asked(pass, SFT_HASH_AUTOV1) || pass->legacy_is_autov1
        || (is_asked(pass, SFT_HASH_AUTOV1_CIVITAI) && size >= READ_CIVITAI_LEAST))
        part_begin(pass, SFTI_OF_AUTOV1, READ_AUTOV1_BEGIN, READ_AUTOV1_END);
    pass->crc_on = is_asked(pass, SFT_HASH_CRC32) || is_asked(pass, SFT_HASH_CRC32_CIVITAI);
    pass->blake3_on = is_asked(pass, SFT_HASH_BLAKE3);
    sfti_blake3_begin(&pass->blake3, 0);
    pass->blake3_begin = 0;
    pass->blake3_end = size;
    pass->segments = NULL;
    if (!pass->digests || sft_file_data_bytes(file) > 0) return code;
    sfti_sha256 nothing; /* a model without data is never fed a piece */
    sfti_sha256_begin(&nothing);
    for (size_t i = 0; i < sft_file_tensor_count(file); i++)
        sfti_sha256_end(impl, &nothing, pass->digests[i]);
    return code;
}

void sfti_pass_share(sfti_pass *pass, sfti_blake3_segments *segments, uint64_t begin,
                     uint64_t end) {
    pass->segments = segments;
    pass->at = pass->blake3_begin = begin;
    pass->blake3_end = end;
    sfti_blake3_begin(&pass->blake3, begin / SFTI_BLAKE3_CHUNK);
}

/* ── The next bytes needed ── */

typedef struct pass_need {
    uint64_t at, end; /* the first byte needed next, and the end of all that is needed */
} pass_need;

static void need_add(pass_need *need, uint64_t from, uint64_t begin, uint64_t end) {
    if (begin < from) begin = from;
    if (begin >= end) return;
    if (begin < need->at) need->at = begin;
    if (end > need->end) need->end = end;
}

size_t sfti_pass_next(const sfti_pass *pass, size_t most, uint64_t *at) {
    pass_need need = { UINT64_MAX, 0 };
    uint64_t from = pass->at;
    for (int i = 0; i < SFTI_PARTS; i++)
        if (pass->parts[i].on)
            need_add(&need, from, pass->parts[i].begin, pass->parts[i].end);
    if (pass->crc_on) need_add(&need, from, 0, pass->size);
    if (pass->blake3_on) need_add(&need, from, pass->blake3_begin, pass->blake3_end);
    if (pass->digests) {
        uint64_t data = sft_file_data_offset(pass->file);
        need_add(&need, from, data, data + sft_file_data_bytes(pass->file));
    }
    *at = need.at;
    if (need.at >= need.end) return 0;
    return (size_t)at_most(need.end - need.at, most);
}

/* ── Feeding ── */

typedef struct pass_piece {
    uint64_t at, end;
    const uint8_t *data;
} pass_piece;

/* Feeds what the piece holds of the current tensor; true if the tensor ends here. A tensor within
 * one piece uses a sum of the queue. */
static bool feed_tensor(sfti_pass *r, sfti_sha_queue *queue, const pass_piece *piece) {
    const sft_tensor *tensor = sft_file_tensor_at(r->file, r->tensor);
    uint64_t first = tensor->offset, last = first + (tensor->end - tensor->begin);
    bool begins = first >= piece->at, ends = last <= piece->end;
    uint64_t from = begins ? first : piece->at, to = ends ? last : piece->end;
    sfti_sha256 *sum = begins && ends ? NULL : &r->open[r->turn];
    if (from > piece->end || (from == piece->end && !ends)) return false;
    if (begins && sum) sfti_sha256_begin(sum);
    sfti_queue_put(queue, sum, piece->data + (from - piece->at), (size_t)(to - from),
                   ends ? r->digests[r->tensor] : NULL);
    if (ends && sum) r->turn ^= 1;
    return ends;
}

void sfti_pass_feed(sfti_pass *pass, sfti_sha_queue *queue, uint64_t at,
                       const uint8_t *data, size_t len) {
    pass_piece piece = { at, at + len, data };
    for (int i = 0; i < SFTI_PARTS; i++) {
        sfti_part *part = &pass->parts[i];
        uint64_t begin = at > part->begin ? at : part->begin, end = at_most(at + len, part->end);
        if (part->on && begin < end)
            sfti_queue_put(queue, &part->sum, data + (begin - at), (size_t)(end - begin), NULL);
    }
    while (pass->digests && pass->tensor < sft_file_tensor_count(pass->file)
           && feed_tensor(pass, queue, &piece))
        pass->tensor++;
    if (pass->crc_on) pass->crc = sfti_crc32(pass->impl, pass->crc, data, len);
    if (pass->blake3_on && pass->segments)
        sfti_segments_feed(pass->segments, pass->impl, &pass->blake3, at, data, len);
    else if (pass->blake3_on) sfti_blake3_update(pass->impl, &pass->blake3, data, len);
    pass->at = at + len;
}

/* ── Results ── */

static void put_if_asked(const sfti_pass *r, sft_hashes *out, sft_hash_algo algo,
                         const uint8_t *bytes) {
    if (is_asked(r, algo)) sfti_hashes_put(out, algo, bytes);
}

static void put_parts(const sfti_pass *r, sft_hashes *out) {
    uint8_t sums[SFTI_PARTS][32];
    const sfti_part *parts = r->parts;
    for (int i = 0; i < SFTI_PARTS; i++)
        if (parts[i].on) sfti_sha256_end(r->impl, &parts[i].sum, sums[i]);
    if (parts[SFTI_OF_FILE].on) {
        put_if_asked(r, out, SFT_HASH_SHA256, sums[SFTI_OF_FILE]);
        put_if_asked(r, out, SFT_HASH_AUTOV2, sums[SFTI_OF_FILE]);
    }
    if (parts[SFTI_OF_DATA].on) put_if_asked(r, out, SFT_HASH_SSHS_MODEL, sums[SFTI_OF_DATA]);
    if (parts[SFTI_OF_AUTOV3].on) put_if_asked(r, out, SFT_HASH_AUTOV3, sums[SFTI_OF_AUTOV3]);
    else if (parts[SFTI_OF_DATA].on) put_if_asked(r, out, SFT_HASH_AUTOV3, sums[SFTI_OF_DATA]);
    if (parts[SFTI_OF_LEGACY].on)
        put_if_asked(r, out, SFT_HASH_SSHS_LEGACY, sums[SFTI_OF_LEGACY]);
    if (!parts[SFTI_OF_AUTOV1].on) return;
    put_if_asked(r, out, SFT_HASH_AUTOV1, sums[SFTI_OF_AUTOV1]);
    if (r->legacy_is_autov1) put_if_asked(r, out, SFT_HASH_SSHS_LEGACY, sums[SFTI_OF_AUTOV1]);
    uint64_t size = r->size == SFT_SIZE_UNKNOWN ? r->at : r->size;
    if (size >= READ_CIVITAI_LEAST)
        put_if_asked(r, out, SFT_HASH_AUTOV1_CIVITAI, sums[SFTI_OF_AUTOV1]);
}

void sfti_pass_result(const sfti_pass *pass, sft_hashes *out) {
    uint8_t bytes[32], back[4];
    put_parts(pass, out);
    if (pass->crc_on) {
        for (int i = 0; i < 4; i++) {
            bytes[i] = (uint8_t)(pass->crc >> (24 - 8 * i));
            back[3 - i] = bytes[i];
        }
        put_if_asked(pass, out, SFT_HASH_CRC32, bytes);
        put_if_asked(pass, out, SFT_HASH_CRC32_CIVITAI, back);
    }
    if (pass->segments && pass->blake3_end == pass->size) pass->segments->rest = pass->blake3;
    if (!pass->blake3_on || pass->segments) return;
    sfti_blake3_end(&pass->blake3, bytes);
    put_if_asked(pass, out, SFT_HASH_BLAKE3, bytes);
}

/* ── content ── */

static void content_u32(const sfti_hash_impl *impl, sfti_sha256 *sum, uint32_t value) {
    uint8_t bytes[8];
    sfti_put_u64(bytes, value);
    sfti_sha256_update(impl, sum, bytes, 4);
}

static void content_text(const sfti_hash_impl *impl, sfti_sha256 *sum, sft_span text) {
    content_u32(impl, sum, (uint32_t)text.len);
    if (text.len > 0) sfti_sha256_update(impl, sum, text.data, text.len);
}

sft_code sfti_hash_content(const sfti_hash_impl *impl, const sft_set *set, const sft_file *file,
                           uint8_t (*digests)[32], const sft_allocator *alloc, sft_hashes *out,
                           sft_error *err) {
    size_t count = set ? sft_set_tensor_count(set) : sft_file_tensor_count(file);
    size_t bytes = (count + 1) * sizeof(uint32_t);
    uint32_t *order = sfti_take(alloc, bytes);
    uint8_t digest[32];
    sfti_sha256 sum;
    if (!order) return sfti_fail_memory(err, bytes);
    sft_code code = set ? sft_set_order(set, SFT_ORDER_NAME, order, err)
                        : sft_file_order(file, SFT_ORDER_NAME, order, err);
    sfti_sha256_begin(&sum);
    for (size_t i = 0; !code && i < count; i++) {
        const sft_tensor *tensor = set ? sft_set_tensor_at(set, order[i])
                                       : sft_file_tensor_at(file, order[i]);
        content_text(impl, &sum, tensor->name);
        content_text(impl, &sum, sft_span_cstr(sft_dtype_describe(tensor->dtype)->name));
        content_u32(impl, &sum, tensor->rank);
        for (uint32_t d = 0; d < tensor->rank; d++) {
            uint8_t dim[8];
            sfti_put_u64(dim, tensor->shape[d]);
            sfti_sha256_update(impl, &sum, dim, sizeof dim);
        }
        sfti_sha256_update(impl, &sum, digests[order[i]], 32);
    }
    sfti_release(alloc, order, bytes);
    if (code) return code;
    sfti_sha256_end(impl, &sum, digest);
    sfti_hashes_put(out, SFT_HASH_CONTENT, digest);
    return SFT_OK;
}
