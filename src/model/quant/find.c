/* Recognising how a tensor is quantised. Tests: test_quant.c. */
#include "base/endian.h"
#include "base/error.h"
#include "os/io.h"
#include "quant/fit.h"

#include <string.h>

/* ── Names ── */

static sft_span name_at(const void *ctx, uint32_t entry) {
    return sft_set_tensor_at(ctx, entry)->name;
}

sft_code sfti_quant_begin(sfti_quant_search *search, const sft_set *set,
                          const sfti_declared *declared, sfti_arena *arena, sft_error *err) {
    size_t count = sft_set_tensor_count(set);
    *search = (sfti_quant_search){ .set = set, .declared = declared, .arena = arena };
    search->taken = sfti_arena_array(arena, count, 2);
    if (!search->taken || !sfti_names_draw(&search->names, count, name_at, set, arena))
        return sfti_fail_memory(err, count * sizeof(sfti_slot));
    if (count > 0) memset(search->taken, 0, 2 * count);
    search->codes = search->taken + count;
    for (size_t i = 0; i < count; i++)
        (void)sfti_names_add(&search->names, sft_set_tensor_at(set, i)->name, (uint32_t)i);
    return sfti_quant_look(search, err);
}

/* ── Which layout ── */

static bool has_dtype(const sfti_layout_part *part, const sft_tensor *tensor) {
    return part->role >= SFTI_PART_SHAPE || part->dtypes >> tensor->dtype & 1;
}

/* Whether names and dtypes are those of the layout. */
static bool match_layout(const sfti_quant_search *search, const sfti_quant_layout *layout,
                         uint32_t i, sfti_match *out) {
    const sft_tensor *tensor = sft_set_tensor_at(search->set, i);
    sft_span lacks = { "", 0 }, codes = layout->parts[0].names;
    bool plain = sft_span_equal(codes, sft_span_cstr("*"))
              || sft_span_equal(codes, sft_span_cstr(".weight"));
    bool is_matrix = tensor->rank > 1 && sfti_quant_has(tensor)
                  && sfti_name_ends(tensor->name, ".weight");
    bool fits = true, some = plain ? out->told && is_matrix
                                   : out->told || (codes.len > 0 && *codes.data == '.');
    out->layout = layout;
    out->lacks = lacks;
    out->alien = NONE;
    if (layout->count == 0 || !sfti_layout_stem(layout, tensor->name, &out->stem)) return false;
    for (size_t k = 0; k < layout->count; k++) {
        const sfti_layout_part *part = &layout->parts[k];
        out->at[k] = k == 0 ? i : sfti_quant_named(search, part->names, out->stem);
        if (k > 0 && out->at[k] == i) out->at[k] = NONE;
        if (out->at[k] == NONE) {
            if (!part->optional && part->role != SFTI_PART_DROP) lacks = part->names;
        } else {
            bool has = has_dtype(part, sft_set_tensor_at(search->set, out->at[k]));
            if (!has && fits) out->alien = (uint32_t)k;
            fits = fits && has;
            some = some || (k > 0 && part->role != SFTI_PART_DROP);
        }
    }
    if (some && has_dtype(&layout->parts[0], tensor)) out->lacks = lacks;
    return fits && !lacks.len;
}

static sft_code fail_lacks(const sft_tensor *t, const sfti_match *match, sft_error *err) {
    char buffer[SFTI_PART_NAME];
    sft_span names = match->lacks, one = { "", 0 };
    (void)sfti_layout_word(&names, '|', &one);
    one = sfti_layout_name(one, match->stem, buffer);
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                            "expected \"%.*s\" beside it, found none", SFTI_CLIP(one, 200));
}

/* A tensor of another dtype than its part of the layout has. */
static sft_code fail_alien(const sfti_quant_search *search, const sfti_match *match,
                           sft_error *err) {
    const sft_tensor *t = sft_set_tensor_at(search->set, match->at[match->alien]);
    uint32_t dtypes = match->layout->parts[match->alien].dtypes;
    char text[96] = "";
    size_t used = 0;
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
        const char *name = sft_dtype_describe((sft_dtype)i)->name;
        size_t len = strlen(name), more = used > 0 ? 4 : 0;
        if (!(dtypes >> i & 1) || used + more + len >= sizeof text) continue;
        memcpy(text + used, " or ", more);
        memcpy(text + used + more, name, len + 1);
        used += more + len;
    }
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                            "expected %s, as \"%.*s\" has it, found %s", text,
                            SFTI_CLIP(match->layout->id, 100), sft_dtype_describe(t->dtype)->name);
}

/* ── All together ── */

static sft_code check_book(const sfti_quant_part *book, uint32_t bits, sft_error *err) {
    uint64_t count = UINT64_C(1) << bits;
    if (!book->tensor || (book->tensor->rank == 1 && book->tensor->shape[0] == count))
        return SFT_OK;
    return sfti_fit_shape(book->tensor, &count, 1, err);
}

/* Zero points that are declared, or are not needed. */
static sft_code check_zeros(const sfti_quant_fit *f, sft_error *err) {
    const sft_tensor *t = f->q->parts[0].tensor;
    bool needed = false;
    if (sft_dtype_describe(t->dtype)->kind == SFT_KIND_FLOAT) return SFT_OK;
    for (size_t k = 0; k < f->q->layout->count; k++)
        needed = needed || f->q->layout->parts[k].role == SFTI_PART_ZERO;
    if (!needed || f->scoped || !f->search->declared->asymmetric
        || sfti_fit_role(f, SFTI_PART_ZERO, NULL))
        return SFT_OK;
    return sfti_fit_fail(t, "zero points, as the quantization_config says (symmetric)", "none",
                         err);
}

static sft_code check_groups(const sfti_quant_fit *f, sft_error *err) {
    const sfti_quant *q = f->q;
    const sft_tensor *tensor = q->group.tensor;
    bool lost = f->search->declared->disordered && !f->scoped && q->count > 1
             && q->parts[1].columns > 1;
    for (size_t k = 0; !tensor && lost && k < q->layout->count; k++)
        if (q->layout->parts[k].role == SFTI_PART_GROUP)
            return sfti_fit_fail(q->parts[0].tensor, "a group for each column (g_idx), as "
                                 "desc_act or actorder says", "none", err);
    if (!tensor) return SFT_OK;
    if (tensor->rank != 1 || tensor->shape[0] != q->columns)
        return sfti_fit_shape(tensor, &q->columns, 1, err);
    if (q->parts[1].columns > q->columns || q->parts[1].columns == 0)
        return sfti_fit_shape(q->parts[1].tensor, (uint64_t[]){ q->rows, q->columns }, 2, err);
    if (q->columns <= SFTI_GROUPED_MOST) return SFT_OK;
    return sfti_fit_fail(tensor, "at most 262144 columns with groups", "more", err);
}

/* Scales of powers of two for blocks of 32 are also stored in tiles of 128 rows and 4 columns,
 * padded to whole ones. Whether their shape is that of such tiles, whatever else it is, too. */
static bool may_be_tiled(const sfti_quant *q) {
    const sft_tensor *s = q->parts[1].tensor;
    if (s->dtype != SFT_F8_E8M0 || s->rank < 2 || q->rows == 0 || q->columns == 0) return false;
    const uint64_t *shape = s->shape + s->rank - 2;
    return shape[0] % 128 == 0 && shape[0] / 128 == (q->rows - 1) / 128 + 1 && shape[1] % 4 == 0
        && shape[1] / 4 == (q->columns - 1) / 128 + 1;
}

/* Whether all zero points, less what is added to them, are half the range. */
static sft_code are_middle(const sfti_quant_fit *f, bool *out, sft_error *err) {
    const sfti_quant *q = f->q;
    uint8_t bytes[4096];
    *out = true;
    for (size_t k = 1; k < q->count; k++) {
        const sfti_quant_part *part = &q->parts[k];
        if (!part->how->middle || f->match->told) continue;
        uint32_t half = (1u << part->bits) / 2 - part->how->plus, at = 0;
        size_t size = part->line_bytes < sizeof bytes ? (size_t)part->line_bytes : sizeof bytes;
        sft_code code = sft_read_bytes(part->file, part->tensor->offset, bytes, size, err);
        if (code) return code;
        for (; (at + 1) * part->bits <= 8 * size && at < part->rows; at++) {
            uint32_t bit = at * part->bits, two = bytes[bit / 8];
            if (bit % 8 + part->bits > 8) two |= (uint32_t)bytes[bit / 8 + 1] << 8;
            *out = *out && (two >> bit % 8 & ((1u << part->bits) - 1)) == half;
        }
    }
    return SFT_OK;
}

/* Whether the first codes of elements of 8 bits have as few bits as are told: others may be two in
 * an element. */
static sft_code check_wider(const sfti_quant_fit *f, sft_error *err) {
    const sfti_declared *d = f->search->declared;
    const sfti_quant_part *codes = &f->q->parts[0];
    uint32_t widths = f->scoped ? 0 : d->widths, most = 8;
    uint8_t bytes[4096];
    for (size_t i = 0; f->scoped && i < d->scope_count; i++)
        if (d->scopes[i].meant || !d->matching->sure) widths |= d->scopes[i].widths;
    if (!codes->how->wider || !f->match->told || !widths || codes->bits != 8) return SFT_OK;
    while (most > 0 && !(widths >> most & 1)) most--;
    uint64_t all = codes->tensor->end - codes->tensor->begin;
    size_t size = all < sizeof bytes ? (size_t)all : sizeof bytes;
    if (most == 8) return SFT_OK;
    sft_code code = sft_read_bytes(codes->file, codes->tensor->offset, bytes, size, err);
    for (size_t i = 0; !code && i < size; i++)
        if ((uint8_t)(bytes[i] + (1u << most) / 2) >> most)
            code = sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, codes->tensor->name,
                                    "expected codes of %u bits, as the quantization_config tells, "
                                    "found %d", most, bytes[i] < 128 ? bytes[i] : bytes[i] - 256);
    return code;
}

/* Whether there is another tensor that changes values in some layout. */
static sft_code check_others(const sfti_quant_fit *f, sft_error *err) {
    const sfti_layouts *layouts = &f->search->declared->layouts;
    const sft_tensor *t = sfti_fit_tensor(f, 0);
    for (size_t i = 0; i < layouts->count; i++) {
        const sfti_quant_layout *other = &layouts->rows[i];
        sft_span stem;
        if (i > 0 && !sfti_layout_stem(other, t->name, &stem)) continue;
        if (i == 0) stem = f->match->stem;
        for (size_t k = 0; k < other->count; k++) {
            sft_span names = other->parts[k].names, one;
            if (other->parts[k].role == SFTI_PART_DROP || (i > 0 && k == 0)) continue;
            while (sfti_layout_word(&names, '|', &one)) {
                uint32_t at = sfti_quant_named(f->search, one, stem);
                if (at == NONE || at == f->match->at[0]) continue;
                bool ours = false;
                for (size_t p = 0; p < f->match->layout->count; p++)
                    ours = ours || f->match->at[p] == at;
                if (ours) continue;
                sft_span name = sft_set_tensor_at(f->search->set, at)->name;
                return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                        "expected one scale and nothing else that changes values, "
                                        "found \"%.*s\" too", SFTI_CLIP(name, 200));
            }
        }
    }
    return SFT_OK;
}

/* A flag or number that must be 0. */
static sft_code check_zero(const sfti_quant_search *search, uint32_t i, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(search->set, i);
    uint8_t bytes[8] = { 0 };
    uint64_t size = tensor->end - tensor->begin;
    size_t some = size < sizeof bytes ? (size_t)size : sizeof bytes;
    const sft_file *file = sft_set_shard_at(search->set, sft_set_tensor_shard(search->set, i));
    sft_code code = sft_read_bytes(file, tensor->offset, bytes, some, err);
    for (size_t k = 0; !code && k < some; k++)
        if (bytes[k]) code = sfti_fit_fail(tensor, "0", "another number", err);
    return code;
}

/* Marks what belongs to the tensor. Of a layer that ComfyUI declares, that is all but the bias. */
static sft_code take_tensors(sfti_quant_fit *f, const sfti_declared_layer *layer, sft_error *err) {
    const sfti_layouts *layouts = &f->search->declared->layouts;
    const sft_tensor *t = sfti_fit_tensor(f, 0);
    size_t count = 0;
    char buffer[SFTI_PART_NAME];
    sft_span weight = sfti_layout_name(sft_span_cstr(".weight"), f->match->stem, buffer);
    if (!layer && sfti_declared_of(f->search->declared, weight, NULL))
        return sfti_fit_fail(t, "no declaration of its layer but that by which it is read",
                             "one of ComfyUI", err);
    for (size_t k = 0; k < f->match->layout->count; k++)
        if (f->match->at[k] != NONE && f->match->layout->parts[k].role != SFTI_PART_DROP) {
            uint32_t at = f->match->at[k];
            count++;
            if (k == 0 ? f->search->taken[at] == SFTI_QUANT_TAKEN : f->search->codes[at])
                return sfti_fit_fail(sft_set_tensor_at(f->search->set, at), "numbers that are as "
                                     "they are stored", "some that are quantised themselves", err);
            (k > 0 ? f->search->taken : f->search->codes)[at] = 1;
        }
    const sfti_quant_layout *from[] = { &layouts->rows[0], f->match->layout };
    for (size_t k = 0; k < 2 * SFTI_LAYOUT_PARTS; k++) {
        const sfti_quant_layout *layout = from[k / SFTI_LAYOUT_PARTS];
        const sfti_layout_part *part = &layout->parts[k % SFTI_LAYOUT_PARTS];
        sft_span names = part->names, one;
        if (k % SFTI_LAYOUT_PARTS >= layout->count || part->role != SFTI_PART_DROP) continue;
        while (sfti_layout_word(&names, '|', &one)) {
            uint32_t at = sfti_quant_named(f->search, one, f->match->stem);
            if (at == NONE) continue;
            const sft_tensor *dropped = sft_set_tensor_at(f->search->set, at);
            if (!sfti_layout_inside(part, dropped->name)) continue;
            count++;
            f->search->taken[at] = 1;
            sft_code code = part->is_zero ? check_zero(f->search, at, err) : SFT_OK;
            uint64_t bits = sfti_tensor_bits(dropped), size = (dropped->end - dropped->begin) * 8;
            uint64_t most = f->first_rows ? f->q->rows : f->q->matrices;
            if (part->is_one && size != bits && size / bits != most)
                code = sfti_fit_shape(dropped, &most, 1, err);
            if (code) return code;
        }
    }
    uint32_t bias = sfti_quant_named(f->search, sft_span_cstr(".bias"), f->match->stem);
    count += bias != NONE;
    if (!layer || layer->tensors <= count) return SFT_OK;
    sft_span other = t->name;
    for (size_t i = 0; i < sft_set_tensor_count(f->search->set); i++) {
        const sft_tensor *one = sft_set_tensor_at(f->search->set, i);
        bool ours = i == bias || f->search->taken[i] || f->search->codes[i];
        if (!ours && sfti_declared_of(f->search->declared, one->name, NULL) == layer)
            other = one->name;
    }
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                            "expected the tensors of \"%.*s\", as which it is declared, found "
                            "\"%.*s\" too", SFTI_CLIP(f->match->layout->id, 100),
                            SFTI_CLIP(other, 200));
}

/* The name of the result, which nothing else may have. */
static sft_code name_result(sfti_quant_fit *f, sft_error *err) {
    const sft_tensor *t = sfti_fit_tensor(f, 0);
    char buffer[SFTI_PART_NAME];
    f->q->spec.name = t->name;
    sft_span name = f->match->result;
    if (!name.len && !f->match->layout->result.len) return SFT_OK;
    if (!name.len)
        name = sfti_layout_name(f->match->layout->result, f->match->stem, buffer);
    if (!name.len)
        return sfti_fit_fail(t, "a name of at most 1024 bytes for its values", "a longer one", err);
    char *copy = sfti_arena_copy(f->search->arena, name.data, name.len);
    if (!copy) return sfti_fail_memory(err, name.len);
    f->q->spec.name = (sft_span){ copy, name.len };
    if (sfti_names_find(&f->search->names, f->q->spec.name) == NONE) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                            "expected no \"%.*s\", which its values would be named, found one",
                            SFTI_CLIP(name, 200));
}

/* *out: NULL if a layout that is not told does not prove to be it. */
static sft_code fit_layout(sfti_quant_search *search, const sfti_match *match,
                           const sfti_declared_layer *layer, const sfti_declared_format *format,
                           sfti_quant **out, sft_error *err) {
    const sfti_quant_layout *layout = match->layout;
    const sft_tensor *t = sft_set_tensor_at(search->set, match->at[0]);
    uint32_t rank = t->rank < 8 ? 8 : t->rank;
    sfti_quant *q = sfti_arena_take(search->arena, sizeof *q);
    sfti_quant_fit f = { .search = search, .match = match, .format = format, .q = q,
                    .group = format ? format->group : search->declared->group,
                    .strict = format != NULL };
    if (format && !format->group) f.group = layout->group;
    if (match->told && !format && !match->result.len && search->declared->scope_count > 0)
        f.scoped = true, f.group = 0;
    f.shape = sfti_arena_array(search->arena, rank, sizeof *f.shape);
    if (!q || !f.shape) return sfti_fail_memory(err, sizeof *q);
    memset(q, 0, sizeof *q);
    q->parts = sfti_arena_array(search->arena, layout->count, sizeof *q->parts);
    if (!q->parts) return sfti_fail_memory(err, sizeof *q);
    q->layout = layout;
    *out = NULL;
    if (t->rank > SFT_MAX_RANK) return sfti_fit_fail(t, "at most 64 dimensions", "more", err);
    for (size_t k = 0; k < layout->count; k++) {
        sfti_quant_part part = { .how = &layout->parts[k], .tensor = sfti_fit_tensor(&f, k) };
        if (!part.tensor) continue;
        part.file = sfti_fit_file(&f, k);
        if (part.how->role < SFTI_PART_MATRICES) q->parts[q->count++] = part;
        if (part.how->role == SFTI_PART_GROUP) q->group = part;
        if (part.how->role == SFTI_PART_BOOK) q->book = part;
        if (part.how->role == SFTI_PART_NESTED_BOOK) q->nested_book = part;
    }
    sft_code code = f.scoped ? sfti_scopes_choose(search->declared, t->name, err) : SFT_OK;
    if (code) return code;
    if (layout->parts[0].flat) code = sfti_fit_flat(&f, err);
    else if (layout->parts[0].planes) code = sfti_fit_planes(&f, err);
    else code = sfti_fit_parts(&f, err);
    if (!code) code = check_book(&q->book, q->parts[0].bits, err);
    if (!code) code = check_book(&q->nested_book, 8, err);
    if (!code) code = check_groups(&f, err);
    if (!code) code = check_zeros(&f, err);
    if (!code && f.scoped) code = sfti_scopes_check(&f, err);
    if (!code) code = check_wider(&f, err);
    search->unfit = code == SFT_CAST_DTYPE && match->told;
    if (code) return code;
    if (!match->told && q->count > 1 && may_be_tiled(q))
        return sfti_fit_fail(t, "a quantization_config, for by their shape the scales of blocks "
                             "may be in rows or in tiles", "none", err);
    if (layout->rotate && (!layout->rotate_if_told || (format && format->rotates))) {
        uint64_t n = format && format->rotated ? format->rotated : layout->rotate, power = 1;
        while (power < n && power < SFTI_ROTATE_MOST) power *= 4;
        if (power != n || n < 4 || q->columns % n != 0
            || q->spec.rank != 2)
            return sfti_fit_fail(t, "rotated groups of a power of 4, at most 1024, that divides "
                                 "the columns of a matrix", "others", err);
        q->rotate = (uint32_t)n;
    }
    bool middle;
    code = are_middle(&f, &middle, err);
    if (!code && middle) code = check_others(&f, err);
    if (!code && middle) code = name_result(&f, err);
    if (!code && middle) code = take_tensors(&f, layer, err);
    search->unfit = code == SFT_CAST_DTYPE && match->told;
    if (!code && middle) *out = q;
    return code;
}

/* A layer that ComfyUI declares. */
static sft_code find_declared(sfti_quant_search *search, uint32_t i,
                              const sfti_declared_layer *layer, sfti_quant **out, sft_error *err) {
    const sfti_declared *declared = search->declared;
    const sft_tensor *t = sft_set_tensor_at(search->set, i);
    sfti_declared_format format;
    sfti_match match = { .told = true };
    sft_code code = sfti_declared_find(declared, layer, search->arena, &format, &match.layout, err);
    if (code) return code;
    search->unfit = !sfti_quant_has(t);
    if (search->unfit)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                "expected quantised values, as which it is declared, found %s",
                                sft_dtype_describe(t->dtype)->name);
    search->unfit = !match_layout(search, match.layout, i, &match);
    if (search->unfit && match.lacks.len) return fail_lacks(t, &match, err);
    if (search->unfit && match.alien != NONE) return fail_alien(search, &match, err);
    if (search->unfit)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                "expected the tensors of \"%.*s\", as which it is declared, found "
                                "others", SFTI_CLIP(format.name, 100));
    bool agrees = declared->method.len == 0;
    for (size_t k = 1; !agrees && k < declared->layouts.count; k++) {
        const sfti_quant_layout *a = &declared->layouts.rows[k], *b = match.layout;
        sfti_match other = { .told = true };
        agrees = declared->allowed >> k & 1 && match_layout(search, a, i, &other)
              && a->parts[0].high == b->parts[0].high && !a->parts[1].tiled && !b->parts[1].tiled
              && !b->rotate;
    }
    if (!agrees)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                "expected what the quantization_config's \"%.*s\" stores, found "
                                "\"%.*s\" declared", SFTI_CLIP(declared->method, 100),
                                SFTI_CLIP(format.name, 100));
    return fit_layout(search, &match, layer, &format, out, err);
}

sft_code sfti_quant_find(sfti_quant_search *search, size_t i, sfti_quant **out, sft_error *err) {
    const sfti_declared *declared = search->declared;
    const sft_tensor *t = sft_set_tensor_at(search->set, i);
    const sfti_declared_layer *layer = sfti_declared_of(declared, t->name, NULL);
    bool told = declared->method.len > 0, unproved = false, unfit = false;
    const sft_dtype_info *info = sft_dtype_describe(t->dtype);
    bool is_plain = info->kind == SFT_KIND_FLOAT && info->bits == 8
                 && sfti_declared_plain(declared, t->name);
    sft_code code = SFT_OK;
    *out = NULL;
    search->unfit = false;
    if (layer && layer->weight == t) {
        code = find_declared(search, (uint32_t)i, layer, out, err);
        if (code == SFT_CAST_DTYPE) sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
        return code;
    }
    sft_span result, object;
    bool flattened = sfti_declared_torchao(search->set, i, search->arena, &result, &object);
    /* The first that fits; of those that do not, the first tells why. */
    sft_error what = SFT_ERROR_INIT;
    for (size_t k = 1; !*out && k < declared->layouts.count; k++) {
        const sfti_quant_layout *layout = &declared->layouts.rows[k];
        sfti_match match = { .told = told || flattened };
        sft_error own = SFT_ERROR_INIT;
        if (flattened) match.result = result;
        if (flattened ? !sfti_torchao_has(layout, object, search->arena)
            : told    ? !(declared->allowed >> k & 1) && !layout->refused.len
                      : !layout->alone && !layout->refused.len)
            continue;
        if (!sfti_quant_has(t) && !layout->refused.len && !layout->parts[0].flat) continue;
        sft_code one = SFT_OK;
        search->unfit = false;
        if (!match_layout(search, layout, (uint32_t)i, &match)) {
            if (layout->refused.len || !match.lacks.len || is_plain) continue;
            search->unfit = told;
            one = fail_lacks(t, &match, &own);
        } else if (layout->refused.len)
            one = sfti_fail_tensor(&own, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                   "expected a layout that can be read, found %.*s: %.*s",
                                   SFTI_CLIP(layout->id, 60), SFTI_CLIP(layout->refused, 200));
        else one = fit_layout(search, &match, NULL, NULL, out, &own);
        unproved = unproved || (!one && !*out);
        if (one && one != SFT_CAST_DTYPE) return sfti_fail_as(err, one, &own);
        if (one && !code) code = one, what = own, unfit = search->unfit;
    }
    search->unfit = unfit && !*out;
    if (flattened && *out) {
        code = sfti_torchao_check(search->set, i, object, *out, search->arena, &what);
        if (code) *out = NULL;
        if (code && code != SFT_CAST_DTYPE) return sfti_fail_as(err, code, &what);
    }
    if (*out) return SFT_OK;
    if (flattened && !code)
        code = sfti_fail_tensor(&what, SFT_CAST_DTYPE, SFT_NO_OFFSET, t->name,
                                "expected a class of torchao that is known, found \"%.*s\"",
                                SFTI_CLIP(object, 200));
    if (code && !unproved) (void)sfti_fail_as(err, code, &what);
    if (unproved) code = SFT_OK;
    if (!code && !*out && unproved)
        code = sfti_fit_fail(t, "a quantization_config that says whether zero points are stored "
                             "less one (checkpoint_format)", "none", err);
    if (code == SFT_CAST_DTYPE) sfti_hint(err, SFT_HINT_CHOOSE_TENSORS);
    return code;
}
