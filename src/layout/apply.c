/* Tensors of a component by the rules of its part. Tests: test_layout.c. */
#include "layout/layout.h"

#include "base/checked.h"
#include "base/error.h"
#include "os/io.h"

#include <string.h>

#define TURNED_MOST ((uint64_t)1 << 28) /* bytes of a matrix that is transposed in memory */

/* ── Parts and what they are made of ── */

static sft_code layout_segments_read(void *ctx, uint64_t offset, void *into, size_t len,
                                     size_t *got,
                              sft_error *err);

static const sft_source_vtable segments_vtable = {
    .size = sizeof(sft_source_vtable), .read = layout_segments_read
};

void sfti_layout_out_begin(sfti_layout_out *out, const sft_allocator *alloc) {
    *out = (sfti_layout_out){ .arena = { .alloc = sfti_allocator(alloc) } };
    out->source = (sft_source){ out, &segments_vtable, 0, NULL, true };
}

void sfti_layout_out_free(sfti_layout_out *out) {
    sfti_release(&out->arena.alloc, out->turned, out->turned_size);
    sfti_arena_free(&out->arena);
}

uint64_t sfti_layout_bytes(const sft_spec *spec) {
    uint64_t bits = sft_dtype_describe(spec->dtype)->bits;
    for (uint32_t i = 0; i < spec->rank; i++)
        if (!sfti_mul(bits, spec->shape[i], &bits)) return UINT64_MAX;
    return bits / 8;
}

sft_code sfti_layout_out_add(sfti_layout_out *out, sft_span prefix, sft_span name,
                         const sft_spec *spec, const sft_part *from, sft_error *err) {
    sft_part *grown = sfti_arena_grow(&out->arena, out->parts, out->count, 1, &out->room,
                                      sizeof *grown);
    char *text = sfti_arena_join(&out->arena, prefix, name);
    uint64_t *shape = sfti_arena_array(&out->arena, spec->rank, sizeof *shape);
    if (grown) out->parts = grown;
    if (!grown || !text || !shape) return sfti_fail_memory(err, name.len);
    for (uint32_t i = 0; i < spec->rank; i++) shape[i] = spec->shape[i];
    sft_part *part = &grown[out->count++];
    part->spec = (sft_spec){ { text, prefix.len + name.len }, spec->dtype, spec->rank, shape };
    part->source = from ? from->source : &out->source;
    part->begin = from ? from->begin : out->bytes;
    return SFT_OK;
}

sft_code sfti_layout_segment_add(sfti_layout_out *out, sfti_layout_segment segment,
                                 sft_error *err) {
    sfti_layout_segment *grown = sfti_arena_grow(&out->arena, out->segments, out->segment_count, 1,
                                                 &out->segment_room, sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    segment.at = out->bytes;
    out->segments = grown;
    if (segment.len == 0) return SFT_OK;
    if (!sfti_add(out->bytes, segment.len, &out->bytes)) return sfti_fail_memory(err, SIZE_MAX);
    grown[out->segment_count++] = segment;
    out->source.size = out->bytes;
    return SFT_OK;
}

static sft_code read_all(const sft_source *source, uint64_t begin, uint8_t *into, uint64_t len,
                         sft_error *err) {
    while (len > 0) {
        size_t got, n = len > (1u << 20) ? 1u << 20 : (size_t)len;
        sft_code code = sft_source_read(source, begin, into, n, &got, err);
        if (!code && got == 0)
            code = sfti_fail(err, SFT_IO_SHRUNK, "expected bytes of a tensor, found the end");
        if (code) return code;
        begin += got, into += got, len -= got;
    }
    return SFT_OK;
}

static sft_code layout_turn(sfti_layout_out *out, const sfti_layout_segment *segment,
                            sft_error *err) {
    if (out->turned_of == segment) return SFT_OK;
    sfti_release(&out->arena.alloc, out->turned, out->turned_size);
    out->turned_of = NULL;
    out->turned_size = (size_t)segment->len;
    out->turned = sfti_take(&out->arena.alloc, out->turned_size);
    uint8_t *whole = sfti_take(&out->arena.alloc, out->turned_size);
    sft_code code = out->turned && whole
                  ? read_all(segment->source, segment->begin, whole, segment->len, err)
                  : sfti_fail_memory(err, segment->len);
    size_t each = (size_t)segment->each, rows = (size_t)segment->rows;
    size_t cols = (size_t)segment->cols;
    for (size_t i = 0; !code && i < rows; i++)
        for (size_t k = 0; k < cols; k++)
            memcpy(out->turned + (k * rows + i) * each, whole + (i * cols + k) * each, each);
    sfti_release(&out->arena.alloc, whole, out->turned_size);
    if (!code) out->turned_of = segment;
    return code;
}

const sfti_layout_segment *sfti_layout_segment_at(const sfti_layout_out *out, uint64_t offset) {
    if (offset >= out->bytes) return NULL;
    size_t low = 0, high = out->segment_count;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (out->segments[mid].at <= offset) low = mid;
        else high = mid;
    }
    return &out->segments[low];
}

static sft_code layout_segments_read(void *ctx, uint64_t offset, void *into, size_t len,
                                     size_t *got,
                              sft_error *err) {
    sfti_layout_out *out = ctx;
    uint8_t *to = into;
    *got = 0;
    while (len > 0 && offset < out->bytes) {
        const sfti_layout_segment *segment = sfti_layout_segment_at(out, offset);
        uint64_t at = offset - segment->at, left = segment->len - at;
        size_t n = left < len ? (size_t)left : len;
        sft_code code = SFT_OK;
        if (!segment->source) memset(to, 0, n);
        else if (segment->rows == 0)
            code = read_all(segment->source, segment->begin + at, to, n, err);
        else if (!(code = layout_turn(out, segment, err))) memcpy(to, out->turned + at, n);
        if (code) return code;
        to += n, offset += n, len -= n, *got += n;
    }
    return SFT_OK;
}

/* ── Marks ── */

static bool size_fits(sft_span size, uint64_t value) {
    char digits[24];
    size_t at = sizeof digits;
    if (size.len == 1 && *size.data == '*') return true;
    do digits[--at] = (char)('0' + value % 10); while (value /= 10);
    return sft_span_equal(size, (sft_span){ digits + at, sizeof digits - at });
}

/* NAME, !NAME or NAME[3072,*] */
static bool mark_holds(sft_span mark, const sfti_names *names, const sft_part *parts) {
    bool denied = mark.len > 0 && *mark.data == '!';
    if (denied) mark.data++, mark.len--;
    const char *bracket = memchr(mark.data, '[', mark.len);
    size_t len = bracket ? (size_t)(bracket - mark.data) : mark.len;
    uint32_t found = sfti_names_find(names, (sft_span){ mark.data, len });
    if (found == SFTI_NO_NAME || !bracket) return (found != SFTI_NO_NAME) != denied;
    const sft_spec *spec = &parts[found].spec;
    const char *at = bracket + 1, *end = mark.data + mark.len - 1;
    uint32_t axis = 0;
    bool fits = true;
    for (; at <= end; axis++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        sft_span size = { at, (size_t)((comma ? comma : end) - at) };
        fits = fits && axis < spec->rank && size_fits(size, spec->shape[axis]);
        at += size.len + 1;
    }
    return (fits && axis == spec->rank) != denied;
}

bool sfti_layout_marks_hold(sft_span marks, const sfti_names *names, const sft_part *parts) {
    sft_span mark;
    while (sfti_layout_next(&marks, &mark))
        if (!mark_holds(mark, names, parts)) return false;
    return true;
}

bool sfti_layout_has_marks(const sfti_naming_part *part, sfti_side side, const sfti_names *names,
                           const sft_part *parts) {
    return part->marks[side].len > 0 && sfti_layout_marks_hold(part->marks[side], names, parts);
}

/* ── Rules ── */

typedef struct apply_run {
    const sfti_layout_text *layouts;
    const sfti_naming_part *part;
    const sft_part *parts; /* whose names have no prefix */
    size_t count;
    sft_span prefix;
    sfti_layout_out *out;
    sfti_names names;  /* of parts */
    sfti_names made;   /* of wholes that were made of pieces */
    struct apply_group { sft_span name; } *groups;
    size_t group_count;
    sft_error *err;
} apply_run;

static sft_span group_name(const void *ctx, uint32_t i) {
    return ((const struct apply_group *)ctx)[i].name;
}

static sft_code apply_refuse(const apply_run *run, const sft_part *part, const char *expected) {
    char shape[160];
    (void)sft_shape_text(part->spec.shape, part->spec.rank, shape, sizeof shape);
    return sfti_fail_tensor(run->err, SFT_SIZE_MISMATCH, SFT_NO_OFFSET, part->spec.name,
                            "expected %s, found %s %s", expected,
                            sft_dtype_describe(part->spec.dtype)->name, shape);
}

bool sfti_layout_divide(const sfti_layout_rule *rule, uint64_t rows, uint64_t cols, uint64_t *out) {
    uint64_t told = 0, shares = 0;
    for (unsigned i = 0; i < rule->count; i++) {
        uint64_t some;
        if (rule->sizes[i] == 0) shares++;
        else if (cols == 0) return false; /* not known */
        if (!sfti_mul(rule->sizes[i], cols, &some) || !sfti_add(told, some, &told)) return false;
    }
    if (told > rows || (shares == 0 && told != rows)) return false;
    if (shares > 0 && ((rows - told) % shares != 0 || rows == told)) return false;
    for (unsigned i = 0; i < rule->count; i++)
        out[i] = rule->sizes[i] ? rule->sizes[i] * cols : (rows - told) / shares;
    return true;
}

static bool is_value(const sfti_layout_match *match) {
    sft_span rest = match->rest;
    return rest.len == 0 || sft_span_equal(rest, sft_span_cstr(".weight"))
        || sft_span_equal(rest, sft_span_cstr(".bias"));
}

/* Columns of a matrix, or of the weight beside a bias; 0: not known. */
static uint64_t columns_of(const apply_run *run, const sft_part *part) {
    char name[SFTI_LAYOUT_NAME];
    const sft_spec *spec = &part->spec;
    uint64_t cols = 1;
    if (spec->rank < 2) {
        size_t len = spec->name.len;
        if (len < 5 || len + 2 > sizeof name || memcmp(spec->name.data + len - 5, ".bias", 5) != 0)
            return 0;
        memcpy(name, spec->name.data, len - 4);
        memcpy(name + len - 4, "weight", 6);
        uint32_t found = sfti_names_find(&run->names, (sft_span){ name, len + 2 });
        if (found == SFTI_NO_NAME || run->parts[found].spec.rank < 2) return 0;
        spec = &run->parts[found].spec;
    }
    for (uint32_t i = 1; i < spec->rank; i++)
        if (!sfti_mul(cols, spec->shape[i], &cols)) return 0;
    return cols;
}

static bool row_bytes(const sft_spec *spec, uint64_t *out) {
    uint64_t bits = sft_dtype_describe(spec->dtype)->bits;
    for (uint32_t i = 1; i < spec->rank; i++)
        if (!sfti_mul(bits, spec->shape[i], &bits)) return false;
    *out = bits / 8;
    return spec->rank > 0 && bits % 8 == 0;
}

static sft_code add_shaped(apply_run *run, sft_span name, const sft_part *from, bool composed,
                           uint32_t rank, const uint64_t *shape) {
    sft_spec spec = from->spec;
    spec.rank = rank;
    spec.shape = shape;
    return sfti_layout_out_add(run->out, run->prefix, name, &spec, composed ? NULL : from,
                               run->err);
}

/* A rule with one name on both sides. */
static sft_code apply_one(apply_run *run, const sfti_layout_rule *rule, sfti_side to,
                          const sft_part *part, sft_span name) {
    const sft_spec *spec = &part->spec;
    uint64_t shape[8], each, rows = spec->rank ? spec->shape[0] : 0;
    uint64_t bits = sft_dtype_describe(spec->dtype)->bits;
    sfti_layout_op op = rule->op;
    bool forth = to == SFTI_DIFFUSERS;
    if (spec->rank > 5) return apply_refuse(run, part, "at most 5 dimensions");
    for (uint32_t i = 0; i < spec->rank; i++) shape[i] = spec->shape[i];
    if (op == SFTI_OP_SWAP_PAIR && rows / 2 != columns_of(run, part)) op = SFTI_OP_SAME;
    switch (op) {
    case SFTI_OP_SAME: break;
    case SFTI_OP_SWAP: case SFTI_OP_SWAP_PAIR:
        if (rows % 2 || !row_bytes(spec, &each))
            return apply_refuse(run, part, "an even number of rows of whole bytes");
        sft_code code = add_shaped(run, name, part, true, spec->rank, shape);
        for (uint64_t half = 2; !code && half-- > 0;)
            code = sfti_layout_segment_add(run->out, (sfti_layout_segment){
                .len = rows / 2 * each, .source = part->source,
                .begin = part->begin + half * (rows / 2) * each }, run->err);
        return code;
    case SFTI_OP_TRANSPOSE:
        if (spec->rank != 2 || bits % 8 || sfti_layout_bytes(spec) > TURNED_MOST)
            return apply_refuse(run, part, "a matrix of whole bytes, at most 256 MiB");
        shape[0] = spec->shape[1], shape[1] = spec->shape[0];
        code = add_shaped(run, name, part, true, 2, shape);
        if (code) return code;
        return sfti_layout_segment_add(run->out, (sfti_layout_segment){
            .len = sfti_layout_bytes(spec), .source = part->source, .begin = part->begin,
            .rows = spec->shape[0], .cols = spec->shape[1], .each = bits / 8 }, run->err);
    case SFTI_OP_SQUEEZE:
        if (forth && (spec->rank != 4 || shape[2] != 1 || shape[3] != 1))
            return apply_refuse(run, part, "a convolution of 1 x 1");
        if (!forth && spec->rank != 2) return apply_refuse(run, part, "a matrix");
        shape[2] = shape[3] = 1;
        return add_shaped(run, name, part, false, forth ? 2 : 4, shape);
    case SFTI_OP_FLAT:
        if (forth && (spec->rank != 4 || shape[0] != 1 || shape[2] != 1 || shape[3] != 1))
            return apply_refuse(run, part, "a shape of [1, n, 1, 1]");
        if (!forth && spec->rank != 1) return apply_refuse(run, part, "a vector");
        if (forth) return add_shaped(run, name, part, false, 1, spec->shape + 1);
        return add_shaped(run, name, part, false, 4, (uint64_t[]){ 1, shape[0], 1, 1 });
    case SFTI_OP_FOLD:
        if (forth && (spec->rank != 1 || rows % rule->number))
            return apply_refuse(run, part, "a vector that divides into these rows");
        if (!forth && (spec->rank != 2 || rows != rule->number))
            return apply_refuse(run, part, "a matrix of these rows");
        /* the header's product has no overflow */
        if (!forth && sfti_never(!sfti_mul(rows, shape[1], &shape[0])))
            return apply_refuse(run, part, "a smaller matrix");
        if (!forth) return add_shaped(run, name, part, false, 1, shape);
        shape[0] = rule->number, shape[1] = rows / rule->number;
        return add_shaped(run, name, part, false, 2, shape);
    }
    return add_shaped(run, name, part, false, spec->rank, shape);
}

/* Rows of one tensor become those of several. */
static sft_code apply_split(apply_run *run, const sfti_layout_rule *rule, const sft_part *part,
                            const sfti_layout_match *match) {
    uint64_t rows[SFTI_LAYOUT_PIECES], each, shape[8];
    char name[SFTI_LAYOUT_NAME];
    sft_part piece = *part;
    const sft_spec *spec = &part->spec;
    if (spec->rank == 0 || spec->rank > 5 || !row_bytes(spec, &each)
        || !sfti_layout_divide(rule, spec->shape[0], columns_of(run, part), rows))
        return apply_refuse(run, part, "rows that divide into those of the layers that it holds");
    for (uint32_t i = 0; i < spec->rank; i++) shape[i] = spec->shape[i];
    uint32_t rank = spec->rank;
    if (rule->op == SFTI_OP_SQUEEZE) {
        if (rank != 4 || shape[2] != 1 || shape[3] != 1)
            return apply_refuse(run, part, "a convolution of 1 x 1");
        rank = 2;
    }
    for (unsigned i = 0; i < rule->count; i++) {
        size_t len = sfti_layout_make(rule->pieces[i], match, name, sizeof name);
        if (len == 0) return apply_refuse(run, part, "a shorter name");
        shape[0] = rows[i];
        sft_code code = add_shaped(run, (sft_span){ name, len }, &piece, false, rank, shape);
        if (code) return code;
        piece.begin += rows[i] * each;
    }
    return SFT_OK;
}

/* And back. `part` is one of the pieces; the whole is made once. */
static sft_code apply_join(apply_run *run, const sfti_layout_rule *rule, const sft_part *part,
                           const sfti_layout_match *match) {
    uint64_t rows[SFTI_LAYOUT_PIECES], each, shape[8] = { 0 };
    const sft_part *pieces[SFTI_LAYOUT_PIECES];
    char name[SFTI_LAYOUT_NAME];
    size_t len = sfti_layout_make(rule->original, match, name, sizeof name);
    if (len == 0) return apply_refuse(run, part, "a shorter name");
    if (sfti_names_find(&run->made, (sft_span){ name, len }) != SFTI_NO_NAME) return SFT_OK;
    char *kept = sfti_arena_copy(&run->out->arena, name, len);
    if (!kept) return sfti_fail_memory(run->err, len);
    struct apply_group *group = &run->groups[run->group_count];
    group->name = (sft_span){ kept, len };
    (void)sfti_names_add(&run->made, group->name, (uint32_t)run->group_count++);
    for (unsigned i = 0; i < rule->count; i++) {
        len = sfti_layout_make(rule->pieces[i], match, name, sizeof name);
        uint32_t at = sfti_names_find(&run->names, (sft_span){ name, len });
        if (at == SFTI_NO_NAME)
            return sfti_fail_tensor(run->err, SFT_INCOMPLETE, SFT_NO_OFFSET, part->spec.name,
                                    "expected %.*s beside it, of one tensor of the other layout, "
                                    "found none", (int)len, name);
        pieces[i] = &run->parts[at];
        const sft_spec *spec = &pieces[i]->spec;
        bool same = spec->rank > 0 && spec->rank <= 5 && spec->rank == part->spec.rank
                 && spec->dtype == part->spec.dtype;
        for (uint32_t k = 1; same && k < spec->rank; k++)
            same = spec->shape[k] == part->spec.shape[k];
        if (!same || !sfti_add(shape[0], spec->shape[0], &shape[0]))
            return apply_refuse(run, pieces[i],
                                "the dtype and columns of the others of one tensor of "
                          "the other layout");
    }
    if (!row_bytes(&part->spec, &each)
        || !sfti_layout_divide(rule, shape[0], columns_of(run, part), rows))
        return apply_refuse(run, part, "rows that are those of one tensor of the other layout");
    for (unsigned i = 0; i < rule->count; i++)
        if (pieces[i]->spec.shape[0] != rows[i])
            return apply_refuse(run, pieces[i],
                                "as many rows as its place in the other layout has");
    uint32_t rank = part->spec.rank;
    for (uint32_t k = 1; k < rank; k++) shape[k] = part->spec.shape[k];
    if (rule->op == SFTI_OP_SQUEEZE) {
        if (rank != 2) return apply_refuse(run, part, "a matrix");
        shape[2] = shape[3] = 1;
        rank = 4;
    }
    sft_code code = add_shaped(run, group->name, part, true, rank, shape);
    for (unsigned i = 0; !code && i < rule->count; i++)
        code = sfti_layout_segment_add(run->out, (sfti_layout_segment){
            .len = rows[i] * each, .source = pieces[i]->source, .begin = pieces[i]->begin },
            run->err);
    return code;
}

static sft_code apply_tensor(apply_run *run, sfti_side to, const sft_part *part, bool *unmatched) {
    const sfti_naming_part *of = run->part;
    const sfti_layout_rule *rule;
    sfti_layout_match match;
    char name[SFTI_LAYOUT_NAME];
    size_t at = 0;
    while ((rule = sfti_layout_next_rule(run->layouts, &of, &at))) {
        unsigned piece = 0;
        bool matches = false, forth = to == SFTI_DIFFUSERS;
        if (rule->adapters) continue;
        if (forth) matches = sfti_layout_matches(rule->original, part->spec.name, false, &match);
        else if (rule->when.len > 0 && sfti_names_find(&run->names, rule->when) == SFTI_NO_NAME)
            continue;
        for (; !forth && piece < rule->count && !matches;) {
            matches = sfti_layout_matches(rule->pieces[piece], part->spec.name, false, &match);
            if (!matches) piece++;
        }
        if (!matches) continue;
        bool plain = rule->count == 1 && rule->op == SFTI_OP_SAME;
        if (!plain && !is_value(&match))
            return apply_refuse(run, part,
                                "weights that are not quantised, for the other layout has "
                          "them in another shape");
        run->out->kept += rule->kept;
        if (rule->count > 1)
            return forth ? apply_split(run, rule, part, &match)
                         : apply_join(run, rule, part, &match);
        size_t len = sfti_layout_make(forth ? rule->pieces[0] : rule->original, &match, name,
                                      sizeof name);
        if (len == 0) return apply_refuse(run, part, "a shorter name");
        return apply_one(run, rule, to, part, (sft_span){ name, len });
    }
    *unmatched = true;
    return SFT_OK;
}

/* Whether a rule has that name on the side. */
static bool is_known(const apply_run *run, sfti_side side, sft_span name) {
    const sfti_naming_part *of = run->part;
    const sfti_layout_rule *rule;
    sfti_layout_match match;
    size_t at = 0;
    while ((rule = sfti_layout_next_rule(run->layouts, &of, &at))) {
        if (rule->adapters) continue;
        if (side == SFTI_ORIGINAL && sfti_layout_matches(rule->original, name, false, &match))
            return true;
        for (unsigned i = 0; side == SFTI_DIFFUSERS && i < rule->count; i++)
            if (sfti_layout_matches(rule->pieces[i], name, false, &match)) return true;
    }
    return false;
}

/* Two tensors that would have one name. */
static sft_code refuse_twice(const apply_run *run, size_t first, sfti_arena *work) {
    const sft_part *made = run->out->parts + first;
    size_t count = run->out->count - first;
    sfti_names names;
    if (!sfti_layout_names(made, count, work, &names))
        return sfti_fail_memory(run->err, count);
    for (uint32_t i = 0; i < count; i++)
        if (sfti_names_find(&names, made[i].spec.name) != i)
            return sfti_fail_tensor(run->err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET,
                                    made[i].spec.name, "expected one tensor that becomes it in "
                                    "the other layout, found two");
    return SFT_OK;
}

sft_code sfti_layout_apply(const sfti_layout_text *layouts, const sfti_naming_part *part,
                           sfti_side from, sfti_side to, const sft_part *parts, size_t count,
                           sft_span prefix, sfti_layout_out *out, bool *unmatched,
                           sft_error *err) {
    sfti_arena work = { .alloc = out->arena.alloc };
    apply_run run = { .layouts = layouts, .part = part, .parts = parts, .count = count,
                      .prefix = prefix, .out = out, .err = err };
    run.groups = sfti_arena_array(&work, count, sizeof *run.groups);
    size_t first = out->count;
    sft_code code = SFT_OK;
    if (!run.groups || !sfti_layout_names(parts, count, &work, &run.names)
        || !sfti_names_draw(&run.made, count, group_name, run.groups, &work))
        code = sfti_fail_memory(err, count * sizeof *run.groups);
    for (size_t i = 0; !code && i < count; i++) {
        unmatched[i] = from == to && !is_known(&run, from, parts[i].spec.name);
        if (from != to) code = apply_tensor(&run, to, &parts[i], &unmatched[i]);
        else if (!unmatched[i])
            code = sfti_layout_out_add(out, prefix, parts[i].spec.name, &parts[i].spec, &parts[i],
                                       err);
    }
    if (!code) code = refuse_twice(&run, first, &work);
    sfti_arena_free(&work);
    return code;
}
