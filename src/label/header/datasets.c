/* ss_datasets of kohya's scripts: folders, buckets and subsets of the training data. */
#include "label/header/header.h"

#include "base/checked.h"

#include <stddef.h>
#include <string.h>

#define DATASETS_MOST 256
#define BUCKETS_MOST 1024

/* One entry of ss_datasets. */
typedef struct data_set {
    struct data_set *next;
    uint64_t width, height, images, regular, batch, repeats;
    sft_span folder;
    size_t parts;
} data_set;

/* One of its subsets: what waits until all of it is read. */
typedef struct data_part {
    struct data_part *next;
    data_set *set;
    sfti_dataset *record;
    sft_span class_source, prefix, prefix_source;
} data_part;

/* What one walk gathers. */
typedef struct data_sets {
    sfti_list sets, parts;
    sfti_bucket *bucket;  /* at hand, or NULL */
    uint64_t width;       /* of the bucket */
    sfti_dataset *record; /* of the part or folder at hand, or NULL */
} data_sets;

static sfti_dataset *new_record(sft_info *info, int regularisation) {
    if (info->datasets.count >= DATASETS_MOST) return NULL;
    info->has_training = true;
    return SFTI_PUSH(info, &info->datasets, sfti_dataset, .images = UINT64_MAX,
                     .repeats = UINT64_MAX, .regularisation = regularisation);
}

static sft_span size_text(sft_info *info, uint64_t width, uint64_t height) {
    sft_span none = { "", 0 };
    if (width == 0 || width > 1000000 || height > 1000000) return none;
    return sfti_info_text(info, "%llux%llu", (unsigned long long)width,
                          (unsigned long long)(height ? height : width));
}

/* row->field: where in a struct, which may be NULL, a whole number goes. */
static void put_number(const sfti_cursor *at, void *into) {
    if (into && at->json->type == SFTI_JSON_UINT)
        *(uint64_t *)(void *)((char *)into + at->row->field) = at->json->value;
}

/* ── Buckets ── */

static void begin_bucket(sfti_cursor *at) {
    data_sets *data = at->ctx;
    data->bucket = NULL;
    data->width = 0;
    if (at->json->type == SFTI_JSON_OBJECT && at->info->buckets.count < BUCKETS_MOST)
        data->bucket = SFTI_PUSH(at->info, &at->info->buckets, sfti_bucket, .count = 0);
}

static void bucket_width(sfti_cursor *at) {
    put_number(at, at->ctx);
}

static void bucket_height(sfti_cursor *at) {
    data_sets *data = at->ctx;
    if (data->bucket) data->bucket->resolution = size_text(at->info, data->width, sfti_at_uint(at));
}

static void bucket_count(sfti_cursor *at) {
    put_number(at, ((data_sets *)at->ctx)->bucket);
}

/* ── ss_dataset_dirs, ss_reg_dataset_dirs ── */

/* row->field: regularisation */
static void begin_folder(sfti_cursor *at) {
    data_sets *data = at->ctx;
    bool object = at->json->type == SFTI_JSON_OBJECT;
    data->record = object ? new_record(at->info, at->row->field) : NULL;
    if (data->record) data->record->folder = sfti_info_copy(at->info, at->key);
}

static void record_number(sfti_cursor *at) {
    put_number(at, ((data_sets *)at->ctx)->record);
}

/* ── ss_datasets ── */

static void begin_set(sfti_cursor *at) {
    data_sets *data = at->ctx;
    if (at->json->type == SFTI_JSON_OBJECT && data->sets.count < DATASETS_MOST)
        SFTI_PUSH(at->info, &data->sets, data_set, .repeats = UINT64_MAX);
}

static void set_number(sfti_cursor *at) {
    put_number(at, ((data_sets *)at->ctx)->sets.last);
}

static void set_folder(sfti_cursor *at) {
    data_set *set = ((data_sets *)at->ctx)->sets.last;
    if (set && at->json->type == SFTI_JSON_STRING) set->folder = sfti_leaf_name(at->text);
}

static void begin_part(sfti_cursor *at) {
    data_sets *data = at->ctx;
    data->record = NULL;
    data_set *set = data->sets.last;
    if (at->json->type != SFTI_JSON_OBJECT || !set) return;
    data->record = new_record(at->info, -1);
    if (!data->record) return;
    data->record->set = data->sets.count;
    set->parts++;
    SFTI_PUSH(at->info, &data->parts, data_part, .set = set, .record = data->record);
}

/* The part at hand if a text is told of it, else NULL. */
static data_part *part_told(const sfti_cursor *at) {
    const data_sets *data = at->ctx;
    return data->record && sfti_at_text(at) ? data->parts.last : NULL;
}

static void part_folder(sfti_cursor *at) {
    data_part *part = part_told(at);
    if (part) part->record->folder = sfti_leaf_name(at->text);
}

static void part_class(sfti_cursor *at) {
    data_part *part = part_told(at);
    if (!part) return;
    part->record->class_tokens = at->text;
    part->class_source = sfti_cursor_source(at);
}

static void part_prefix(sfti_cursor *at) {
    data_part *part = part_told(at);
    if (!part) return;
    part->prefix = at->text;
    part->prefix_source = sfti_cursor_source(at);
}

static void part_regular(sfti_cursor *at) {
    const data_sets *data = at->ctx;
    if (data->record && sfti_at_bool(at) >= 0) data->record->regularisation = sfti_at_bool(at);
}

/* ── Keys ── */

static const size_t width_place = offsetof(data_sets, width);
static const size_t count_place = offsetof(sfti_bucket, count);
static const size_t record_places[] = { offsetof(sfti_dataset, images),
                                        offsetof(sfti_dataset, repeats) };
static const size_t set_places[] = {
    offsetof(data_set, width), offsetof(data_set, height), offsetof(data_set, images),
    offsetof(data_set, regular), offsetof(data_set, batch), offsetof(data_set, repeats),
};
static const sfti_key_take dataset_takes[] = {
    { "bucket", begin_bucket, NULL, NULL }, { "bucket_width", bucket_width, "width", &width_place },
    { "bucket_height", bucket_height, NULL, NULL },
    { "bucket_count", bucket_count, "count", &count_place },
    { "folder", begin_folder, "- regularisation", NULL },
    { "record", record_number, "images repeats", record_places },
    { "set", begin_set, NULL, NULL },
    { "of_set", set_number, "width height images regular batch repeats", set_places },
    { "set_folder", set_folder, NULL, NULL }, { "part", begin_part, NULL, NULL },
    { "part_folder", part_folder, NULL, NULL }, { "part_class", part_class, NULL, NULL },
    { "part_prefix", part_prefix, NULL, NULL }, { "part_regular", part_regular, NULL, NULL },
};
SFTI_KEYS_OF(sfti_dataset_keys, "datasets", dataset_takes);
SFTI_KEYS_OF(sfti_dirs_keys, "dataset-dirs", dataset_takes);
SFTI_KEYS_OF(sfti_reg_dirs_keys, "reg-dataset-dirs", dataset_takes);
SFTI_KEYS_OF(sfti_bucket_keys, "buckets", dataset_takes);

/* ── When all is read ── */

static void end_parts(sft_info *info, const data_sets *data) {
    int group = 0;
    for (const data_part *part = data->parts.first; part; part = part->next) {
        const sfti_dataset *record = part->record;
        part->record->resolution = size_text(info, part->set->width, part->set->height);
        if (record->regularisation == 1) continue;
        if (record->class_tokens.len > 0)
            sfti_info_trigger_in(info, record->class_tokens, part->class_source, 80, group++,
                                 record->folder);
        sft_span prefix = sfti_trim(part->prefix);
        while (prefix.len > 0 && prefix.data[prefix.len - 1] == ',')
            prefix.len--, prefix = sfti_trim(prefix);
        if (part->prefix.len > 0)
            sfti_info_trigger_in(info, prefix, part->prefix_source, 75, group++, record->folder);
    }
}

/* musubi-tuner's sets have no subsets. */
static void end_sets(sft_info *info, const data_sets *data) {
    for (const data_set *set = data->sets.first; set; set = set->next) {
        if (set->parts > 0 || (set->folder.len == 0 && set->repeats == UINT64_MAX)) continue;
        sfti_dataset *record = new_record(info, -1);
        if (!record) return;
        record->folder = set->folder;
        record->repeats = set->repeats;
        record->resolution = size_text(info, set->width, set->height);
    }
}

static void train_sum(sft_info *info, sfti_training_key key, uint64_t sum) {
    if (sum > 0 && sum < UINT64_MAX) sfti_info_train_uint(info, key, sum);
}

void sfti_kohya_batch(sft_info *info, uint64_t device) {
    sft_span text;
    uint64_t steps = 1;
    if (sfti_info_metadata(info, "ss_gradient_accumulation_steps", &text)
        && !sfti_parse_uint(text, &steps))
        return;
    if (device > 0 && device <= 1000000 && steps > 0 && steps <= 1000000)
        sfti_info_train_uint(info, TRAIN_BATCH_SIZE, device * steps);
}

static void sum_sets(sft_info *info, const data_sets *data) {
    uint64_t images = 0, regular = 0;
    const data_set *first = data->sets.first, *largest = first;
    bool one_batch = true;
    for (const data_set *set = first; set; set = set->next) {
        one_batch = one_batch && set->batch == first->batch;
        if (!sfti_add(images, set->images, &images)) images = UINT64_MAX;
        if (!sfti_add(regular, set->regular, &regular)) regular = UINT64_MAX;
        if (set->width < 1000000 && set->height < 1000000
            && set->width * set->height > largest->width * largest->height)
            largest = set;
    }
    if (!first || data->sets.count == DATASETS_MOST) return; /* sums of some are none */
    train_sum(info, TRAIN_IMAGES_WITH_REPEATS, images);
    train_sum(info, TRAIN_REGULARISATION_IMAGES, regular);
    if (one_batch) sfti_kohya_batch(info, first->batch);
    sft_span size = size_text(info, largest->width, largest->height);
    sfti_info_train(info, TRAIN_RESOLUTION, sfti_text_value(size));
    sfti_info_add_text(info, SFT_FACT_RESOLUTION, size, sft_span_cstr("header:ss_datasets"), 70);
}

/* Only the last part of a folder's path is told: several of one set are called alike, too. */
static bool same_images(const sfti_dataset *a, const sfti_dataset *b) {
    return a->set != b->set && a->images == b->images && a->folder.len > 0
        && sft_span_equal(a->folder, b->folder);
}

void sfti_kohya_datasets(sft_info *info) {
    data_sets data;
    memset(&data, 0, sizeof data);
    if (sfti_walk_key(info, "ss_datasets", SFTI_KEY_ROWS(sfti_dataset_keys), &data)) {
        end_parts(info, &data);
        end_sets(info, &data);
        sum_sets(info, &data);
    }
    if (info->datasets.count == 0)
        (void)sfti_walk_key(info, "ss_dataset_dirs", SFTI_KEY_ROWS(sfti_dirs_keys), &data);
    (void)sfti_walk_key(info, "ss_reg_dataset_dirs", SFTI_KEY_ROWS(sfti_reg_dirs_keys), &data);
    (void)sfti_walk_key(info, "ss_bucket_info", SFTI_KEY_ROWS(sfti_bucket_keys), &data);
    if (info->buckets.count > 0) info->has_training = true;
    uint64_t sum = 0;
    if (info->datasets.count == DATASETS_MOST) return;
    for (const sfti_dataset *record = info->datasets.first; record; record = record->next) {
        const sfti_dataset *other = info->datasets.first; /* of the same images, in another size */
        while (other != record && !same_images(other, record)) other = other->next;
        if (other == record && record->regularisation != 1 && record->images != UINT64_MAX
            && !sfti_add(sum, record->images, &sum)) return;
    }
    train_sum(info, TRAIN_IMAGES, sum);
}
