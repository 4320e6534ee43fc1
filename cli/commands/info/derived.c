/* The mark of what info --save-as writes, and what stays without it. */
#include "commands/info/facts.h"

#include "base/error.h"
#include "label/reads.h"
#include "os/path.h"
#include "support/companions.h"
#include "support/files.h"
#include "support/models.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define ORIGINS_MOST 16

/* ── Origins ── */

typedef struct origins {
    sft_span names[ORIGINS_MOST];        /* of the files, or the site's */
    sft_span sources[ORIGINS_MOST];      /* of the facts that they tell */
    const sft_node *files[ORIGINS_MOST]; /* NULL: the site */
    sfti_derived left[ORIGINS_MOST];     /* what is known without it */
    size_t count;
} origins;

/* The files beside the model, and the site. */
static bool list_origins(cli_saving *saving, origins *all) {
    static const char prefix[] = "sidecar:";
    const sft_node *one = cli_first(saving->root, "sidecars");
    sft_span site = sft_span_cstr("online:civitai");
    *all = (origins){ .names = { site }, .sources = { site }, .count = 1 };
    for (; one && all->count < ORIGINS_MOST; one = one->next) {
        sft_span name = sfti_path_name(sft_node_text(one, "path")), source = sft_span_cstr("own");
        if (name.len == 0) continue;
        if (!cli_is(sft_node_text(one, "kind"), "own.json")) {
            char *text = sfti_arena_take(&saving->arena, sizeof prefix + name.len);
            if (!text) return false;
            memcpy(text, prefix, sizeof prefix - 1);
            memcpy(text + sizeof prefix - 1, name.data, name.len);
            source = (sft_span){ text, sizeof prefix - 1 + name.len };
        }
        if (sft_span_equal(source, saving->own)) continue;
        all->names[all->count] = name;
        all->sources[all->count] = source;
        all->files[all->count++] = one;
    }
    return true;
}

const sft_node *cli_origin(const cli_saving *saving, sft_span origin) {
    sft_span stem = cli_stem_of(cli_name_of(saving->model->path));
    const char *ending = sfti_sidecar_ending(origin, stem);
    const sft_node *one = cli_first(saving->root, "sidecars"), *found = NULL;
    for (; one; one = one->next) {
        sft_span name = sfti_path_name(sft_node_text(one, "path"));
        if (sft_span_equal(name, origin)) return one;
        if (ending && name.len == stem.len + strlen(ending) && cli_ends_with(name, ending)
            && memcmp(name.data, stem.data, stem.len) == 0)
            found = one;
    }
    return found;
}

/* What marks call the place that is written: the file, or the model. */
static sft_span target_of(const cli_saving *saving) {
    static const char prefix[] = "sidecar:";
    sft_span own = saving->own;
    if (own.len < sizeof prefix || memcmp(own.data, prefix, sizeof prefix - 1) != 0)
        return sft_span_cstr(SFTI_DERIVED_MODEL);
    return (sft_span){ own.data + sizeof prefix - 1, own.len - (sizeof prefix - 1) };
}

/* A mark may name one file many times, and be long itself. */
static bool is_apart(cli_saving *saving, const sft_node *one) {
    sft_span target = target_of(saving);
    size_t i = 0;
    if (!sft_span_equal(target, saving->asked_for)) saving->asked_count = 0;
    saving->asked_for = target;
    while (i < saving->asked_count && saving->asked[i] != one) i++;
    if (i < saving->asked_count) return saving->is_apart[i];
    if (i == CLI_ORIGINS_ASKED) i--; /* no model has so many */
    saving->asked[i] = one;
    saving->asked_count = i + 1;
    return saving->is_apart[i] = sfti_label_is_apart(saving->model->info,
                                                     sft_node_text(one, "path"), target);
}

bool cli_origin_tells(cli_saving *saving, sft_span origin) {
    const sft_node *one = cli_origin(saving, origin);
    sft_span match = one ? sft_node_text(one, "match") : (sft_span){ "", 0 };
    return one && sft_node_text(one, "error").len == 0 && !cli_is(match, "differs")
        && !cli_is(match, "size-differs") && !is_apart(saving, one);
}

void cli_put_apart(cli_saving *saving, sfti_json_writer *w) {
    sft_info *info = saving->model->info;
    const sft_node *next = cli_first(saving->root, "sidecars");
    sft_span target = target_of(saving), path = { "", 0 };
    sft_span name = sft_span_cstr(SFTI_DERIVED_MODEL);
    const sft_node *old = cli_origin(saving, target);
    sft_span there = old ? sft_node_text(old, "path") : (sft_span){ NULL, 0 };
    bool told = old && sft_node_text(old, "error").len == 0, any = false;
    for (;; next = next->next) {
        if (told ? sfti_label_is_apart(info, there, name) : sfti_label_names(info, path, target)) {
            if (!any) sfti_json_put_open(w, "apart", '[');
            sfti_json_span(w, name);
            any = true;
        }
        if (!next) break;
        path = sft_node_text(next, "path");
        name = sfti_path_name(path);
    }
    if (any) sfti_json_close(w, ']');
}

/* The origins that a value needs, as one key. */
static sft_span needed(cli_saving *saving, const origins *all, uint64_t digest) {
    size_t len = 0;
    for (size_t i = 0; i < all->count; i++) len += all->names[i].len + 1;
    char *text = sfti_arena_take(&saving->arena, len + 1), *at = text;
    for (size_t i = 0; text && i < all->count; i++) {
        sft_span name = all->names[i];
        if (sfti_derived_has(&all->left[i], digest)) continue;
        if (at > text) *at++ = '/';
        memcpy(at, name.data, name.len);
        at += name.len;
    }
    if (text && at == text) return sft_span_cstr(SFTI_DERIVED_MODEL);
    return (sft_span){ text ? text : "", text ? (size_t)(at - text) : 0 };
}

typedef struct marked {
    uint64_t digest;
    sft_span needs;
    bool is_put;
} marked;

static void put_origins(sfti_json_writer *w, marked *leaves, size_t count) {
    char hex[17];
    sfti_json_open(w, '{');
    for (size_t i = 0; i < count; i++) {
        if (leaves[i].is_put) continue;
        sfti_json_key_span(w, leaves[i].needs);
        sfti_json_open(w, '[');
        for (size_t j = i; j < count; j++) {
            if (leaves[j].is_put || !sft_span_equal(leaves[j].needs, leaves[i].needs)) continue;
            snprintf(hex, sizeof hex, "%016llx", (unsigned long long)leaves[j].digest);
            sfti_json_cstr(w, hex);
            leaves[j].is_put = true;
        }
        sfti_json_close(w, ']');
    }
    sfti_json_close(w, '}');
}

static sft_code derive_text(cli_saving *saving, cli_derived_render *render, void *ctx,
                            sft_buffer *text, sft_error *err) {
    size_t count = saving->count;
    *text = (sft_buffer){ .alloc = saving->c->alloc };
    sft_code code = render(saving, ctx, text, err);
    saving->count = count;
    return code;
}

sft_code cli_derive(cli_saving *saving, cli_derived_render *render, void *ctx, sft_buffer *out,
                    sfti_derived *all, sft_error *err) {
    sft_buffer text = { .alloc = saving->c->alloc };
    sft_sink sink = sft_sink_memory(out);
    sfti_json_writer w;
    sfti_leaves leaves;
    uint64_t digest;
    size_t count = 0;
    origins from;
    sft_code code = list_origins(saving, &from) ? SFT_OK : sfti_fail_memory(err, sizeof from);
    for (size_t i = 0; !code && i < from.count; i++) {
        saving->without = from.sources[i];
        saving->left_out = from.files[i];
        code = derive_text(saving, render, ctx, &text, err);
        sft_span copy = { sfti_arena_copy(&saving->arena, text.data ? text.data : "", text.len),
                          text.len };
        if (!code && (!copy.data || !sfti_derived_of(copy, &saving->arena, &from.left[i])))
            code = sfti_fail_memory(err, text.len);
        sft_buffer_free(&text);
    }
    saving->without = (sft_span){ "", 0 };
    saving->left_out = NULL;
    if (!code) code = derive_text(saving, render, ctx, &text, err);
    sft_span whole = { code ? NULL : sfti_arena_copy(&saving->arena, text.data, text.len),
                       text.len };
    sft_buffer_free(&text);
    if (!code && (!whole.data || !sfti_derived_of(whole, &saving->arena, all)))
        code = sfti_fail_memory(err, whole.len);
    if (code) return code;
    marked *list = sfti_arena_array(&saving->arena, all->count + 1, sizeof *list);
    if (!list) return sfti_fail_memory(err, all->count);
    sfti_leaves_begin(&leaves, whole, &saving->arena);
    while (count < all->count && sfti_leaves_next(&leaves, &digest)) {
        sft_span pointer = { leaves.pointer, leaves.lens[leaves.json.depth] };
        if (sfti_derived_may(pointer))
            list[count++] = (marked){ digest, needed(saving, &from, digest), false };
    }
    for (size_t i = 0; i < count; i++) all->digests[i] = list[i].digest; /* of those alone */
    all->count = count;
    sfti_json_write(&w, &sink, 0, err);
    put_origins(&w, list, count);
    return sfti_json_done(&w);
}

/* ── Without what was written ── */

/* Whether the scalars of the value that follows, to its end, are marked; one without any is not. */
static bool all_marked(const sfti_leaves *at, const char *end, const sfti_derived *set) {
    sfti_leaves inside = *at;
    uint64_t digest;
    bool any = false;
    while (sfti_leaves_next(&inside, &digest) && inside.json.at <= end) {
        if (!sfti_derived_has(set, digest)) return false;
        any = true;
    }
    return any;
}

/* Members one by one: objects are entered, lists and scalars stay or go as a whole. */
static void copy_unmarked(sfti_json_writer *w, sft_span object, const sfti_derived *set,
                          sfti_arena *arena) {
    sfti_leaves at;
    sfti_json *json = &at.json;
    uint64_t digest;
    sfti_leaves_begin(&at, object, arena);
    for (;;) {
        sfti_json_type type = sfti_leaves_event(&at, &digest);
        if (type == SFTI_JSON_END || type == SFTI_JSON_ERROR) return;
        if (type == SFTI_JSON_OBJECT) sfti_json_open(w, '{');
        if (type == SFTI_JSON_OBJECT_END) sfti_json_close(w, '}');
        if (type != SFTI_JSON_KEY) continue;
        sft_span name = json->text;
        sfti_json value = *json, after = *json;
        bool is_object = sfti_json_next(&value) == SFTI_JSON_OBJECT;
        bool is_mark = json->depth == 1 && cli_is(name, SFTI_DERIVED);
        sfti_json_skip(&after);
        sft_span text = { value.begin + value.start,
                          (size_t)(after.at - (value.begin + value.start)) };
        if (is_object && !is_mark) {
            sfti_json_key_span(w, sfti_json_string(json, arena));
            continue;
        }
        if (!is_mark && !all_marked(&at, after.at, set)) cli_raw_write(w, name, text);
        sfti_json_skip(json);
    }
}

static bool is_there(void *ctx, sft_span origin) {
    return cli_origin_tells(ctx, origin);
}

/* Takes out what is told all the same, if only by what the place has of its own. */
static sft_code leave_told(cli_saving *saving, cli_derived_render *render, void *ctx,
                           sfti_derived *marked, sft_error *err) {
    sft_buffer text = { .alloc = saving->c->alloc };
    sft_span own = saving->own;
    sfti_derived told;
    size_t kept = 0;
    saving->own = (sft_span){ "", 0 };
    sft_code code = derive_text(saving, render, ctx, &text, err);
    saving->own = own;
    if (!code && !sfti_derived_of((sft_span){ text.data, text.len }, &saving->arena, &told))
        code = sfti_fail_memory(err, text.len);
    for (size_t i = 0; !code && i < marked->count; i++)
        if (!sfti_derived_has(&told, marked->digests[i]))
            marked->digests[kept++] = marked->digests[i];
    if (!code) marked->count = kept;
    sft_buffer_free(&text);
    return code;
}

sft_code cli_underive(cli_saving *saving, sft_span object, cli_derived_render *render, void *ctx,
                      sfti_derived *marked, sft_span *out, sft_error *err) {
    sft_buffer text = { .alloc = saving->c->alloc };
    sft_sink sink = sft_sink_memory(&text);
    sfti_json_writer w;
    sft_span origins;
    *out = object;
    marked->count = 0;
    if (object.len == 0 || !sfti_derived_find(object, &origins)) return SFT_OK;
    if (!sfti_derived_read(origins, &saving->arena, is_there, saving, marked))
        return sfti_fail_memory(err, origins.len);
    sft_code code = leave_told(saving, render, ctx, marked, err);
    if (code) return code;
    sfti_json_write(&w, &sink, 0, err);
    copy_unmarked(&w, object, marked, &saving->arena);
    code = sfti_json_done(&w);
    char *copy = code ? NULL : sfti_arena_copy(&saving->arena, text.data ? text.data : "",
                                               text.len);
    if (!code && !copy) code = sfti_fail_memory(err, text.len);
    if (copy) *out = (sft_span){ copy, text.len };
    sft_buffer_free(&text);
    return code;
}
