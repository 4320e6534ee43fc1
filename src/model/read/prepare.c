/* Whether the files of a plan are read past the page cache, and the descriptors for that. */
#include "base/announce.h"
#include "base/error.h"
#include "os/os.h"
#include "read/read.h"

#define DIRECT_LEAST ((uint64_t)64 << 20) /* bytes wanted of a file */
#define CACHED_GAP ((uint64_t)1 << 20)    /* between two pieces that are asked about apart */

/* Bytes that were asked about, and those of them in the page cache; [low, high) is to be asked. */
typedef struct cached_tally {
    int fd;
    uint64_t low, high, len, cached;
} cached_tally;

static bool tally_ask(cached_tally *tally) {
    uint64_t cached, len = tally->high - tally->low;
    if (sfti_os_cached(tally->fd, tally->low, len, &cached)) return false;
    tally->len += len;
    tally->cached += cached;
    return true;
}

/* Less than 90 % of what is wanted of the file is cached. */
static bool access_is_cold(const sft_read_plan *plan, const sfti_read_file *file, int fd) {
    cached_tally tally = { .fd = fd };
    if (file->wanted < DIRECT_LEAST) return false;
    for (size_t i = file->first; i < file->first + file->count; i++) {
        const sfti_read_item *item = &plan->items[i];
        uint64_t low = 0, high = item->len;
        if (item->slice) sfti_read_slice_extent(item->slice, item->slice->rank, &low, &high);
        high = item->offset + (high - low);
        bool first = i == file->first, begins = first || item->offset > tally.high + CACHED_GAP;
        if (begins && !first && !tally_ask(&tally)) return false;
        if (begins) tally.low = item->offset;
        if (high > tally.high) tally.high = high;
    }
    return tally_ask(&tally) && tally.cached < tally.len - tally.len / 10;
}

sft_code sfti_read_access_begin(sfti_read_access *access, const sft_read_plan *plan,
                                sft_error *err) {
    const sft_allocator *alloc = &plan->arena.alloc;
    size_t bytes = plan->file_count * sizeof *access->direct;
    *access = (sfti_read_access){ plan, NULL };
    for (size_t i = 0; i < plan->file_count; i++)
        (void)sfti_source_streamed(&plan->files[i].source);
    if (plan->options.direct == SFT_READ_DIRECT_NEVER || bytes == 0) return SFT_OK;
    access->direct = sfti_take(alloc, bytes);
    if (!access->direct) return sfti_fail_memory(err, bytes);
    for (size_t i = 0; i < plan->file_count; i++) {
        const sfti_read_file *file = &plan->files[i];
        sfti_read_direct *out = &access->direct[i];
        int fd = sfti_source_descriptor(&file->source);
        bool always = plan->options.direct == SFT_READ_DIRECT_ALWAYS;
        out->fd = -1;
        if (fd >= 0 && (always || access_is_cold(plan, file, fd))
            && sfti_os_open_direct(fd, &out->fd))
            out->fd = -1;
        atomic_init(&out->on, out->fd >= 0);
        atomic_init(&out->anywhere, true);
    }
    return SFT_OK;
}

void sfti_read_access_end(sfti_read_access *access) {
    if (!access->direct) return;
    size_t count = access->plan->file_count;
    for (size_t i = 0; i < count; i++)
        if (access->direct[i].fd >= 0) (void)sfti_os_close(access->direct[i].fd);
    sfti_release(&access->plan->arena.alloc, access->direct, count * sizeof *access->direct);
    access->direct = NULL;
}

bool sfti_read_access_is_direct(const sfti_read_access *access) {
    for (size_t i = 0; access->direct && i < access->plan->file_count; i++)
        if (atomic_load(&access->direct[i].on)) return true;
    return false;
}

/* ── Announcements ───────────────────────────────────────────────────────── */

#define ANNOUNCED_CHUNKS 1024 /* of a slice: of more, all between the first and the last */

static void announce_slice(sfti_announcement *all, const sft_source *source,
                           const sfti_read_item *item) {
    const sfti_read_slice *slice = item->slice;
    uint64_t low, high, chunks = slice->runs / slice->chunk, base = item->tensor->offset;
    sfti_read_slice_extent(slice, slice->rank, &low, &high);
    if (chunks > ANNOUNCED_CHUNKS) {
        sfti_announce(all, source, base + low, high - low);
        return;
    }
    uint32_t inner = 0;
    for (uint64_t runs = 1; runs < slice->chunk; inner++) runs *= slice->loops[inner].count;
    sfti_read_slice_extent(slice, inner, &low, &high);
    for (uint64_t i = 0; i < chunks; i++) {
        sft_runs runs;
        sfti_read_slice_runs(slice, i * slice->chunk, &runs);
        sfti_announce(all, source, base + runs.position - slice->position + low, high - low);
    }
}

void sfti_read_announce(const sft_read_plan *plan) {
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < plan->item_count; i++) {
        const sfti_read_item *item = &plan->items[i];
        const sft_source *source = &plan->files[item->file].source;
        if (!sfti_source_expects(source)) continue;
        if (item->slice) announce_slice(&all, source, item);
        else sfti_announce(&all, source, item->offset, item->len);
    }
    sfti_announce_end(&all);
}

/* ── Scratch memory ──────────────────────────────────────────────────────── */

bool sfti_read_scratch_take(const sft_allocator *alloc, size_t threads, sfti_read_scratch *out) {
    out->bytes = threads * SFTI_READ_SCRATCH + SFTI_READ_PAGE;
    out->memory = sfti_take(alloc, out->bytes);
    uintptr_t past = (uintptr_t)out->memory % SFTI_READ_PAGE;
    out->aligned = out->memory ? out->memory + (past ? SFTI_READ_PAGE - past : 0) : NULL;
    return out->memory != NULL;
}

void sfti_read_scratch_free(const sft_allocator *alloc, sfti_read_scratch *scratch) {
    sfti_release(alloc, scratch->memory, scratch->bytes);
    scratch->memory = NULL;
}
