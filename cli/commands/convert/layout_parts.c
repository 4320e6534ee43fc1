/* ls --parts, and which tensors select --part and --prune keep. Tests: tests/cli/layout. */
#include "base/order.h"
#include "commands/convert/layout.h"
#include "safetensors_hash.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

/* Where a group may be of both layouts, it is diffusers'. */
#define AS_IT_IS { .size = sizeof(sft_layout_options), .to = SFT_LAYOUT_SINGLE }

/* ── Digests ── */

static int compare_parts(const void *parts, uint32_t a, uint32_t b) {
    const sft_part *p = parts;
    return sfti_bytes_compare(p[a].spec.name, p[b].spec.name);
}

static sft_code hash_tensor(sft_hasher *hasher, const sft_part *part, cli_progress *progress,
                            const sft_job *job, uint8_t *buffer, size_t cap, sft_error *err) {
    char shape[256];
    const char *dtype = sft_dtype_describe(part->spec.dtype)->name;
    uint64_t left = sfti_layout_bytes(&part->spec), at = part->begin;
    (void)sft_shape_text(part->spec.shape, part->spec.rank, shape, sizeof shape);
    sft_hasher_update(hasher, part->spec.name.data, part->spec.name.len);
    sft_hasher_update(hasher, "", 1);
    sft_hasher_update(hasher, dtype, strlen(dtype) + 1);
    sft_hasher_update(hasher, shape, strlen(shape) + 1);
    while (left > 0) {
        size_t got, n = left < cap ? (size_t)left : cap;
        sft_code code = sft_source_read(part->source, at, buffer, n, &got, err);
        if (!code && got == 0)
            code = sfti_fail(err, SFT_IO_SHRUNK, "expected bytes of a tensor, found the end");
        if (code) return code;
        sft_hasher_update(hasher, buffer, got);
        progress->before += got;
        if (job->tick && !job->tick(job->ctx, 0, progress->all)) return sfti_fail_cancelled(err);
        at += got, left -= got;
    }
    return SFT_OK;
}

/* SHA-256 of a component: of each tensor, in order of names, its name without prefix, dtype and
 * shape, each with a NUL behind it, and bytes. */
static sft_code hash_component(const layout_run *run, const sfti_layout_group *one,
                               cli_progress *progress, const sft_job *job, char hex[72],
                               sft_error *err) {
    enum { CAP = 1 << 20 };
    sfti_arena work = { .alloc = run->c->alloc };
    sft_hasher *hasher = NULL;
    sft_hashes hashes = SFT_HASHES_INIT(UINT32_C(1) << SFT_HASH_SHA256);
    uint32_t *order = sfti_arena_sorted(&work, one->count, compare_parts, one->parts);
    uint8_t *buffer = sfti_arena_array(&work, CAP, 1);
    sft_code code = order && buffer
                  ? sft_hasher_new(UINT32_C(1) << SFT_HASH_SHA256, &run->c->alloc, &hasher, err)
                  : sfti_fail_memory(err, CAP);
    for (size_t i = 0; !code && i < one->count; i++)
        code = hash_tensor(hasher, &one->parts[order[i]], progress, job, buffer, CAP, err);
    if (!code) {
        sft_hasher_result(hasher, &hashes);
        const char *text = sft_hashes_get(&hashes, SFT_HASH_SHA256);
        size_t len = text ? strlen(text) : 0;
        memcpy(hex, text ? text : "", len < 71 ? len : 71);
        hex[len < 71 ? len : 71] = '\0';
    }
    sft_hasher_free(hasher);
    sfti_arena_free(&work);
    return code;
}

/* ── ls --parts ── */

static uint64_t bytes_of(const sfti_layout_group *one) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < one->count; i++) bytes += sfti_layout_bytes(&one->parts[i].spec);
    return bytes;
}

static sft_span name_of(const sfti_layout_group *one) {
    return one->part ? one->name : sft_span_cstr("not known");
}

/* Tensors that only training needs: those of EMA, or the others. */
static void list_stray(const layout_run *run, size_t *tensors, uint64_t *bytes, bool ema) {
    *tensors = 0, *bytes = 0;
    for (size_t i = 0; i < run->parts.count; i++) {
        sft_span name = run->parts.parts[i].spec.name;
        bool is = name.len > 10 && memcmp(name.data, "model_ema.", 10) == 0;
        if (!sfti_layout_is_stray(&run->conversion->layouts, name) || is != ema) continue;
        ++*tensors;
        *bytes += sfti_layout_bytes(&run->parts.parts[i].spec);
    }
}

static sft_code list_parts(layout_run *run, const char *operand, sft_error *err) {
    cli *c = run->c;
    char *operands[1] = { (char *)(uintptr_t)operand };
    sft_code code = layout_open(run, operands, 1, false, (sft_layout_options)AS_IT_IS, err);
    char (*digests)[72] = sfti_arena_array(&run->parts.arena, SFTI_LAYOUT_GROUPS, sizeof *digests);
    if (code || !digests) return code ? code : sfti_fail_memory(err, sizeof *digests);
    const sfti_layout_groups *groups = &run->conversion->groups;
    const sfti_layout_model *model = run->conversion->model;
    cli_progress progress;
    sft_job job = cli_progress_begin(&progress, c, operand);
    for (size_t i = 0; i < groups->count; i++) progress.all += bytes_of(&groups->items[i]);
    for (size_t i = 0; !code && i < groups->count; i++)
        code = hash_component(run, &groups->items[i], &progress, &job, digests[i], err);
    cli_progress_end(&progress);
    if (code) return code;
    size_t tensors;
    uint64_t bytes;
    char size[CLI_NUMBER_SIZE];
    cli_object object;
    sfti_json_writer *w = NULL;
    if (cli_is_json(c)) {
        w = cli_object_begin(&object, c, operand);
        if (model) sfti_json_put_text(w, "architecture", model->id);
        else sfti_json_put_null(w, "architecture");
        sfti_json_put_open(w, "parts", '[');
    } else {
        cli_path(&c->out, operand, ":\n");
    }
    for (size_t i = 0; i < groups->count; i++) {
        const sfti_layout_group *one = &groups->items[i];
        if (w) {
            sfti_json_open(w, '{');
            sfti_json_put_text(w, "name", name_of(one));
            sfti_json_put_text(w, "prefix", one->prefix);
            sfti_json_put_uint(w, "tensors", one->count);
            sfti_json_put_uint(w, "bytes", bytes_of(one));
            sfti_json_put_cstr(w, "sha256", digests[i]);
            sfti_json_close(w, '}');
            continue;
        }
        cli_text(&c->out, "  ");
        cli_escaped(&c->out, name_of(one));
        cli_printf(&c->out, ": %zu tensor%s, ", one->count, one->count == 1 ? "" : "s");
        cli_text(&c->out, cli_size_text(bytes_of(one), size));
        if (one->prefix.len > 0) cli_text(&c->out, ", behind ");
        cli_escaped(&c->out, one->prefix);
        cli_printf(&c->out, ", %s\n", digests[i]);
    }
    for (int ema = 1; ema >= 0; ema--) {
        list_stray(run, &tensors, &bytes, ema);
        if (tensors == 0) continue;
        const char *name = ema ? "ema" : "stray";
        if (w) {
            sfti_json_open(w, '{');
            sfti_json_put_cstr(w, "name", name);
            sfti_json_put_uint(w, "tensors", tensors);
            sfti_json_put_uint(w, "bytes", bytes);
            sfti_json_close(w, '}');
            continue;
        }
        cli_printf(&c->out, "  %s: %zu tensor%s, ", name, tensors, tensors == 1 ? "" : "s");
        cli_text(&c->out, cli_size_text(bytes, size));
        cli_text(&c->out, "\n");
    }
    if (!w) return SFT_OK;
    sfti_json_close(w, ']');
    cli_object_end(&object);
    return SFT_OK;
}

void layout_list(cli *c, char **operands, size_t count) {
    for (size_t i = 0; i < count && !cli_is_over(c); i++) {
        sft_error err = SFT_ERROR_INIT;
        layout_run run = { .c = c, .parts = { .arena = { .alloc = c->alloc } } };
        sft_code code = list_parts(&run, operands[i], &err);
        if (code) cli_fail_input(c, run.blame ? run.blame : operands[i], &err);
        layout_close(&run);
    }
}

/* ── select ── */

sft_code layout_keep(cli *c, const cli_parts *parts, bool *keep, sft_error *err) {
    layout_run run = { .c = c, .parts = { .arena = { .alloc = c->alloc } } };
    size_t found = 0;
    sft_code code = layout_find(&run, parts, false, (sft_layout_options)AS_IT_IS, err);
    const sft_layout_conversion *found_in = run.conversion;
    for (size_t i = 0; !code && i < parts->count; i++) {
        sft_span name = parts->parts[i].spec.name;
        bool stray = sfti_layout_is_stray(&found_in->layouts, name);
        sft_span prefix = sfti_layout_prefix_of(&found_in->layouts, name);
        if (c->set.prune && stray) keep[i] = false;
        if (!c->set.part) continue;
        bool of_part = false;
        for (size_t k = 0; k < found_in->groups.count && !stray; k++)
            of_part = of_part || (found_in->groups.items[k].part
                                  && cli_is(found_in->groups.items[k].name, c->set.part)
                                  && sft_span_equal(found_in->groups.items[k].prefix, prefix));
        keep[i] = keep[i] && of_part;
        found += of_part;
    }
    if (!code && c->set.part && found == 0)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected a part \"%s\" in this model, found "
                         "none; \"safetensors ls --parts\" lists them", c->set.part);
    layout_close(&run);
    return code;
}
