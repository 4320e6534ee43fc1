/* GGUF, versions 2 and 3: header, key-value pairs, a row for each tensor, then their bytes, each
 * at the next multiple of the alignment behind the one before: no gap, no overlap, in order.
 * Tests: test_import_gguf.c. */
#include "formats/gguf/gguf.h"

#include "os/io.h"

#include <stdio.h>
#include <string.h>

#define SFTI_GGUF_MOST_DIMENSION (UINT64_C(1) << 63)

/* A row of the table of tensors. */
typedef struct gguf_row {
    sft_span name;
    uint64_t at; /* of the row in the file */
    uint64_t *shape;
    uint64_t offset, bytes; /* of its data, from the data's beginning on */
    uint32_t rank, number;  /* number: of its type */
} gguf_row;

/* A model being read, in one file or several. */
typedef struct gguf_model {
    sfti_import *im;
    sfti_codec codecs[64]; /* of types that were met, by number */
    uint64_t tensors;      /* of all files so far */
    uint64_t beyond;       /* those that ggml's own limits forbid */
    bool renamed;          /* their names are those of llama.cpp */
} gguf_model;

/* One of its files. */
typedef struct gguf_file {
    gguf_model *model;
    sfti_import *im;
    const sft_source *source;
    sfti_gguf_cursor cursor;
    sfti_gguf_pairs pairs;
    gguf_row *rows;
    size_t count, cap;
    uint64_t end; /* of the tensors so far, padded, from the data's beginning on */
} gguf_file;

bool sfti_is_gguf(sfti_import *im, const uint8_t *head, size_t len) {
    (void)im;
    return len >= 4 && memcmp(head, "GGUF", 4) == 0;
}

/* ── Header ── */

static sft_code read_version(gguf_file *f) {
    uint32_t version;
    sft_code code = sfti_gguf_skip(&f->cursor, 4);
    if (!code) code = sfti_gguf_u32(&f->cursor, &version);
    if (code) return code;
    if ((version & 0xffff) == 0) { /* the file's numbers are big-endian */
        f->cursor.big_endian = true;
        version = version >> 24 | (version >> 8 & 0xff00);
    }
    if (version == 2 || version == 3) return SFT_OK;
    return sfti_fail_byte(f->im->err, SFT_FOREIGN_KIND, 4,
                          "expected GGUF of version 2 or 3, found version %u%s", version,
                          version == 1 ? ", which ggml has dropped" : "");
}

/* ── Rows ── */

static sft_code read_dimensions(gguf_file *f, gguf_row *row) {
    sfti_gguf_cursor *c = &f->cursor;
    uint64_t elements = 1, at = c->at;
    sft_code code = sfti_gguf_u32(c, &row->rank);
    if (code) return code;
    if (row->rank > SFT_MAX_RANK)
        return sfti_fail_tensor(f->im->err, SFT_RANK_TOO_LARGE, at, row->name,
                                "expected at most %d dimensions, found %u", SFT_MAX_RANK,
                                row->rank);
    row->shape = sfti_arena_array(&f->im->arena, row->rank, sizeof *row->shape);
    if (!row->shape) return sfti_fail_memory(f->im->err, row->rank);
    for (uint32_t d = row->rank; !code && d-- > 0;) { /* the fastest one comes first */
        at = c->at;
        code = sfti_gguf_number(c, 8, &row->shape[d]);
        if (!code
            && (row->shape[d] >= SFTI_GGUF_MOST_DIMENSION
                || !sfti_mul(elements, row->shape[d], &elements)
                || elements >= SFTI_GGUF_MOST_DIMENSION))
            code = sfti_fail_tensor(f->im->err, SFT_SIZE_OVERFLOW, at, row->name,
                                    "expected less than 2^63 elements, found more");
    }
    return code;
}

/* Only behind a tensor of unknown size (see options.skip) may there be a gap. */
static sft_code place_row(gguf_file *f, const gguf_row *row, uint64_t offset_at) {
    const gguf_row *before = f->count ? &f->rows[f->count - 1] : NULL;
    bool gap = before && !sfti_gguf_type_of(before->number)->codec.stored
               && row->offset > f->end && row->offset % f->pairs.alignment == 0;
    if (row->offset != f->end && !gap)
        return sfti_fail_tensor(f->im->err, SFT_FOREIGN_SYNTAX, offset_at,
                                row->name, "expected its data at offset %llu, where those of the "
                                "tensor before end, found %llu", (unsigned long long)f->end,
                                (unsigned long long)row->offset);
    if (sfti_add(row->offset, row->bytes, &f->end)
        && sfti_align_up(f->end, f->pairs.alignment, &f->end))
        return SFT_OK;
    return sfti_fail_tensor(f->im->err, SFT_SIZE_OVERFLOW, offset_at, row->name,
                            "expected data of less than 2^64 bytes, found more");
}

static sft_code read_tensor_row(gguf_file *f, gguf_row *row) {
    sfti_gguf_cursor *c = &f->cursor;
    *row = (gguf_row){ .at = c->at };
    sft_code code = sfti_gguf_string(c, UINT64_MAX, &row->name);
    if (!code && row->name.len > 0 && memchr(row->name.data, '\0', row->name.len))
        return sfti_fail_tensor(f->im->err, SFT_FOREIGN_NAME, row->at, row->name,
                                "expected a name without NUL, at which ggml ends it, found one");
    if (!code) code = read_dimensions(f, row);
    uint64_t type_at = c->at;
    if (!code) code = sfti_gguf_u32(c, &row->number);
    if (!code) code = sfti_gguf_number(c, 8, &row->offset);

    if (code) return code;
    /* The bytes of its data; 0 if the type's size is not known. */
    const sfti_codec *codec = &sfti_gguf_type_of(row->number)->codec;
    uint64_t elements = 1, fastest = row->rank ? row->shape[row->rank - 1] : 1;
    for (uint32_t d = 0; d < row->rank; d++) elements *= row->shape[d];
    if (fastest % codec->elements != 0)
        return sfti_fail_tensor(f->im->err, SFT_FOREIGN_SIZE, type_at, row->name,
                                "expected rows of whole blocks of %u elements of %s, found %llu "
                                "elements", codec->elements, codec->name,
                                (unsigned long long)fastest);
    if (!sfti_mul(elements / codec->elements, codec->stored, &row->bytes))
        return sfti_fail_tensor(f->im->err, SFT_SIZE_OVERFLOW, type_at, row->name,
                                "expected less than 2^64 bytes, found more");

    return code ? code : place_row(f, row, type_at + 4);
}

static sft_code read_tensor_rows(gguf_file *f, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        gguf_row *rows = sfti_arena_grow(&f->im->arena, f->rows, f->count, 1, &f->cap,
                                         sizeof *rows);
        if (!rows) return sfti_fail_memory(f->im->err, sizeof *rows);
        f->rows = rows;
        sft_code code = read_tensor_row(f, &rows[f->count]);
        if (code) return code;
        f->count++;
    }
    return SFT_OK;
}

/* ── Tensors ── */

static sft_code add_row(gguf_file *f, const gguf_row *row, uint64_t data) {
    const sfti_gguf_type *type = sfti_gguf_type_of(row->number);
    bool blocks = type->codec.unpack != NULL;
    sfti_item item = { .name = row->name, .dtype = type->dtype, .rank = row->rank,
                       .shape = row->shape, .source = f->source, .stored = row->bytes,
                       .at = row->at };
    if (type->refused)
        return sfti_import_refuse(f->im, row->name, row->bytes, SFT_FOREIGN_DTYPE, row->at,
                                  "expected a type that GGUF has now, found %s (%u), %s",
                                  type->codec.name, row->number, type->refused);
    if (blocks && f->cursor.big_endian)
        return sfti_import_refuse(f->im, row->name, row->bytes, SFT_FOREIGN_KIND, row->at,
                                  "expected little-endian blocks of %s, found big-endian ones",
                                  type->codec.name);
    if (blocks) {
        sfti_codec *codec = &f->model->codecs[row->number];
        if (!codec->name) {
            *codec = type->codec;
            codec->unpack = sfti_gguf_fastest(row->number);
        }
        item.codec = codec;
    } else if (f->cursor.big_endian) {
        item.swap = (uint8_t)(type->codec.stored > 1 ? type->codec.stored : 0);
    }
    if (!sfti_add(data, row->offset, &item.begin))
        return sfti_fail_tensor(f->im->err, SFT_SIZE_OVERFLOW, row->at, row->name,
                                "expected data of less than 2^64 bytes, found more");
    f->model->beyond += row->rank > 4 || row->name.len > 63;
    f->model->renamed |= row->name.len > 4 && memcmp(row->name.data, "blk.", 4) == 0;
    return sfti_import_add(f->im, &item);
}

static sft_code add_rows(gguf_file *f) {
    uint64_t data, end;
    if (!sfti_align_up(f->cursor.at, f->pairs.alignment, &data) || !sfti_add(data, f->end, &end))
        return sfti_fail_byte(f->im->err, SFT_SIZE_OVERFLOW, f->cursor.at,
                              "expected data of less than 2^64 bytes, found more");
    for (size_t i = 0; i < f->count; i++) {
        sft_code code = add_row(f, &f->rows[i], data);
        if (code) return code;
    }
    if (f->count == 0 || f->source->size <= end) return SFT_OK;
    return sfti_import_leave(f->im, SFT_IMPORT_LEFT_RECORD, (sft_span){ NULL, 0 }, 1,
                             f->source->size - end, "bytes after the last tensor");
}

static sft_code read_file(gguf_model *model, const sft_source *source, bool first,
                          sfti_gguf_pairs *pairs) {
    gguf_file f = { .model = model, .im = model->im, .source = source };
    uint64_t tensors, count;
    sft_code code = sfti_gguf_begin(&f.cursor, model->im, source);
    if (!code) code = read_version(&f);
    if (!code) code = sfti_gguf_number(&f.cursor, 8, &tensors);
    if (!code) code = sfti_gguf_number(&f.cursor, 8, &count);
    if (!code) code = sfti_gguf_read_pairs(&f.cursor, count, first, &f.pairs);
    if (!code) code = read_tensor_rows(&f, tensors);
    if (!code) code = add_rows(&f);
    model->tensors += f.count;
    *pairs = f.pairs;
    return code;
}

/* ── Several files ── */

#define PART_SUFFIX "-00001-of-00001.gguf"

/* The name of part `number`, from 0, beside the first, which is named like it. */
static sft_code name_split(gguf_model *model, const sfti_gguf_pairs *first, uint64_t number,
                          sft_span *out) {
    char suffix[sizeof PART_SUFFIX];
    sft_span name = model->im->name;
    size_t len = sizeof PART_SUFFIX - 1;
    (void)snprintf(suffix, sizeof suffix, "-00001-of-%05u.gguf", (unsigned)first->split_count);
    if (name.len < len || memcmp(name.data + name.len - len, suffix, len) != 0)
        return sfti_fail(model->im->err, SFT_FOREIGN_KIND,
                         "expected a path that ends in %s, to find the other parts by, found %.*s",
                         suffix, SFTI_CLIP(name, 200));
    char *part = sfti_arena_copy(&model->im->arena, name.data, name.len);
    if (!part) return sfti_fail_memory(model->im->err, name.len);
    (void)snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", (unsigned)number + 1,
                   (unsigned)first->split_count);
    memcpy(part + name.len - len, suffix, len);
    *out = (sft_span){ part, name.len };
    return SFT_OK;
}

static sft_code read_part(gguf_model *model, const sfti_gguf_pairs *first, uint64_t number) {
    const sft_source *source;
    sfti_gguf_pairs pairs;
    sft_span name;
    sft_code code = name_split(model, first, number, &name);
    if (!code) code = sfti_import_file(model->im, name, &source);
    if (code) return code;
    sfti_import_begin_shard(model->im, (uint32_t)number);
    code = read_file(model, source, false, &pairs);
    if (code) {
        sft_error *err = model->im->err;
        if (!err || err->offset == SFT_NO_OFFSET) return code;
        sft_error found = *err; /* its offset is that of a byte in this part */
        sfti_error_text(err, "%s, in %.*s", found.message, SFTI_CLIP(name, 200));
        return code;
    }
    if (pairs.split_number == number && pairs.split_count == first->split_count) return SFT_OK;
    return sfti_fail(model->im->err, SFT_FOREIGN_AMBIGUOUS,
                     "expected part %llu of %llu in %.*s, found part %llu of %llu",
                     (unsigned long long)number + 1, (unsigned long long)first->split_count,
                     SFTI_CLIP(name, 200), (unsigned long long)pairs.split_number + 1,
                     (unsigned long long)pairs.split_count);
}

static sft_code read_parts(gguf_model *model, const sfti_gguf_pairs *first) {
    sft_code code = SFT_OK;
    if (first->split_number != 0 || first->split_count > 99999)
        return sfti_fail(model->im->err, SFT_FOREIGN_KIND, "expected part 1 of at most 99999, "
                         "which names the others, found part %llu of %llu",
                         (unsigned long long)first->split_number + 1,
                         (unsigned long long)first->split_count);
    for (uint64_t number = 1; !code && number < first->split_count; number++)
        code = read_part(model, first, number);
    if (code || first->split_tensors == UINT64_MAX || first->split_tensors == model->tensors)
        return code;
    return sfti_fail(model->im->err, SFT_FOREIGN_SYNTAX,
                     "expected %llu tensors in all parts (split.tensors.count), found %llu",
                     (unsigned long long)first->split_tensors, (unsigned long long)model->tensors);
}

/* ── What other keys and tensors say of a tensor ── */

static bool count_gguf_elements(const uint64_t *shape, uint32_t rank, uint64_t *out) {
    *out = 1;
    for (uint32_t d = 0; d < rank; d++)
        if (!sfti_mul(*out, shape[d], out)) return false;
    return true;
}

static sft_code restore_shape(sfti_import *im, const sfti_names *names,
                              const sfti_gguf_shape *shape) {
    uint32_t at = sfti_names_find(names, shape->name);
    if (at == SFTI_NO_NAME)
        return sfti_import_leave(im, SFT_IMPORT_LEFT_VALUE, shape->key, 1,
                                 8 * (uint64_t)shape->rank, "the shape of no tensor that is read");
    sfti_item *item = &im->items.at[at];
    uint64_t elements, own;
    (void)count_gguf_elements(item->shape, item->rank, &own); /* read_dimensions bounds it */
    bool fits = count_gguf_elements(shape->dims, shape->rank, &elements);
    if (!fits)
        return sfti_fail_tensor(im->err, SFT_SIZE_OVERFLOW, shape->at, shape->name,
                                "expected an original shape of less than 2^64 elements, found "
                                "more");
    if (elements != own)
        return sfti_fail_tensor(im->err, SFT_FOREIGN_SIZE, shape->at, shape->name,
                                "expected an original shape (comfy.gguf.orig_shape) of %llu "
                                "elements, as it has, found one of %llu",
                                (unsigned long long)own, (unsigned long long)elements);
    item->shape = shape->dims;
    item->rank = shape->rank;
    return SFT_OK;
}

/* "M.scale": llama.cpp multiplies what "M.weight" makes by it. */
static sft_code find_gguf_factors(sfti_import *im, const sfti_names *names) {
    static const char end[] = ".scale", weight[] = ".weight";
    sfti_item *items = im->items.at;
    size_t len = sizeof end - 1;
    for (size_t i = 0; i < im->items.count; i++) {
        sft_span name = items[i].name, stem = { name.data, name.len - (name.len < len ? 0 : len) };
        if (stem.len == name.len || memcmp(name.data + stem.len, end, len) != 0) continue;
        char *of = sfti_arena_join(&im->arena, stem, sft_span_cstr(weight));
        if (!of) return sfti_fail_memory(im->err, name.len);
        uint32_t at = sfti_names_find(names, (sft_span){ of, stem.len + sizeof weight - 1 });
        if (at != SFTI_NO_NAME && items[at].codec) items[at].factor = name;
    }
    return SFT_OK;
}

static sft_code relate_tensors(sfti_import *im, const sfti_gguf_pairs *pairs) {
    size_t count = im->items.count;
    sft_code code = SFT_OK;
    sfti_names names;
    if (!sfti_names_draw(&names, count, sfti_item_name, im->items.at, &im->arena))
        return sfti_fail_memory(im->err, count);
    for (size_t i = 0; i < count; i++)
        (void)sfti_names_add(&names, im->items.at[i].name, (uint32_t)i);
    for (size_t i = 0; !code && i < pairs->shape_count; i++)
        code = restore_shape(im, &names, &pairs->shapes[i]);
    return code ? code : find_gguf_factors(im, &names);
}

sft_code sfti_read_gguf(sfti_import *im) {
    gguf_model *model = sfti_arena_take(&im->arena, sizeof *model);
    sfti_gguf_pairs first;
    if (!model) return sfti_fail_memory(im->err, sizeof *model);
    memset(model, 0, sizeof *model);
    model->im = im;
    sft_code code = read_file(model, im->input, true, &first);
    if (!code && first.split_count > 1) code = read_parts(model, &first);
    if (!code) code = relate_tensors(im, &first);

    if (code) return code;
    const sft_span whole = { NULL, 0 };
    if (model->renamed && first.is_model)
        code = sfti_import_leave(model->im, SFT_IMPORT_LEFT_NOTE, whole, 1, 0,
                                 "names and layouts are those of GGUF, which transformers does "
                                 "not load");
    if (!code && model->beyond)
        code = sfti_import_leave(model->im, SFT_IMPORT_LEFT_NOTE, whole, model->beyond, 0,
                                 "tensors of over 4 dimensions or 63 bytes of name, which ggml "
                                 "refuses");
    return code;
}
