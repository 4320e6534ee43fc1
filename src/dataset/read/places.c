/* Places of columns are read and asked. Tests: test_dataset_add.c. */
#include "dataset/read/places.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/number.h"

/* ── Asking ── */

const sfti_ds_place *sfti_ds_places_of(const sfti_ds_places *places, const char *shard,
                                       size_t *count) {
    const size_t all = places->place ? (size_t)places->count : 0;
    size_t low = 0, high = all;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(places->place[middle].shard, shard) < 0) low = middle + 1;
        else high = middle;
    }
    *count = 0;
    while (low + *count < all && strcmp(places->place[low + *count].shard, shard) == 0) ++*count;
    return *count ? &places->place[low] : NULL;
}

const sfti_ds_place *sfti_ds_place_find(const sfti_ds_places *places, const char *shard,
                                        sft_span column) {
    size_t count;
    const sfti_ds_place *of = sfti_ds_places_of(places, shard, &count);
    for (size_t i = 0; i < count; i++)
        if (sft_span_equal(sft_span_cstr(of[i].column), column)) return &of[i];
    return NULL;
}

bool sfti_ds_place_first(const sfti_ds_place *of, size_t i) {
    for (size_t k = 0; of[i].file && k < i; k++)
        if (sfti_ds_place_is(&of[k], of[i].file)) return false;
    return of[i].file != NULL;
}

/* ── Reading ── */

static const char *places_text(const char **at, const char *end) {
    const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));
    if (nul) *at = nul + 1;
    return nul ? text : NULL;
}

static const char *places_hex(const char *digest, char *to) {
    for (size_t k = 0; k < SFTI_PLACES_DIGEST; k++)
        sfti_hex_text((uint8_t)digest[k], 2, to + 2 * k);
    to[2 * SFTI_PLACES_DIGEST] = '\0';
    return to;
}

/* Whether a file can be one of a shard's: their names differ in the uuid alone. */
static bool places_named(const char *file, const char *shard) {
    const size_t len = strlen(shard), uuid = strlen("00000000-0000-4000-8000-000000000000"
                                                    ".safetensors");
    return sfti_ds_is_columns(sft_span_cstr(file)) && strlen(file) == len + 1 &&
           memcmp(file + 1, shard, len - uuid) == 0;
}

/* False: they are not as places.h says. */
static bool places_fill(const sft_file *file, const char *bytes, const sfti_ds_places *places,
                        sfti_ds_place *all, char *digests) {
    static const char zeros[SFTI_PLACES_DIGEST];
    const sft_tensor *size = sfti_ds_addressed_tensor(file, "bytes", SFT_U64, 1);
    const sft_tensor *sum = sfti_ds_addressed_tensor(file, "sha256", SFT_U8, 2);
    const sft_tensor *names = sfti_ds_addressed_tensor(file, "names", SFT_U8, 1);
    if (!size || !sum || !names || size->shape[0] != places->count ||
        sum->shape[0] != places->count || sum->shape[1] != SFTI_PLACES_DIGEST)
        return false;
    const char *at = bytes + names->offset, *end = at + names->shape[0];
    for (size_t i = 0; i < places->count; i++) {
        sfti_ds_place *p = &all[i];
        const char *digest = bytes + sum->offset + SFTI_PLACES_DIGEST * i;
        p->bytes = sfti_get_u64(bytes + size->offset + 8 * i);
        if (!(p->shard = places_text(&at, end)) || !(p->column = places_text(&at, end)) ||
            !(p->file = places_text(&at, end)) || !sfti_ds_is_bare(sft_span_cstr(p->shard)))
            return false;
        const bool nowhere = !*p->file, zero = memcmp(digest, zeros, sizeof zeros) == 0;
        if (nowhere != zero || (nowhere && p->bytes)) return false;
        if (!nowhere && !places_named(p->file, p->shard)) return false;
        if (nowhere) p->file = NULL;
        p->sha256 = nowhere ? NULL
                            : places_hex(digest, digests + (2 * SFTI_PLACES_DIGEST + 1) * i);
        if (!i) continue;
        const int order = strcmp(p[-1].shard, p->shard);
        if (order > 0 || (order == 0 && strcmp(p[-1].column, p->column) >= 0)) return false;
    }
    return at == end;
}

sft_code sfti_ds_places_read(const sft_storage *storage, sfti_arena *arena, sfti_ds_places *places,
                             sft_error *err) {
    char name[SFTI_SEGMENT_FILE_NAME];
    sft_span bytes = { NULL, 0 };
    sft_file *file = NULL;
    if (!*places->sha256) return SFT_OK;
    sfti_ds_addressed_name(SFTI_PLACES_FILE, places->sha256, name);
    sft_code code = sfti_ds_addressed_open(storage, name, places->sha256, places->bytes, "places",
                                           arena, &bytes, &file, err);
    if (code) return code;
    /* Each has more bytes than that: the file bounds their number. */
    const bool fits = places->count && places->count <= bytes.len / SFTI_PLACES_DIGEST;
    sfti_ds_place *all = fits ? sfti_arena_array(arena, places->count, sizeof *all) : NULL;
    char *digests =
        fits ? sfti_arena_array(arena, places->count, 2 * SFTI_PLACES_DIGEST + 1) : NULL;
    const bool good = all && digests && places_fill(file, bytes.data, places, all, digests);
    sft_close(file);
    if (fits && (!all || !digests)) return sfti_fail_memory(err, bytes.len);
    if (!good)
        return sfti_fail(err, SFT_DATASET_SHARD,
                         "%s: expected as many places as the manifest says, found others", name);
    places->place = all;
    return SFT_OK;
}

sft_code sfti_ds_place_check(const sfti_ds_place *p, const sfti_ds_manifest *m, sft_error *err) {
    const sfti_ds_column *column =
        sfti_ds_column_find(m->columns, m->column_count, sft_span_cstr(p->column));
    const bool nowhere = !p->file;
    if (m->mode == SFT_DATASET_BATCH && column && (!nowhere || column->nullable))
        return nowhere ? sfti_ds_column_absent(column, err) : SFT_OK;
    return sfti_fail(err, SFT_DATASET_SHARD,
                     "%s: expected places of columns of the manifest, found one of %s%s", p->shard,
                     p->column, column ? ", which is not nullable" : "");
}

sft_code sfti_ds_places_load(const sft_storage *storage, sfti_arena *arena, sfti_ds_manifest *m,
                             sft_error *err) {
    sft_code code = sfti_ds_places_read(storage, arena, &m->places, err);
    for (size_t i = 0; !code && m->places.place && i < m->places.count; i++) {
        const sfti_ds_place *p = &m->places.place[i];
        code = sfti_ds_place_check(p, m, err);
        if (!code && !sfti_ds_manifest_names(m, p->shard))
            code = sfti_fail(err, SFT_DATASET_SHARD, SFTI_DATASET_MANIFEST ": expected places of "
                             "its shards, found one of %s", p->shard);
    }
    return code;
}
