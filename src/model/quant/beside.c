/* What files beside models declare of quantised layers, compared; what a selection still declares.
 * Tests: tests/cli/convert/beside.txt, tests/cli/rename/beside.txt. */
#include "quant/beside.h"

#include "base/error.h"
#include "base/json.h"
#include "keys/digest_keys.h"
#include "quant/declared.h"

#include <string.h>

/* *known: values may be computed by it; else nothing is, or it is of a method that is not known. */
static sft_code read_files(const char *path, const sft_files *files, sfti_arena *arena,
                           sfti_declared *out, bool *known, sft_error *err) {
    sft_error own = SFT_ERROR_INIT;
    *out = (sfti_declared){ .count = 0 };
    if (!sfti_layouts_read(arena, &out->layouts)) return sfti_fail_memory(err, 0);
    sft_code code = sfti_declared_files(path, files, arena, out, &own);
    *known = code == SFT_OK;
    bool none = code == SFT_CAST_DTYPE || code == SFT_INDEX_PATH || code == SFT_IO_NOT_FILE;
    return code && !none ? sfti_fail_as(err, code, &own) : SFT_OK;
}

static bool tells_alike(const sfti_declared *a, const sfti_declared *b) {
    bool same = sft_span_equal(a->method, b->method) && a->allowed == b->allowed
             && a->widths == b->widths && a->shares == b->shares && a->kinds == b->kinds
             && a->group == b->group && a->blocks[0] == b->blocks[0]
             && a->blocks[1] == b->blocks[1] && a->disordered == b->disordered
             && a->asymmetric == b->asymmetric && a->plain_count == b->plain_count
             && (a->object.len > 0) == (b->object.len > 0)
             && (a->object.len == 0 || sfti_json_alike(a->object, b->object));
    for (size_t i = 0; same && i < a->plain_count; i++)
        same = sft_span_equal(a->plain[i], b->plain[i]);
    return same && sfti_scopes_alike(a, b);
}

sft_code sfti_beside_compare(const char *from, const char *to, const sft_files *files,
                             sfti_arena *arena, sfti_beside *out, sft_error *err) {
    sfti_declared own = { .count = 0 }, there = { .count = 0 };
    bool known = false, known_there = false;
    sft_code code = to ? read_files(to, files, arena, &there, &known_there, err) : SFT_OK;
    if (!code && from) code = read_files(from, files, arena, &own, &known, err);
    if (code) return code;
    bool same = sft_span_equal(own.told, there.told)
             || (known && known_there && tells_alike(&own, &there));
    *out = same ? SFTI_BESIDE_SAME : there.told.len > 0 ? SFTI_BESIDE_OTHER : SFTI_BESIDE_NONE;
    return SFT_OK;
}

static bool same_sizes(const sfti_declared *d, sft_span old, sft_span now, sfti_arena *arena) {
    uint64_t bits[2], group[2];
    if (!d->object.data) return true;
    const char *why = sfti_declared_mlx(d, old, arena, &bits[0], &group[0]);
    const char *other = sfti_declared_mlx(d, now, arena, &bits[1], &group[1]);
    return !why == !other && bits[0] == bits[1] && group[0] == group[1];
}

sft_code sfti_beside_follows(const char *path, const sft_files *files, const sft_pair *names,
                             size_t count, sfti_arena *arena, const sft_pair **out,
                             sft_error *err) {
    sfti_declared d;
    bool known = false;
    sft_pair last = { { NULL, 0 }, { NULL, 0 } };
    *out = NULL;
    sft_code code = read_files(path, files, arena, &d, &known, err);
    if (code || !known || (d.scope_count == 0 && !d.object.data)) return code;
    bool *meant = sfti_arena_array(arena, (uint64_t)d.scope_count + 1, sizeof *meant);
    if (!meant) return sfti_fail_memory(err, d.scope_count);
    for (size_t i = 0; !*out && i < count; i++) {
        sft_error late = SFT_ERROR_INIT; /* what takes too long to match cannot be read, either */
        sft_pair now = { sfti_declared_module(names[i].key),
                         sfti_declared_module(names[i].value) };
        if (last.key.data && sft_span_equal(now.key, last.key)
            && sft_span_equal(now.value, last.value))
            continue;
        last = now;
        bool same = same_sizes(&d, now.key, now.value, arena);
        if (d.scope_count > 0 && sfti_scopes_choose(&d, names[i].key, &late)) return SFT_OK;
        for (size_t k = 0; k < d.scope_count; k++) meant[k] = d.scopes[k].meant;
        if (d.scope_count > 0 && sfti_scopes_choose(&d, names[i].value, &late)) return SFT_OK;
        for (size_t k = 0; k < d.scope_count; k++) same = same && meant[k] == d.scopes[k].meant;
        if (!same) *out = &names[i];
    }
    return SFT_OK;
}

sft_code sfti_declared_left(const sft_set *set, const sft_part *parts, size_t count,
                            sfti_arena *arena, sft_pair *out, sft_error *err) {
    sfti_declared d;
    sft_code code = sfti_declared_read(set, false, NULL, arena, &d, err);
    if (code) return code;
    for (size_t i = 0; i < d.count; i++) d.layers[i].taken = d.layers[i].weight != NULL;
    for (size_t i = 0; i < count; i++) {
        sfti_declared_layer *layer = sfti_declared_of(&d, parts[i].spec.name, NULL);
        if (layer) layer->taken = false;
    }
    for (size_t s = 0; s < sft_set_shard_count(set); s++) {
        sft_span value;
        out[s] = (sft_pair){ { NULL, 0 }, { NULL, 0 } };
        if (!sft_file_metadata_get(sft_set_shard_at(set, s), sft_span_cstr(SFTI_DECLARED_KEY),
                                   &value))
            continue;
        out[s].key = value;
        if (!sfti_declared_rest(&d, set, value, true, arena, &out[s].value))
            return sfti_fail_memory(err, value.len);
    }
    return SFT_OK;
}
