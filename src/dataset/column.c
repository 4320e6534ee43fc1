/* Columns of a dataset: compared, joined and as JSON. */
#include "base/error.h"
#include "dataset/dataset.h"

#include <stdio.h>
#include <string.h>

/* ── Shapes ── */

bool sfti_ds_shape_same(const uint64_t *a, uint32_t a_rank, const uint64_t *b, uint32_t b_rank) {
    return a_rank == b_rank &&
           (a == b || a_rank == 0 || memcmp(a, b, a_rank * sizeof *a) == 0);
}

void sfti_ds_shape_text(const uint64_t *shape, uint32_t rank, char buffer[SFTI_SHAPE_TEXT]) {
    size_t at = 1;
    buffer[0] = '[';
    for (uint32_t i = 0; i < rank && at < SFTI_SHAPE_TEXT - 32; i++)
        at += (size_t)snprintf(buffer + at, SFTI_SHAPE_TEXT - at, "%s%llu", i ? ", " : "",
                               (unsigned long long)shape[i]);
    (void)snprintf(buffer + at, SFTI_SHAPE_TEXT - at, "%s",
                   at < SFTI_SHAPE_TEXT - 32 ? "]" : ", …]");
}

/* ── Columns ── */

const sfti_ds_column *sfti_ds_column_find(const sfti_ds_column *columns, size_t count,
                                          sft_span name) {
    for (size_t i = 0; i < count; i++)
        if (sft_span_equal(columns[i].name, name)) return &columns[i];
    return NULL;
}

bool sfti_ds_columns_same(const sfti_ds_column *a, const sfti_ds_column *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (a[i].has_dtype != b[i].has_dtype || a[i].has_shape != b[i].has_shape) return false;
        if (a[i].encoding != b[i].encoding || a[i].nullable != b[i].nullable) return false;
        if (!sft_span_equal(a[i].type, b[i].type)) return false;
        if (a[i].has_dtype && a[i].dtype != b[i].dtype) return false;
        if (a[i].has_shape &&
            !sfti_ds_shape_same(a[i].shape, a[i].rank, b[i].shape, b[i].rank))
            return false;
    }
    return true;
}

static bool type_has(sft_span type, const char *word) {
    const size_t len = strlen(word);
    for (size_t i = 0; i + len <= type.len; i++)
        if (memcmp(type.data + i, word, len) == 0) return true;
    return false;
}

void sfti_ds_column_join(sfti_ds_column *to, const sfti_ds_column *other, sft_dataset_mode mode) {
    const bool shapes = to->has_shape && other->has_shape;
    const bool same =
        shapes && sfti_ds_shape_same(to->shape, to->rank, other->shape, other->rank);
    /* Lists of one length, or of one shape, in each shard, but not in all. */
    if (mode == SFT_DATASET_BATCH && shapes && !same && !to->encoding && !other->encoding &&
        sft_span_equal(to->type, other->type) && type_has(to->type, "list"))
        to->encoding = to->rank == 1 ? SFTI_ENCODING_LIST : SFTI_ENCODING_NESTED;
    to->has_dtype = to->has_dtype && other->has_dtype && to->dtype == other->dtype;
    to->has_shape = same;
    to->nullable = to->nullable || other->nullable;
    if (!sft_span_equal(to->type, other->type)) to->type = (sft_span){ NULL, 0 };
    if (to->encoding < other->encoding) to->encoding = other->encoding;
    if (to->encoding != SFTI_ENCODING_FIXED) to->has_shape = false;
    if (to->encoding == SFTI_ENCODING_NESTED) to->has_dtype = false;
}

/* ── Types ── */

/* Whether a type, not of NESTED, says more than its dtype. */
static bool type_is_logical(sft_span type) {
    static const char *const words[] = { "timestamp", "date", "time", "duration", "decimal",
                                         "fixed_size_binary" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (type_has(type, words[i])) return true;
    return false;
}

/* Whether columns of one name may have these types: the same, or numbers, text and bytes as Arrow
 * has them in several forms. */
static bool types_fit(const sfti_ds_column *a, const sfti_ds_column *b) {
    if (sft_span_equal(a->type, b->type)) return true;
    return a->encoding != SFTI_ENCODING_NESTED && b->encoding != SFTI_ENCODING_NESTED &&
           !type_is_logical(a->type) && !type_is_logical(b->type);
}

/* ── Rows of varying length, and nulls ── */

static const char *const encoding_names[] = { NULL, "list", "nested", "binary", "utf8" };
static const char *const part_suffixes[] = { "", ".offsets", ".valid" };

const char *sfti_ds_encoding_name(sfti_ds_encoding encoding) { return encoding_names[encoding]; }
const char *sfti_ds_part_suffix(sfti_ds_part part) { return part_suffixes[part]; }

/* Lists of one length in one file are FIXED there, of one dimension. */
static bool list_fits(const sfti_ds_column *list, const sfti_ds_column *other) {
    if (list->has_dtype != other->has_dtype ||
        (list->has_dtype && list->dtype != other->dtype))
        return false;
    return other->encoding == SFTI_ENCODING_LIST || !other->has_shape || other->rank == 1;
}

bool sfti_ds_column_kin(const sfti_ds_column *a, const sfti_ds_column *b) {
    if (!types_fit(a, b)) return false;
    if (a->encoding > SFTI_ENCODING_NESTED || b->encoding > SFTI_ENCODING_NESTED)
        return a->encoding == b->encoding;
    if (a->encoding == SFTI_ENCODING_NESTED || b->encoding == SFTI_ENCODING_NESTED) return true;
    if (a->encoding == SFTI_ENCODING_LIST) return list_fits(a, b);
    return b->encoding != SFTI_ENCODING_LIST || list_fits(b, a);
}

bool sfti_ds_column_asked(const sfti_ds_column *asked, const sfti_ds_column *is) {
    const bool text = asked->encoding > SFTI_ENCODING_NESTED;
    if (text != (is->encoding > SFTI_ENCODING_NESTED)) return false;
    return types_fit(asked, is) || !asked->type.data || !is->type.data;
}

const sfti_ds_column *sfti_ds_column_part(const sfti_ds_column *columns, size_t count,
                                          sft_span tensor, sfti_ds_part *part) {
    const sfti_ds_column *found = sfti_ds_column_find(columns, count, tensor);
    *part = SFTI_PART_VALUES;
    for (size_t i = SFTI_PART_OFFSETS; !found && i <= SFTI_PART_VALID; i++) {
        if (!sfti_ds_ends(tensor, part_suffixes[i])) continue;
        sft_span stem = { tensor.data, tensor.len - strlen(part_suffixes[i]) };
        found = sfti_ds_column_find(columns, count, stem);
        *part = (sfti_ds_part)i;
    }
    for (size_t i = 0; !found && i < tensor.len; i++) { /* "a.b" in "a" comes before "a" */
        const size_t dot = tensor.len - 1 - i;
        if (tensor.data[dot] != '.') continue;
        found = sfti_ds_column_find(columns, count, (sft_span){ tensor.data, dot });
        if (found && found->encoding != SFTI_ENCODING_NESTED) found = NULL;
        *part = SFTI_PART_INNER;
    }
    return found;
}

bool sfti_ds_column_holds(const sfti_ds_column *c, const sft_tensor *t) {
    if (c->has_dtype && c->dtype != t->dtype) return false;
    if (!c->has_shape) return true;
    return t->rank > 0 && sfti_ds_shape_same(t->shape + 1, t->rank - 1, c->shape, c->rank);
}

/* ── Whether rows fit the existing dataset ── */

sft_code sfti_ds_column_alone(sft_error *err, sft_span name, bool there) {
    return sfti_fail(err, SFT_DATASET_DISAGREES,
                     there ? "expected the column %.*s as in the dataset, found none"
                           : "expected only columns of the dataset, found %.*s",
                     (int)name.len, name.data);
}

/* For messages. */
static sft_span type_shown(const sfti_ds_column *c) {
    if (c->type.data) return c->type;
    return sft_span_cstr(c->has_dtype ? sft_dtype_describe(c->dtype)->name : "another type");
}

bool sfti_ds_column_open(const sfti_ds_column *c) {
    return !c->encoding && !c->has_shape && type_has(c->type, "list");
}

/* Lists of what an open column has: of numbers, if they are in no other lists. */
static bool open_takes(const sfti_ds_column *was, const sfti_ds_column *is) {
    size_t lists = 0;
    for (size_t i = 0; i < was->type.len; i++) lists += was->type.data[i] == '<';
    return is->encoding <= SFTI_ENCODING_NESTED &&
           (is->encoding != SFTI_ENCODING_LIST || lists == 1);
}

sft_code sfti_ds_column_agrees(const sfti_ds_column *is, const sfti_ds_column *was,
                               sft_error *err) {
    static const char *const kinds[] = { "rows of one shape", "lists", "nested rows", "bytes",
                                         "text" };
    char want[SFTI_SHAPE_TEXT], have[SFTI_SHAPE_TEXT];
    const bool open = sfti_ds_column_open(was);
    const bool fits = types_fit(is, was) && (!open || open_takes(was, is));
    if (is->encoding != was->encoding && !open &&
        !(was->encoding == SFTI_ENCODING_NESTED && is->encoding < SFTI_ENCODING_NESTED) &&
        (was->encoding != SFTI_ENCODING_LIST || is->encoding != SFTI_ENCODING_FIXED ||
         (is->has_shape && is->rank != 1)))
        return sfti_fail(err, SFT_DATASET_DISAGREES,
                         "column %.*s: expected %s as in the dataset, found %s%s",
                         (int)is->name.len, is->name.data, kinds[was->encoding],
                         kinds[is->encoding],
                         is->encoding == SFTI_ENCODING_LIST ? " of different lengths" : "");
    if (!fits)
        return sfti_fail(err, SFT_DATASET_DISAGREES,
                         "column %.*s: expected %.*s as in the dataset, found %.*s",
                         (int)is->name.len, is->name.data, SFTI_CLIP(type_shown(was), 150),
                         SFTI_CLIP(type_shown(is), 150));
    if (is->has_dtype && was->has_dtype && is->dtype != was->dtype)
        return sfti_fail(err, SFT_DATASET_DISAGREES,
                         "column %.*s: expected %s as in the dataset, found %s", (int)is->name.len,
                         is->name.data, sft_dtype_describe(was->dtype)->name,
                         sft_dtype_describe(is->dtype)->name);
    if (!is->has_shape || !was->has_shape) return SFT_OK;
    if (sfti_ds_shape_same(is->shape, is->rank, was->shape, was->rank)) return SFT_OK;
    sfti_ds_shape_text(was->shape, was->rank, want);
    sfti_ds_shape_text(is->shape, is->rank, have);
    return sfti_fail(err, SFT_DATASET_DISAGREES,
                     "column %.*s: expected samples of shape %s as in the dataset, found %s",
                     (int)is->name.len, is->name.data, want, have);
}

sft_code sfti_ds_columns_agree(const sfti_ds_column *base, size_t base_count,
                               const sfti_ds_column *columns, size_t count, bool merges,
                               sft_error *err) {
    for (size_t i = 0; i < count; i++) {
        const sfti_ds_column *was = sfti_ds_column_find(base, base_count, columns[i].name);
        sft_code code = was      ? sfti_ds_column_agrees(&columns[i], was, err)
                        : merges ? SFT_OK
                                 : sfti_ds_column_alone(err, columns[i].name, false);
        if (code) return code;
    }
    for (size_t i = 0; i < base_count; i++) {
        if (sfti_ds_column_find(columns, count, base[i].name)) continue;
        sft_code code = merges || base[i].optional ? sfti_ds_column_absent(&base[i], err)
                                                   : sfti_ds_column_alone(err, base[i].name, true);
        if (code) return code;
    }
    return SFT_OK;
}

sft_code sfti_ds_column_absent(const sfti_ds_column *c, sft_error *err) {
    /* Names of places end with a NUL. */
    const bool named = !c->name.len || !memchr(c->name.data, '\0', c->name.len);
    const bool fits = c->encoding == SFTI_ENCODING_NESTED ? !type_has(c->type, "fixed_size_list")
                      : c->encoding || (c->has_dtype && c->has_shape);
    if (named && fits) return SFT_OK;
    return sfti_fail(err, SFT_DATASET_DISAGREES, "column %.*s: expected one dtype and shape, or "
                     "lists of any length, of a column that shards may lack, found others",
                     SFTI_CLIP(c->name, 100));
}

/* Whether a tensor of that name may be one of the column. */
static bool apart_has(const sfti_ds_column *c, sft_span tensor) {
    if (tensor.len <= c->name.len || memcmp(tensor.data, c->name.data, c->name.len) != 0)
        return false;
    const sft_span rest = { tensor.data + c->name.len, tensor.len - c->name.len };
    for (size_t i = SFTI_PART_OFFSETS; i <= SFTI_PART_VALID; i++)
        if (sft_span_equal(rest, sft_span_cstr(part_suffixes[i]))) return true;
    return c->encoding == SFTI_ENCODING_NESTED && rest.data[0] == '.';
}

sft_code sfti_ds_columns_apart(const sfti_ds_column *columns, size_t count, size_t fresh,
                               sft_error *err) {
    for (size_t i = fresh; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            const sfti_ds_column *a = &columns[i], *b = &columns[k];
            if (i == k || (!apart_has(a, b->name) && !apart_has(b, a->name) &&
                           !sft_span_equal(a->name, b->name)))
                continue;
            return sfti_fail(err, SFT_DATASET_DISAGREES, "column %.*s: expected a name that is not "
                             "one of tensors of the column %.*s", SFTI_CLIP(a->name, 100),
                             SFTI_CLIP(b->name, 100));
        }
    return SFT_OK;
}

static char keys_byte(sft_span sep, sft_span column, size_t i) {
    return i < sep.len ? sep.data[i] : column.data[i - sep.len];
}

bool sfti_ds_keys_meet(sft_span sep, sft_span longer, sft_span shorter) {
    if (longer.len <= shorter.len) return false;
    const size_t more = longer.len - shorter.len, len = sep.len + shorter.len;
    size_t i = 0;
    while (i < len && keys_byte(sep, longer, more + i) == keys_byte(sep, shorter, i)) i++;
    return i == len;
}

sft_code sfti_ds_keys_apart(const sfti_ds_column *columns, size_t count, sft_span sep,
                            sft_error *err) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            const sft_span longer = columns[i].name, shorter = columns[k].name;
            if (!sfti_ds_keys_meet(sep, longer, shorter)) continue;
            return sfti_fail(err, SFT_OPTION_VALUE,
                             "columns %.*s and %.*s: expected names of tensors that tell which row "
                             "they belong to, found the option kv_separator \"%.*s\", with which "
                             "one of each column may have the same name: use another separator or "
                             "name of a column", SFTI_CLIP(shorter, 100), SFTI_CLIP(longer, 100),
                             SFTI_CLIP(sep, 40));
        }
    return SFT_OK;
}

/* ── As JSON ── */

void sfti_ds_put_column(sfti_json_writer *w, const sfti_ds_column *c) {
    sfti_json_put_cstr(w, "dtype", c->has_dtype ? sft_dtype_describe(c->dtype)->name : NULL);
    if (c->has_shape) sfti_json_put_shape(w, "shape", c->shape, c->rank);
    else sfti_json_put_cstr(w, "shape", NULL);
    if (c->encoding) sfti_json_put_cstr(w, "encoding", sfti_ds_encoding_name(c->encoding));
    if (c->nullable) sfti_json_put_bool(w, "nullable", true);
    if (c->optional) sfti_json_put_bool(w, "optional", true);
    if (!c->type.data) return;

    /* Dtype, shape and encoding may say the type: "list<list<float>>" of F32 and two dimensions. */
    const char *name = c->encoding == SFTI_ENCODING_UTF8     ? "string"
                       : c->encoding == SFTI_ENCODING_BINARY ? "binary"
                       : c->has_dtype                        ? sfti_ds_type_name(c->dtype)
                                                             : "";
    const uint32_t lists = c->encoding == SFTI_ENCODING_LIST ? 1 : c->has_shape ? c->rank : 0;
    sft_span rest = c->type;
    bool told = c->encoding != SFTI_ENCODING_NESTED;
    for (uint32_t i = 0; told && i < lists; i++) {
        told = rest.len >= 6 && memcmp(rest.data, "list<", 5) == 0 &&
               rest.data[rest.len - 1] == '>';
        if (told) rest = (sft_span){ rest.data + 5, rest.len - 6 };
    }
    if (!told || !sft_span_equal(rest, sft_span_cstr(name))) sfti_json_put_text(w, "type", c->type);
}

void sfti_ds_put_columns(sfti_json_writer *w, const sfti_ds_column *columns, size_t count) {
    sfti_json_put_open(w, "columns", '{');
    for (size_t i = 0; i < count; i++) {
        sfti_json_key_span(w, columns[i].name);
        sfti_json_open(w, '{');
        sfti_ds_put_column(w, &columns[i]);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, '}');
}
