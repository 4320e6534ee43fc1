/* The file that parts would be written as, as a source. Tests: test_import_set.c, test_values.c. */
#include "set/image.h"

#include "base/announce.h"
#include "base/error.h"
#include "bytes/source.h"
#include "os/os.h"
#include "set/set.h"

#include <string.h>

/* The head of the plan, then each tensor's bytes from its part. */
typedef struct image {
    sfti_image_of of;
    sft_plan *plan;
    sft_span head;
    uint32_t *part_at; /* of the plan's tensors, in file order: the part */
    os_mutex mutex;    /* if serial */
} image;

/* The plan's tensor that has the byte, of those that have bytes. */
static size_t image_find(const image *m, uint64_t offset) {
    uint64_t data = offset - m->head.len;
    size_t low = 0, high = sft_plan_tensor_count(m->plan);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sft_plan_tensor_at(m->plan, middle)->end <= data) low = middle + 1;
        else high = middle;
    }
    return low;
}

static sft_code read_image_parts(const image *m, uint64_t offset, char *into, size_t len,
                                 size_t *got, sft_error *err) {
    for (size_t i = image_find(m, offset + *got); *got < len; i++) {
        const sft_tensor *tensor = sft_plan_tensor_at(m->plan, i);
        if (!tensor) break;
        if (tensor->begin == tensor->end) continue;
        const sft_part *part = &m->of.parts[m->part_at[i]];
        uint64_t inside = offset + *got - tensor->offset;
        uint64_t left = tensor->end - tensor->begin - inside;
        size_t some = left < len - *got ? (size_t)left : len - *got;
        sft_code code = sfti_source_all(part->source, part->begin + inside, into + *got, some, err);
        if (code) return code;
        *got += some;
    }
    return SFT_OK;
}

static sft_code read_image(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    image *m = ctx;
    *got = 0;
    if (offset < m->head.len) {
        *got = m->head.len - (size_t)offset < len ? m->head.len - (size_t)offset : len;
        memcpy(into, m->head.data + offset, *got);
    }
    if (*got == len) return SFT_OK;
    if (m->of.serial) sfti_os_mutex_lock(&m->mutex);
    sft_code code = read_image_parts(m, offset, into, len, got, err);
    if (m->of.serial) sfti_os_mutex_unlock(&m->mutex);
    return code;
}

static void expect_image(void *ctx, const sft_run *runs, size_t count) {
    const image *m = ctx;
    sfti_announcement all = { .count = 0 };
    for (size_t n = 0; n < count; n++) {
        uint64_t at = runs[n].offset, end = at + runs[n].len;
        if (at < m->head.len) at = m->head.len;
        for (size_t i = image_find(m, at); at < end; i++) {
            const sft_tensor *tensor = sft_plan_tensor_at(m->plan, i);
            if (!tensor) break;
            const sft_part *part = &m->of.parts[m->part_at[i]];
            uint64_t inside = at - tensor->offset, last = tensor->offset + tensor->end
                                                          - tensor->begin;
            if (last > end) last = end;
            if (last <= at) continue;
            sfti_announce(&all, part->source, part->begin + inside, last - at);
            at = last;
        }
    }
    sfti_announce_end(&all);
}

static void close_image(void *ctx) {
    image *m = ctx;
    void (*close)(void *owner) = m->of.close;
    void *owner = m->of.owner; /* which holds the image, too */
    sft_plan_free(m->plan);
    if (m->of.serial) sfti_os_mutex_free(&m->mutex);
    close(owner);
}

static uint32_t mode_image(void *ctx) {
    const image *m = ctx;
    return m->of.mode(m->of.owner);
}

static const sft_source_vtable image_source_vtable = {
    sizeof(sft_source_vtable), read_image, close_image, expect_image, mode_image
};

static sft_code plan_image(image *m, sft_error *err) {
    const sfti_image_of *of = &m->of;
    sft_spec *specs = sfti_arena_array(of->arena, of->count, sizeof *specs);
    m->part_at = sfti_arena_array(of->arena, of->count, sizeof *m->part_at);
    if (!specs || !m->part_at) return sfti_fail_memory(err, of->count * sizeof *specs);
    for (size_t i = 0; i < of->count; i++) specs[i] = of->parts[i].spec;
    sft_code code = sft_plan_new(specs, of->count, of->metadata, of->metadata_count, of->plan,
                                 &m->plan, err);
    if (code) return code;
    for (size_t i = 0; i < of->count; i++)
        m->part_at[sft_plan_position(m->plan, i)] = (uint32_t)i;
    m->head = sft_plan_head(m->plan);
    if (of->serial && sfti_os_mutex_init(&m->mutex)) {
        sft_plan_free(m->plan);
        return sfti_fail_memory(err, sizeof m->mutex);
    }
    return SFT_OK;
}

sft_code sfti_image_set(const sfti_image_of *of, const char *path, sft_set **out, sft_error *err) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    *out = NULL;
    image *m = sfti_arena_take(of->arena, sizeof *m);
    sft_code code = m ? SFT_OK : sfti_fail_memory(err, sizeof *m);
    if (!code) *m = (image){ .of = *of };
    if (!code) code = plan_image(m, err);
    if (code) {
        of->close(of->owner);
        return code;
    }
    options.alloc = m->of.plan->alloc;
    options.level = m->of.plan->level;
    m->of.plan = NULL; /* the caller's */
    sft_source source = { m, &image_source_vtable, sft_plan_total(m->plan), NULL, false };
    uint64_t input_bytes = m->of.input_bytes; /* closing the source frees m */
    bool is_partial = m->of.is_partial;
    code = sft_open_source(source, &options, &file, err);
    if (!code) code = sft_set_from_file(file, path, out, err);
    if (code) return code;
    (*out)->input_bytes = input_bytes;
    (*out)->is_partial = is_partial;
    (*out)->image = m;
    return SFT_OK;
}

bool sfti_set_is_partial(const sft_set *set) { return set->is_partial; }

const sft_source *sfti_image_values(const sft_set *set, const sft_tensor *tensor) {
    const image *m = set->image;
    if (!m || !m->of.values) return NULL;
    return m->of.values[m->part_at[sft_file_tensor_index(set->files[0], tensor)]];
}
