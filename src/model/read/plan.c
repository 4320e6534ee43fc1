/* Plans: parts checked, sorted and cut into tasks. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/order.h"
#include "read/read.h"

#include <string.h>

#define GAP_DEFAULT ((uint32_t)64 << 10)
#define OVER_READ_DEFAULT 125
#define SLOT_LEAST ((uint64_t)64 << 10)
#define SLOT_DEFAULT ((uint64_t)8 << 20)
#define SLOT_LARGE ((uint64_t)16 << 20) /* of plans of more than LARGE_PLAN */
#define LARGE_PLAN ((uint64_t)8 << 30)
#define TASK_IN_MEMORY ((uint64_t)4 << 20)
#define TASK_LEAST ((uint64_t)1 << 20)
#define TASKS_WANTED 32 /* at least, of plans that are large enough */

static SFTI_OPTIONS_TAKE(read_plan_take, sft_read_plan_options, SFT_READ_PLAN_OPTIONS_INIT,
                         slot_bytes)

/* ── Checks ──────────────────────────────────────────────────────────────── */

/* A plan that is being made. */
typedef struct plan_making {
    sft_read_plan *plan;
    const sft_read_part *parts;
    size_t count;
    sfti_arena scratch;
    uint32_t *order, *sorting; /* count numbers each */
    uint32_t *first;           /* of a part: the first part of the same file */
    sft_error *err;
} plan_making;

static sft_code plan_options_check(sft_read_plan_options *o, sft_error *err) {
    if (o->max_gap == 0) o->max_gap = GAP_DEFAULT;
    if (o->max_over_read == 0) o->max_over_read = OVER_READ_DEFAULT;
    if (o->max_over_read < 100)
        return sfti_misuse(err, "expected max_over_read of at least 100, found %u",
                           (unsigned)o->max_over_read);
    if ((unsigned)o->direct > SFT_READ_DIRECT_ALWAYS)
        return sfti_misuse(err, "expected a known value of direct, found %u", (unsigned)o->direct);
    bool fits = o->slot_bytes >= SLOT_LEAST && o->slot_bytes % SFTI_READ_PAGE == 0
                && sfti_fits_size(o->slot_bytes);
    if (o->slot_bytes == 0 || fits) return SFT_OK;
    return sfti_fail(err, SFT_BAD_ARGUMENT,
                     "expected slots of a multiple of 4096 bytes, at least 65536, found %llu",
                     (unsigned long long)o->slot_bytes);
}

static sft_code plan_check(const sft_read_part *parts, size_t count, const sft_read_block *blocks,
                           size_t block_count, sft_error *err) {
    if (count >= SFTI_READ_NONE || block_count >= SFTI_READ_NONE) /* indexed by 32 bits here */
        return sfti_misuse(err, "expected fewer than 2^32 - 1 %s, found more",
                           count >= SFTI_READ_NONE ? "parts" : "blocks");
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i].base && !sfti_fits_size(blocks[i].bytes))
            return sfti_misuse(err, "expected a block that this host can address, found %llu bytes",
                               (unsigned long long)blocks[i].bytes);
    for (size_t i = 0; i < count; i++)
        if (!parts[i].file || !parts[i].tensor)
            return sfti_misuse(err, "part %zu: expected a file and a tensor, found NULL", i);
    return SFT_OK;
}

/* ── Parts ───────────────────────────────────────────────────────────────── */

static int compare_part_files(const void *ctx, uint32_t a, uint32_t b) {
    const sft_read_part *parts = ctx;
    uintptr_t left = (uintptr_t)parts[a].file, right = (uintptr_t)parts[b].file;
    return (left > right) - (left < right);
}

static int compare_places(const void *ctx, uint32_t a, uint32_t b) {
    const plan_making *m = ctx;
    const sfti_read_item *items = m->plan->items;
    if (items[a].file != items[b].file) return items[a].file < items[b].file ? -1 : 1;
    return (items[a].offset > items[b].offset) - (items[a].offset < items[b].offset);
}

static int compare_targets(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_read_item *items = ctx;
    if (items[a].block != items[b].block) return items[a].block < items[b].block ? -1 : 1;
    return (items[a].at > items[b].at) - (items[a].at < items[b].at);
}

static void numbers_sort(plan_making *m, size_t count,
                         int (*compare)(const void *, uint32_t, uint32_t), const void *ctx) {
    for (size_t i = 0; i < count; i++) m->order[i] = (uint32_t)i;
    sfti_sort(m->order, m->sorting, count, compare, ctx);
}

/* Files in the order of their first parts. The sort is stable: of the parts of a file, the first
 * stands first. */
static sft_code plan_find_files(plan_making *m) {
    sft_read_plan *plan = m->plan;
    size_t files = 0;
    numbers_sort(m, m->count, compare_part_files, m->parts);
    for (size_t i = 0; i < m->count; i++) {
        uint32_t part = m->order[i];
        bool begins = i == 0 || m->parts[m->order[i - 1]].file != m->parts[part].file;
        m->first[part] = begins ? part : m->first[m->order[i - 1]];
        files += begins;
    }
    plan->files = sfti_arena_array(&plan->arena, files, sizeof *plan->files);
    if (!plan->files) return sfti_fail_memory(m->err, files * sizeof *plan->files);
    for (size_t i = 0; i < m->count; i++) {
        if (m->first[i] != i) {
            m->first[i] = m->first[m->first[i]]; /* that one is a file's number by now */
            continue;
        }
        const sft_file *file = m->parts[i].file;
        m->first[i] = (uint32_t)plan->file_count;
        plan->files[plan->file_count++] =
            (sfti_read_file){ file, sft_file_source(file), 0, 0, 0 };
    }
    return SFT_OK;
}

static sft_code part_fail(const plan_making *m, size_t i, sft_code code, const char *what) {
    return sfti_fail_tensor(m->err, code, SFT_NO_OFFSET, m->parts[i].tensor->name,
                            "part %zu: expected %s", i, what);
}

/* Where the part's bytes lie; *total: what reading a slice takes, 0 for others. */
static sft_code part_place(plan_making *m, size_t i, sfti_read_item *item, uint64_t *end,
                           uint64_t *total) {
    const sft_read_part *part = &m->parts[i];
    const sft_tensor *tensor = part->tensor;
    sft_runs runs;
    *total = 0;
    item->offset = tensor->offset;
    item->len = tensor->end - tensor->begin;
    *end = tensor->offset + item->len;
    if (!part->slice) return SFT_OK;
    sft_code code = sft_runs_begin(tensor, part->slice, &runs, m->err);
    if (code) return code;
    item->len = runs.left * runs.run_bytes;
    item->offset = tensor->offset + runs.position;
    *end = item->offset + item->len;
    if (runs.left <= 1) return SFT_OK;
    code = sfti_read_slice_new(m->plan, &runs, &item->slice, total, m->err);
    if (code) return code;
    uint64_t low, high;
    sfti_read_slice_extent(item->slice, item->slice->rank, &low, &high);
    item->offset = tensor->offset + low;
    *end = tensor->offset + high;
    return SFT_OK;
}

static sft_code part_take(plan_making *m, size_t i) {
    sft_read_plan *plan = m->plan;
    const sft_read_part *part = &m->parts[i];
    sfti_read_item item = { .tensor = part->tensor, .at = part->at, .next = SFTI_READ_NONE };
    sfti_read_file *file = &plan->files[m->first[i]];
    uint64_t end, total, last;
    if (sft_file_find(part->file, part->tensor->name) != part->tensor)
        return part_fail(m, i, SFT_BAD_ARGUMENT, "a tensor of its file, found another");
    sft_code code = part_place(m, i, &item, &end, &total);
    if (code) return code;
    if (part->block >= plan->block_count)
        return part_fail(m, i, SFT_BAD_ARGUMENT, "a block of the plan, found another number");
    if (!sfti_add(part->at, item.len, &last) || last > plan->blocks[part->block].bytes)
        return part_fail(m, i, SFT_BAD_ARGUMENT, "bytes inside its block, found more");
    if (item.len == 0) return SFT_OK;
    uint64_t size = file->source.size; /* of a file opened with header_only, maybe too small */
    if (size != SFT_SIZE_UNKNOWN && end > size)
        return sfti_fail_tensor(m->err, SFT_DATA_TRUNCATED, size, part->tensor->name,
                                "expected bytes up to offset %llu, found the end of the file at "
                                "%llu", (unsigned long long)end, (unsigned long long)size);
    item.block = (uint32_t)part->block;
    item.file = m->first[i];
    sfti_total_add(&file->wanted, item.len);
    file->count++;
    if (!sfti_add(plan->wanted, item.len, &plan->wanted))
        return part_fail(m, i, SFT_SIZE_OVERFLOW, "at most 2^64 - 1 bytes in all, found more");
    sfti_total_add(&plan->total, total);
    plan->items[plan->item_count++] = item;
    return SFT_OK;
}

/* ── Order ───────────────────────────────────────────────────────────────── */

static sft_code plan_sort(plan_making *m) {
    sft_read_plan *plan = m->plan;
    size_t bytes = plan->item_count * sizeof *plan->items;
    numbers_sort(m, plan->item_count, compare_places, m);
    sfti_read_item *sorted = sfti_arena_array(&m->scratch, plan->item_count, sizeof *sorted);
    if (!sorted) return sfti_fail_memory(m->err, bytes);
    for (size_t i = 0; i < plan->item_count; i++) sorted[i] = plan->items[m->order[i]];
    if (bytes) memcpy(plan->items, sorted, bytes);
    for (size_t i = 1; i < plan->file_count; i++)
        plan->files[i].first = plan->files[i - 1].first + plan->files[i - 1].count;
    return SFT_OK;
}

static sft_code plan_find_overlaps(plan_making *m) {
    sfti_read_item *items = m->plan->items;
    numbers_sort(m, m->plan->item_count, compare_targets, items);
    for (size_t i = 1; i < m->plan->item_count; i++) {
        sfti_read_item *before = &items[m->order[i - 1]], *item = &items[m->order[i]];
        if (before->block != item->block) continue;
        if (before->at + before->len > item->at)
            return sfti_fail_tensor(m->err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, item->tensor->name,
                                    "expected parts that do not overlap, found two at byte %llu "
                                    "of block %lu",
                                    (unsigned long long)item->at, (unsigned long)item->block);
        before->next = m->order[i];
    }
    return SFT_OK;
}

/* ── Tasks ───────────────────────────────────────────────────────────────── */

/* Walks over all items, slot after slot. */
static sft_code plan_cut(plan_making *m) {
    sft_read_plan *plan = m->plan;
    sft_read_plan_options *o = &plan->options;
    if (o->slot_bytes == 0) o->slot_bytes = plan->wanted > LARGE_PLAN ? SLOT_LARGE : SLOT_DEFAULT;
    uint64_t most = o->slot_bytes;
    if (plan->in_memory && most > TASK_IN_MEMORY) most = TASK_IN_MEMORY;
    uint64_t share = (plan->wanted / TASKS_WANTED + 1) & ~(uint64_t)(SFTI_READ_PAGE - 1);
    if (share < TASK_LEAST) share = TASK_LEAST;
    plan->task_bytes = most < share ? most : share;
    sfti_read_start start = { 0, 0 };
    while (start.item < plan->item_count) {
        sfti_read_start *tasks = sfti_arena_grow(&plan->arena, plan->tasks, plan->task_count, 1,
                                                 &plan->task_cap, sizeof *tasks);
        if (!tasks) return sfti_fail_memory(m->err, (plan->task_count + 1) * sizeof *tasks);
        plan->tasks = tasks;
        plan->tasks[plan->task_count] = start;
        sfti_read_walk walk = sfti_read_walk_begin(plan, plan->task_count++), end = walk;
        sfti_read_piece piece;
        size_t copies = 0;
        for (; sfti_read_walk_next(&end, &piece); copies += !piece.joined) continue;
        if (copies > plan->most_copies) plan->most_copies = copies;
        for (sfti_read_op op; sfti_read_next_op(&walk, NULL, &op);)
            if (op.kind != SFTI_READ_SLICED) sfti_total_add(&plan->total, op.len);
        start = (sfti_read_start){ end.within, end.item };
    }
    return SFT_OK;
}

/* What the plan keeps of its arguments, and memory for what is made of the parts. */
static sft_code making_begin(plan_making *m, const sft_read_block *blocks, size_t block_count) {
    sft_read_plan *plan = m->plan;
    plan->blocks = sfti_arena_array(&plan->arena, block_count, sizeof *plan->blocks);
    plan->items = sfti_arena_array(&plan->arena, m->count, sizeof *plan->items);
    m->order = sfti_arena_array(&m->scratch, m->count, sizeof *m->order);
    m->sorting = sfti_arena_array(&m->scratch, m->count, sizeof *m->sorting);
    m->first = sfti_arena_array(&m->scratch, m->count, sizeof *m->first);
    if (!plan->blocks || !plan->items || !m->order || !m->sorting || !m->first)
        return sfti_fail_memory(m->err, m->count * sizeof *plan->items);
    if (block_count) memcpy(plan->blocks, blocks, block_count * sizeof *blocks);
    plan->block_count = block_count;
    for (size_t i = 0; i < block_count; i++) plan->based += blocks[i].base != NULL;
    plan->in_memory = plan->based == block_count;
    return SFT_OK;
}

sft_code sft_read_plan_new(const sft_read_part *parts, size_t count, const sft_read_block *blocks,
                           size_t block_count, const sft_read_plan_options *options,
                           sft_read_plan **out, sft_error *err) {
    sft_read_plan_options own;
    if (out) *out = NULL;
    if (!out || (!parts && count) || (!blocks && block_count))
        return sfti_misuse(err, "expected parts, blocks and a place for the plan, found NULL");
    sft_code code = read_plan_take(options, &own, err);
    if (!code) code = plan_options_check(&own, err);
    if (!code) code = plan_check(parts, count, blocks, block_count, err);
    if (code) return code;
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_read_plan *plan = sfti_take(&alloc, sizeof *plan);
    if (!plan) return sfti_fail_memory(err, sizeof *plan);
    *plan = (sft_read_plan){ .arena = { .alloc = alloc }, .options = own };
    plan_making m = { plan, parts, count, { .alloc = alloc }, NULL, NULL, NULL, err };
    code = making_begin(&m, blocks, block_count);
    if (!code) code = plan_find_files(&m);
    for (size_t i = 0; !code && i < count; i++) code = part_take(&m, i);
    for (size_t i = 0; i < plan->file_count; i++)
        plan->forward |= plan->files[i].source.size == SFT_SIZE_UNKNOWN;
    if (!code) code = plan_sort(&m);
    if (!code) code = plan_find_overlaps(&m);
    if (!code) code = plan_cut(&m);
    sfti_arena_free(&m.scratch);
    if (code) sft_read_plan_free(plan);
    else *out = plan;
    return code;
}

void sft_read_plan_free(sft_read_plan *plan) {
    if (!plan) return;
    sft_allocator alloc = plan->arena.alloc;
    sfti_arena_free(&plan->arena);
    sfti_release(&alloc, plan, sizeof *plan);
}

uint64_t sft_read_plan_wanted(const sft_read_plan *plan) {
    return plan->wanted;
}

uint64_t sft_read_plan_total(const sft_read_plan *plan) {
    return plan->total;
}

size_t sft_read_plan_slot_bytes(const sft_read_plan *plan) {
    return (size_t)plan->options.slot_bytes;
}
