#include "base/error.h"
#include "base/tree.h"
#include "info/render.h"

#include <string.h>

#define VALUE_MOST 4096

/* ── Training ── */

static const struct training_row { const char *key; sfti_training_key slot; } training_rows[] = {
    { "tool", TRAIN_TOOL }, { "tool_version", TRAIN_TOOL_VERSION },
    { "started_at", TRAIN_STARTED_AT }, { "finished_at", TRAIN_FINISHED_AT },
    { "duration_s", TRAIN_DURATION_S }, { "epoch", TRAIN_EPOCH }, { "epochs", TRAIN_EPOCHS },
    { "step", TRAIN_STEP }, { "steps", TRAIN_STEPS }, { "images", TRAIN_IMAGES },
    { "images_with_repeats", TRAIN_IMAGES_WITH_REPEATS },
    { "regularisation_images", TRAIN_REGULARISATION_IMAGES },
    { "batch_size", TRAIN_BATCH_SIZE }, { "learning_rate", TRAIN_LEARNING_RATE },
    { "unet_lr", TRAIN_UNET_LR }, { "text_encoder_lr", TRAIN_TEXT_ENCODER_LR },
    { "optimizer", TRAIN_OPTIMIZER }, { "scheduler", TRAIN_SCHEDULER },
    { "resolution", TRAIN_RESOLUTION }, { "network_module", TRAIN_NETWORK_MODULE },
    { "network_args", TRAIN_NETWORK_ARGS }, { "seed", TRAIN_SEED },
    { "clip_skip", TRAIN_CLIP_SKIP }, { "mixed_precision", TRAIN_MIXED_PRECISION },
    { "noise_offset", TRAIN_NOISE_OFFSET }, { "comment", TRAIN_COMMENT },
    { "session_id", TRAIN_SESSION_ID },
};

static bool slot_known(const sfti_value *slot) {
    return slot->text.len > 0 || slot->count > 0;
}

/* A list of numbers, as text encoders' learning rates are. */
static void put_slot_list(sfti_json_writer *w, const sfti_value *slot) {
    sfti_json_open(w, '[');
    for (size_t i = 0; i < slot->count; i++) {
        sfti_value one = sfti_number_value(slot->items[i]);
        sfti_put_value(w, &one);
    }
    sfti_json_close(w, ']');
}

static void put_slot(sfti_json_writer *w, const char *key, const sft_info *info,
                     sfti_training_key which) {
    const sfti_value *slot = &info->training[which];
    if (which == TRAIN_NETWORK_ARGS) {
        sfti_put_json(w, key, slot->text);
        return;
    }
    sfti_json_key(w, key);
    if (!slot_known(slot)) sfti_json_null(w);
    else if (slot->type == SFTI_LIST) put_slot_list(w, slot);
    else sfti_put_value(w, slot);
}

static void put_file_of(sfti_json_writer *w, const char *key, const sft_info *info,
                        sfti_training_key file) {
    sfti_json_key(w, key);
    sfti_json_open(w, '{');
    put_slot(w, "file", info, file);
    put_slot(w, "sha256", info, (sfti_training_key)(file + 1));
    put_slot(w, "autov1", info, (sfti_training_key)(file + 2));
    sfti_json_close(w, '}');
}

static void put_known_count(sfti_json_writer *w, const char *key, uint64_t value) {
    sfti_json_key(w, key);
    if (value == UINT64_MAX) sfti_json_null(w);
    else sfti_json_uint(w, value);
}

static void put_datasets(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "datasets");
    sfti_json_open(w, '[');
    for (const sfti_dataset *one = info->datasets.first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_put_text(w, "folder", one->folder);
        put_known_count(w, "images", one->images);
        put_known_count(w, "repeats", one->repeats);
        sfti_put_text(w, "class_tokens", one->class_tokens);
        sfti_put_maybe(w, "regularisation", one->regularisation);
        sfti_put_text(w, "resolution", one->resolution);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_key(w, "buckets");
    sfti_json_open(w, '[');
    for (const sfti_bucket *one = info->buckets.first; one; one = one->next) {
        sfti_json_open(w, '{');
        sfti_put_text(w, "resolution", one->resolution);
        sfti_put_uint(w, "count", one->count);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

void sfti_render_training(sfti_json_writer *w, const sft_info *info) {
    sfti_json_key(w, "training");
    if (!info->has_training && info->datasets.count == 0 && info->buckets.count == 0) {
        sfti_json_null(w);
        return;
    }
    sfti_json_open(w, '{');
    for (size_t i = 0; i < sizeof training_rows / sizeof *training_rows; i++)
        put_slot(w, training_rows[i].key, info, training_rows[i].slot);
    put_file_of(w, "base", info, TRAIN_BASE_FILE);
    put_file_of(w, "vae", info, TRAIN_VAE_FILE);
    put_datasets(w, info);
    sfti_json_close(w, '}');
}

/* ── The whole ── */

/* A sink that keeps the last byte back: what follows is put before it. */
typedef struct open_end {
    sft_sink *to;
    uint64_t offset; /* handed on */
    char last;
    bool has_last;
} open_end;

static sft_code open_end_put(open_end *end, const void *bytes, size_t len, sft_error *err) {
    sft_code code = sft_sink_write(end->to, end->offset, bytes, len, err);
    if (!code) end->offset += len;
    return code;
}

static sft_code open_end_write(void *ctx, uint64_t offset, const void *bytes, size_t len,
                               sft_error *err) {
    open_end *end = ctx;
    (void)offset;
    if (len == 0) return SFT_OK;
    sft_code code = end->has_last ? open_end_put(end, &end->last, 1, err) : SFT_OK;
    if (!code && len > 1) code = open_end_put(end, bytes, len - 1, err);
    end->last = ((const char *)bytes)[len - 1];
    end->has_last = true;
    return code;
}

/* Files, sums and metadata, all but the closing brace. */
static sft_code put_header(const sft_info *info, const char *path, bool full, sft_sink *sink,
                           sft_error *err) {
    if (info->set)
        return sft_info_json(info->set, path, full ? UINT64_MAX : VALUE_MOST, sink, err);
    sft_allocator alloc = info->arena.alloc;
    const sft_set **sets = sfti_take(&alloc, info->part_count * sizeof *sets);
    if (!sets) return sfti_fail_memory(err, info->part_count * sizeof *sets);
    for (size_t i = 0; i < info->part_count; i++) sets[i] = info->parts[i].set;
    sft_code code = sft_info_sets_json(sets, info->part_count, path, sink, err);
    sfti_release(&alloc, sets, info->part_count * sizeof *sets);
    return code;
}

/* A shard that was opened alone. */
static void put_set(sfti_json_writer *w, const sft_info *info) {
    if (info->shard_of == 0) return;
    sfti_json_key(w, "set");
    sfti_json_open(w, '{');
    sfti_put_text(w, "index", info->shard_index);
    sfti_put_uint(w, "shard", info->shard);
    sfti_put_uint(w, "of", info->shard_of);
    sfti_json_close(w, '}');
}

static void put_label(sfti_json_writer *w, const sft_info *info, sft_span computed) {
    put_set(w, info);
    sfti_render_model(w, info);
    sfti_render_adapter(w, info);
    sfti_render_words(w, info);
    sfti_render_civitai(w, info);
    sfti_render_training(w, info);
    sfti_render_origin(w, info);
    sfti_render_hashes(w, info, computed);
    sfti_render_beside(w, info);
}

static const sft_sink_vtable open_end_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, open_end_write, NULL, NULL
};

/* One result but its closing brace, from *offset on. */
static sft_code label_open(const sft_info *info, const char *path, bool full, sft_span computed,
                           sft_sink *sink, uint64_t *offset, sft_error *err) {
    open_end end = { sink, *offset, 0, false };
    sft_sink kept = { &end, &open_end_sink_vtable, false };
    sfti_json_writer w;
    sft_code code = put_header(info, path, full, &kept, err);
    if (code) return code;
    if (computed.len == 0) computed = info->computed;
    sfti_json_write(&w, sink, end.offset, err);
    w.comma = true;
    put_label(&w, info, computed);
    code = sfti_json_done(&w);
    *offset = w.offset;
    return code;
}

static sft_code put_raw(sft_sink *sink, uint64_t *offset, const char *text, sft_error *err) {
    size_t len = strlen(text);
    sft_code code = sft_sink_write(sink, *offset, text, len, err);
    if (!code) *offset += len;
    return code;
}

static sft_code put_part_results(const sft_info *info, bool full, sft_sink *sink,
                                 uint64_t *offset, sft_error *err) {
    sft_span none = { "", 0 };
    sft_code code = put_raw(sink, offset, ",\"parts\":[", err);
    for (size_t i = 0; !code && i < info->part_count; i++) {
        const sft_info_part *part = &info->parts[i];
        if (i > 0) code = put_raw(sink, offset, ",", err);
        if (!code)
            code = label_open(part->info, part->path, full, none, sink, offset, err);
        if (!code) code = put_raw(sink, offset, "}", err);
    }
    return code ? code : put_raw(sink, offset, "]", err);
}

sft_code sft_info_label_json(const sft_info *info, const char *path, bool full,
                             sft_span computed, sft_sink *sink, sft_error *err) {
    uint64_t offset = 0;
    sft_code code = label_open(info, path, full, computed, sink, &offset, err);
    if (!code && info->part_count > 0)
        code = put_part_results(info, full, sink, &offset, err);
    return code ? code : put_raw(sink, &offset, "}", err);
}

/* ── As a tree ── */

/* One model's facts, an object more in the tree. */
static sft_code label_into(const sft_info *info, const char *path, uint64_t cut, sft_tree *tree,
                           sft_error *err) {
    sfti_json_writer w;
    sft_allocator alloc = info->arena.alloc;
    size_t count = info->set ? 1 : info->part_count, bytes = count * sizeof(sft_set *);
    const sft_set **sets = sfti_take(&alloc, bytes);
    if (!sets) return sfti_fail_memory(err, bytes);
    for (size_t i = 0; i < count; i++) sets[i] = info->set ? info->set : info->parts[i].set;
    sft_code code = sft_sets_tree(sets, count, path, cut, tree, err);
    sfti_release(&alloc, sets, bytes);
    if (code) return code;
    sfti_tree_reopen(tree);
    sfti_json_write_tree(&w, tree, err);
    put_label(&w, info, info->computed);
    return sfti_json_done(&w);
}

/* The parts of a pipeline, each an object of its own; the object they are in stays open. */
static sft_code parts_into(const sft_info *info, uint64_t cut, sft_tree *tree, sft_error *err) {
    sfti_json_writer w;
    sfti_json_write_tree(&w, tree, err);
    sfti_json_key(&w, "parts");
    sfti_json_open(&w, '[');
    sft_code code = sfti_json_done(&w);
    for (size_t i = 0; !code && i < info->part_count; i++) {
        const sft_info_part *part = &info->parts[i];
        code = label_into(part->info, part->path, cut, tree, err);
        if (!code) sfti_tree_close(tree);
    }
    if (!code) sfti_tree_close(tree);
    return code;
}

sft_code sft_info_tree(const sft_info *info, const char *path, uint64_t cut, sft_tree *tree,
                       sft_error *err) {
    sft_code code = label_into(info, path, cut, tree, err);
    if (!code && info->part_count > 0) code = parts_into(info, cut, tree, err);
    if (!code) sfti_tree_close(tree);
    return code;
}
