/* Comparing two models by name. Tests: test_diff.c. */
#include "set/diff.h"

#include "base/announce.h"
#include "base/error.h"
#include "base/options.h"
#include "base/order.h"
#include "set/aliases.h"
#include "set/set.h"

#include <string.h>

/* A walk over the tensors of both models, each in the order of its names. */
typedef struct diff_walk {
    sfti_diff_run run;
    sft_diff *diff;
    uint32_t *order[2];
    sft_error *err;
} diff_walk;

/* ── Tensors ── */

static bool diff_same_shape(const sft_tensor *a, const sft_tensor *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->shape[d] != b->shape[d]) return false;
    return true;
}

static void diff_keep(sft_diff *diff, const sft_diff_tensor *found) {
    const sft_tensor *tensor = found->a ? found->a : found->b;
    uint64_t elements;
    if (sft_shape_size(tensor->dtype, tensor->shape, tensor->rank, &elements, NULL, NULL))
        elements = 0;
    diff->elements += (double)elements;
    if (found->what) diff->apart += (double)elements;
    diff->removed += found->what == SFT_DIFF_REMOVED;
    diff->added += found->what == SFT_DIFF_ADDED;
    diff->changed += found->what && found->a && found->b;
    if (found->max_abs > diff->max_abs) diff->max_abs = found->max_abs;
    if (found->max_rel > diff->max_rel) diff->max_rel = found->max_rel;
    if (found->what) diff->tensors[diff->count++] = *found;
}

static sft_code diff_both(diff_walk *walk, const sft_tensor *a, const sft_tensor *b,
                          const size_t shards[2]) {
    sft_diff *diff = walk->diff;
    sft_diff_tensor found = { .name = a->name, .a = a, .b = b, .first = UINT64_MAX };
    const sft_file *files[2] = { sft_set_shard_at(walk->run.sets[0], shards[0]),
                                 sft_set_shard_at(walk->run.sets[1], shards[1]) };
    bool same = true;
    if (a->dtype != b->dtype) found.what |= SFT_DIFF_DTYPE;
    if (!diff_same_shape(a, b)) found.what |= SFT_DIFF_SHAPE;
    if (!(found.what & SFT_DIFF_SHAPE) && !diff->options.header_only) {
        sft_code code = sfti_diff_data(&walk->run, files, a, b, &found, &same, walk->err);
        if (code) {
            if (walk->err && code != SFT_CANCELLED && walk->err->tensor_len == SFT_NO_TENSOR)
                sfti_error_tensor(walk->err, a->name);
            return code;
        }
    }
    bool apart = diff->options.has_tolerance && found.compared ? found.beyond > 0 : !same;
    bool unlike_dtypes = found.what & SFT_DIFF_DTYPE;
    if (unlike_dtypes && found.compared && found.beyond == 0) apart = false;
    if (!apart && !diff->options.header_only && (found.compared || same) && diff->options.by_value)
        found.what &= ~SFT_DIFF_DTYPE;
    if (apart) found.what |= SFT_DIFF_DATA;
    if (!found.what) *(same ? &diff->equal : &diff->close) += 1;
    diff_keep(diff, &found);
    return SFT_OK;
}

static void diff_alone(sft_diff *diff, const sft_tensor *tensor, uint32_t what) {
    sft_diff_tensor found = { .name = tensor->name, .what = what, .first = UINT64_MAX };
    if (what == SFT_DIFF_ADDED) found.b = tensor;
    else found.a = tensor;
    diff_keep(diff, &found);
}

/* Whether the next tensor of a side was passed over. */
static bool diff_passes(const diff_walk *walk, const sft_tensor *tensor, size_t *i) {
    const sft_diff_options *options = &walk->diff->options;
    if (!tensor || !options->match || options->match(options->match_ctx, tensor)) return false;
    ++*i;
    return true;
}

/* Where a walk over both lists is, each in natural order. */
typedef struct diff_cursor {
    size_t next[2];
    const sft_tensor *tensor[2]; /* of one name; NULL: that side has none */
    size_t shard[2];
} diff_cursor;

/* The next name; false if there is none. */
static bool diff_next(const diff_walk *walk, diff_cursor *at) {
    for (;;) {
        for (int k = 0; k < 2; k++) {
            const sft_set *set = walk->run.sets[k];
            bool more = at->next[k] < sft_set_tensor_count(set);
            size_t i = more ? walk->order[k][at->next[k]] : 0;
            at->tensor[k] = more ? sft_set_tensor_at(set, i) : NULL;
            at->shard[k] = sft_set_tensor_shard(set, i);
        }
        const sft_tensor *a = at->tensor[0], *b = at->tensor[1];
        if (diff_passes(walk, a, &at->next[0]) || diff_passes(walk, b, &at->next[1])) continue;
        int order = !a ? 1 : !b ? -1 : sfti_natural_compare(a->name, b->name);
        if (order > 0) at->tensor[0] = NULL;
        if (order < 0) at->tensor[1] = NULL;
        at->next[0] += at->tensor[0] != NULL;
        at->next[1] += at->tensor[1] != NULL;
        return a || b;
    }
}

/* What diff_both will read. */
static void diff_announce(const diff_walk *walk) {
    sfti_announcement sides[2] = { { .count = 0 }, { .count = 0 } };
    diff_cursor at = { .next = { 0, 0 } };
    if (walk->diff->options.header_only) return;
    while (diff_next(walk, &at)) {
        if (!at.tensor[0] || !at.tensor[1] || !diff_same_shape(at.tensor[0], at.tensor[1]))
            continue;
        for (int k = 0; k < 2; k++)
            sfti_announce_tensor(&sides[k], sft_set_shard_at(walk->run.sets[k], at.shard[k]),
                                 at.tensor[k]);
    }
    for (int k = 0; k < 2; k++) sfti_announce_end(&sides[k]);
}

static bool diff_is_slow(const sft_set *set) {
    for (size_t i = 0; i < sft_set_shard_count(set); i++) {
        sft_source source = sft_file_source(sft_set_shard_at(set, i));
        if (sfti_source_expects(&source)) return true;
    }
    return false;
}

static sft_code diff_tensors(diff_walk *walk) {
    diff_cursor at = { .next = { 0, 0 } };
    if (diff_is_slow(walk->run.sets[0]) || diff_is_slow(walk->run.sets[1])) diff_announce(walk);
    while (diff_next(walk, &at)) {
        sft_code code = SFT_OK;
        if (!at.tensor[1]) diff_alone(walk->diff, at.tensor[0], SFT_DIFF_REMOVED);
        else if (!at.tensor[0]) diff_alone(walk->diff, at.tensor[1], SFT_DIFF_ADDED);
        else code = diff_both(walk, at.tensor[0], at.tensor[1], at.shard);
        if (code) return code;
    }
    return SFT_OK;
}

/* ── Metadata ── */

static sft_pair diff_pair_of(const sfti_diff_side *side, uint32_t i) {
    size_t low = 0, high = sft_set_shard_count(side->set);
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (side->first[middle] <= i) low = middle;
        else high = middle;
    }
    return sft_file_metadata_at(sft_set_shard_at(side->set, low), i - side->first[low]);
}

/* One side's pairs by key; pairs with the same key keep their order. */
typedef struct diff_pairs {
    const sfti_diff_side *side;
    uint32_t *order;
    size_t count;
} diff_pairs;

static int compare_diff_keys(const void *ctx, uint32_t a, uint32_t b) {
    return sfti_bytes_compare(diff_pair_of(ctx, a).key, diff_pair_of(ctx, b).key);
}

/* Whether a pair records another name of a tensor that is compared. */
static bool diff_is_name(const sft_diff *diff, const sft_set *set, sft_pair pair) {
    const sft_diff_options *options = &diff->options;
    return sfti_set_is_alias(set, pair)
        && (!options->match
            || options->match(options->match_ctx, sft_set_find(set, pair.value, NULL)));
}

static sft_code diff_gather(sft_diff *diff, int side, sfti_arena *arena, diff_pairs *out,
                            sft_error *err) {
    uint64_t count = 0, shards = sft_set_shard_count(diff->sides[side].set);
    uint32_t *first = sfti_arena_array(&diff->arena, shards + 1, sizeof *first);
    if (!first) return sfti_fail_memory(err, (shards + 1) * sizeof *first);
    diff->sides[side].first = first;
    for (size_t s = 0; s < shards; s++) {
        first[s] = (uint32_t)count;
        count += sft_file_metadata_count(sft_set_shard_at(diff->sides[side].set, s));
        if (count >= UINT32_MAX)
            return sfti_fail(err, SFT_TOO_MANY_METADATA,
                             "expected fewer than 4294967295 pairs, found %llu",
                             (unsigned long long)count);
    }
    first[shards] = (uint32_t)count;
    *out = (diff_pairs){ &diff->sides[side], NULL, (size_t)count };
    out->order = sfti_arena_sorted(arena, out->count, compare_diff_keys, out->side);
    if (!out->order) return sfti_fail_memory(err, 2 * count * sizeof *out->order);
    if (!diff->options.no_metadata) return SFT_OK;
    out->count = 0; /* other names are compared, although only metadata record them */
    for (size_t i = 0; i < count; i++)
        if (diff_is_name(diff, out->side->set, diff_pair_of(out->side, out->order[i])))
            out->order[out->count++] = out->order[i];
    return SFT_OK;
}

/* The i-th pair in order; moves *i past every pair with its key. */
static uint32_t diff_next_pair(const diff_pairs *from, size_t *i) {
    if (*i >= from->count) return SFTI_NO_PAIR;
    uint32_t first = from->order[(*i)++];
    if (*i >= from->count) return first;
    sft_span key = diff_pair_of(from->side, first).key;
    while (*i < from->count &&
           sft_span_equal(diff_pair_of(from->side, from->order[*i]).key, key)) ++*i;
    return first;
}

/* Merges both sides by key and keeps the pairs that differ; only counts them if pairs is NULL. */
static size_t diff_walk_pairs(const diff_pairs sides[2], sfti_diff_pair *pairs) {
    size_t i = 0, j = 0, count = 0;
    while (i < sides[0].count || j < sides[1].count) {
        size_t next[2] = { i, j };
        sfti_diff_pair at = { diff_next_pair(&sides[0], &next[0]),
                              diff_next_pair(&sides[1], &next[1]) };
        bool both = at.a != SFTI_NO_PAIR && at.b != SFTI_NO_PAIR;
        sft_pair a = { { NULL, 0 }, { NULL, 0 } }, b = a;
        if (both) a = diff_pair_of(sides[0].side, at.a), b = diff_pair_of(sides[1].side, at.b);
        int order = both ? sfti_bytes_compare(a.key, b.key) : at.a == SFTI_NO_PAIR ? 1 : -1;
        if (order <= 0) i = next[0];
        if (order >= 0) j = next[1];
        if (order == 0 && sft_span_equal(a.value, b.value)) continue;
        if (order < 0) at.b = SFTI_NO_PAIR;
        if (order > 0) at.a = SFTI_NO_PAIR;
        if (pairs) pairs[count] = at;
        count++;
    }
    return count;
}

/* ── All together ── */

static sft_code diff_take_memory(diff_walk *walk, sfti_arena *work) {
    sft_error *err = walk->err;
    sft_diff *diff = walk->diff;
    uint64_t count = (uint64_t)sft_set_tensor_count(walk->run.sets[0])
                     + sft_set_tensor_count(walk->run.sets[1]);
    diff->tensors = sfti_arena_array(&diff->arena, count, sizeof *diff->tensors);
    if (!diff->tensors) return sfti_fail_memory(err, count * sizeof *diff->tensors);
    for (int i = 0; i < 2; i++) {
        const sft_set *set = walk->run.sets[i];
        walk->order[i] = sfti_arena_array(work, sft_set_tensor_count(set), sizeof *walk->order[i]);
        walk->run.window[i] = sfti_arena_take(work, SFTI_DIFF_WINDOW);
        walk->run.values[i] = sfti_arena_array(work, SFTI_DIFF_VALUES, sizeof(double));
        walk->run.values[2 + i] = sfti_arena_array(work, SFTI_DIFF_VALUES, sizeof(double));
        if (!walk->order[i] || !walk->run.window[i] || !walk->run.values[i] ||
            !walk->run.values[2 + i])
            return sfti_fail_memory(err, SFTI_DIFF_WINDOW);
        sft_code code = sft_set_order(set, SFT_ORDER_NATURAL, walk->order[i], err);
        if (code) return code;
    }
    return SFT_OK;
}

static uint64_t diff_total(const sft_set *set) {
    uint64_t total = 0;
    for (size_t i = 0; i < sft_set_shard_count(set); i++)
        total += sft_file_data_bytes(sft_set_shard_at(set, i));
    return total;
}

static SFTI_OPTIONS_TAKE(diff_take, sft_diff_options, SFT_DIFF_OPTIONS_INIT, alloc)

sft_code sft_diff_new(const sft_set *a, const sft_set *b, const sft_diff_options *options,
                       const sft_job *job, sft_diff **out, sft_error *err) {
    sft_diff_options own;
    sft_job own_job;
    *out = NULL;
    sft_code code = diff_take(options, &own, err);
    if (!code) code = sfti_take_job(job, &own_job, err);
    if (code) return code;
    sft_allocator alloc = sfti_set_allocator(own.alloc);
    sfti_arena work = { .alloc = alloc };
    if (own.atol < 0 || own.rtol < 0 || own.atol != own.atol || own.rtol != own.rtol)
        return sfti_misuse(err, "expected tolerances of 0 or more, found a negative one");
    sft_diff *diff = sfti_take(&alloc, sizeof *diff);
    if (!diff) return sfti_fail_memory(err, sizeof *diff);
    memset(diff, 0, sizeof *diff);
    diff->arena.alloc = alloc;
    diff->options = own;
    diff->sides[0].set = a;
    diff->sides[1].set = b;
    diff_walk walk = { .run = { .sets = { a, b }, .options = &diff->options, .job = &own_job },
                       .diff = diff, .err = err };
    walk.run.total = diff_total(a) + diff_total(b);
    code = diff_take_memory(&walk, &work);
    if (!code) code = diff_tensors(&walk);
    if (!code) {
        diff_pairs sides[2];
        code = diff_gather(diff, 0, &work, &sides[0], err);
        if (!code) code = diff_gather(diff, 1, &work, &sides[1], err);
        size_t pairs = code ? 0 : diff_walk_pairs(sides, NULL);
        diff->pair_count = pairs;
        diff->pairs = sfti_arena_array(&diff->arena, pairs, sizeof *diff->pairs);
        if (!code && !diff->pairs) code = sfti_fail_memory(err, pairs * sizeof *diff->pairs);
        if (!code) (void)diff_walk_pairs(sides, diff->pairs);
    }
    sfti_arena_free(&work);
    if (code) sft_diff_free(diff);
    else *out = diff;
    return code;
}

void sft_diff_free(sft_diff *diff) {
    if (!diff) return;
    sft_allocator alloc = diff->arena.alloc;
    sfti_arena_free(&diff->arena);
    sfti_release(&alloc, diff, sizeof *diff);
}

/* ── Facts ── */

bool sft_diff_same(const sft_diff *diff) { return diff->count == 0 && diff->pair_count == 0; }

size_t sft_diff_tensor_count(const sft_diff *diff) { return diff->count; }

const sft_diff_tensor *sft_diff_tensor_at(const sft_diff *diff, size_t i) {
    return i < diff->count ? &diff->tensors[i] : NULL;
}

uint64_t sft_diff_equal_count(const sft_diff *diff) { return diff->equal; }

uint64_t sft_diff_within_tolerance_count(const sft_diff *diff) { return diff->close; }

uint64_t sft_diff_compared_count(const sft_diff *diff) {
    return diff->equal + diff->close + diff->changed + diff->removed + diff->added;
}

uint64_t sft_diff_changed_count(const sft_diff *diff) { return diff->changed; }

uint64_t sft_diff_removed_count(const sft_diff *diff) { return diff->removed; }

uint64_t sft_diff_added_count(const sft_diff *diff) { return diff->added; }

double sft_diff_share(const sft_diff *diff) {
    return diff->elements > 0 ? diff->apart / diff->elements : 0;
}

double sft_diff_max_abs(const sft_diff *diff) { return diff->max_abs; }

double sft_diff_max_rel(const sft_diff *diff) { return diff->max_rel; }

size_t sft_diff_pair_count(const sft_diff *diff) { return diff->pair_count; }

sft_diff_pair sft_diff_pair_at(const sft_diff *diff, size_t i) {
    sft_diff_pair out = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
    if (i >= diff->pair_count) return out;
    const sfti_diff_pair *at = &diff->pairs[i];
    for (int side = 0; side < 2; side++) {
        uint32_t number = side ? at->b : at->a;
        if (number == SFTI_NO_PAIR) continue;
        sft_pair pair = diff_pair_of(&diff->sides[side], number);
        out.key = pair.key;
        if (!pair.value.data) pair.value.data = "";
        *(side ? &out.b : &out.a) = pair.value;
    }
    return out;
}
