#include "info/header/header.h"

#include "base/checked.h"

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

typedef struct data_walk {
    sfti_list sets, parts;
    sfti_bucket *bucket;
    uint64_t width;
    int regularisation;
    sfti_dataset *record;
} data_walk;

typedef enum data_field {
    SET_BEGIN, SET_WIDTH, SET_HEIGHT, SET_SIDE, SET_IMAGES, SET_REGULAR, SET_BATCH, SET_FOLDER,
    SET_REPEATS, PART_BEGIN, PART_IMAGES, PART_REPEATS, PART_FOLDER, PART_CLASS, PART_PREFIX,
    PART_REGULAR, BUCKET_BEGIN, BUCKET_WIDTH, BUCKET_HEIGHT, BUCKET_COUNT
} data_field;

static sfti_dataset *new_record(sft_info *info, int regularisation) {
    if (info->datasets.count >= DATASETS_MOST) return NULL;
    sfti_dataset *record = sfti_info_push(info, &info->datasets, sizeof *record);
    if (!record) return NULL;
    record->images = record->repeats = UINT64_MAX;
    record->regularisation = regularisation;
    info->has_training = true;
    return record;
}

static sft_span size_text(sft_info *info, uint64_t width, uint64_t height) {
    sft_span none = { "", 0 };
    if (width == 0 || width > 1000000 || height > 1000000) return none;
    return sfti_info_text(info, "%llux%llu", (unsigned long long)width,
                          (unsigned long long)(height ? height : width));
}

/* ── Buckets ── */

static void take_bucket(sfti_walk *walk, const sfti_walk_row *row) {
    data_walk *data = walk->ctx;
    uint64_t value = walk->json.type == SFTI_JSON_UINT ? walk->json.value : 0;
    sft_info *info = walk->info;
    switch (row->field) {
    case BUCKET_BEGIN:
        data->bucket = NULL;
        data->width = 0;
        if (walk->json.type == SFTI_JSON_OBJECT && info->buckets.count < BUCKETS_MOST)
            data->bucket = sfti_info_push(info, &info->buckets, sizeof *data->bucket);
        break;
    case BUCKET_WIDTH: data->width = value; break;
    case BUCKET_HEIGHT:
        if (data->bucket) data->bucket->resolution = size_text(info, data->width, value);
        break;
    default:
        if (data->bucket) data->bucket->count = value;
    }
}

static const sfti_walk_row bucket_rows[] = {
    { "/buckets/*", take_bucket, BUCKET_BEGIN, 0, NULL },
    { "/buckets/*/resolution/0", take_bucket, BUCKET_WIDTH, 0, NULL },
    { "/buckets/*/resolution/1", take_bucket, BUCKET_HEIGHT, 0, NULL },
    { "/buckets/*/count", take_bucket, BUCKET_COUNT, 0, NULL },
};

/* ── ss_dataset_dirs, ss_reg_dataset_dirs ── */

static void take_folder(sfti_walk *walk, const sfti_walk_row *row) {
    data_walk *data = walk->ctx;
    if (row->field == PART_BEGIN) {
        data->record = NULL;
        if (walk->json.type == SFTI_JSON_OBJECT)
            data->record = new_record(walk->info, data->regularisation);
        if (data->record) data->record->folder = sfti_info_copy(walk->info, walk->key);
    } else if (data->record && walk->json.type == SFTI_JSON_UINT) {
        if (row->field == PART_IMAGES) data->record->images = walk->json.value;
        else data->record->repeats = walk->json.value;
    }
}

static const sfti_walk_row folder_rows[] = {
    { "/*", take_folder, PART_BEGIN, 0, NULL },
    { "/*/img_count", take_folder, PART_IMAGES, 0, NULL },
    { "/*/n_repeats", take_folder, PART_REPEATS, 0, NULL },
};

/* ── ss_datasets ── */

static void take_set(sfti_walk *walk, const sfti_walk_row *row) {
    data_walk *data = walk->ctx;
    data_set *set = data->sets.last;
    bool number = walk->json.type == SFTI_JSON_UINT;
    uint64_t value = number ? walk->json.value : 0;
    if (row->field == SET_BEGIN) {
        if (walk->json.type != SFTI_JSON_OBJECT || data->sets.count >= DATASETS_MOST) return;
        set = sfti_info_push(walk->info, &data->sets, sizeof *set);
        if (set) set->repeats = UINT64_MAX;
        return;
    }
    if (!set) return;
    switch (row->field) {
    case SET_WIDTH: set->width = value; break;
    case SET_HEIGHT: set->height = value; break;
    case SET_SIDE:
        if (number) set->width = set->height = value;
        break;
    case SET_IMAGES: set->images = value; break;
    case SET_REGULAR: set->regular = value; break;
    case SET_BATCH: set->batch = value; break;
    case SET_REPEATS:
        if (number) set->repeats = value;
        break;
    case SET_FOLDER:
        if (walk->json.type == SFTI_JSON_STRING) set->folder = sfti_leaf_name(walk->text);
        break;
    }
}

static void begin_part(sfti_walk *walk) {
    data_walk *data = walk->ctx;
    data->record = NULL;
    if (walk->json.type != SFTI_JSON_OBJECT || !data->sets.last) return;
    data->record = new_record(walk->info, -1);
    if (!data->record) return;
    data_part *part = sfti_info_push(walk->info, &data->parts, sizeof *part);
    if (!part) return;
    part->set = data->sets.last;
    part->set->parts++;
    part->record = data->record;
}

static void take_part_text(sfti_walk *walk, const sfti_walk_row *row, data_part *part) {
    if (walk->json.type != SFTI_JSON_STRING || sfti_is_placeholder(walk->text)) return;
    if (row->field == PART_FOLDER) {
        part->record->folder = sfti_leaf_name(walk->text);
    } else if (row->field == PART_CLASS) {
        part->record->class_tokens = walk->text;
        part->class_source = sfti_walk_source(walk);
    } else {
        part->prefix = walk->text;
        part->prefix_source = sfti_walk_source(walk);
    }
}

static void take_part(sfti_walk *walk, const sfti_walk_row *row) {
    data_walk *data = walk->ctx;
    if (row->field == PART_BEGIN) {
        begin_part(walk);
        return;
    }
    data_part *part = data->parts.last;
    if (!data->record || !part) return;
    bool number = walk->json.type == SFTI_JSON_UINT;
    switch (row->field) {
    case PART_IMAGES:
        if (number) data->record->images = walk->json.value;
        break;
    case PART_REPEATS:
        if (number) data->record->repeats = walk->json.value;
        break;
    case PART_REGULAR:
        if (walk->json.type == SFTI_JSON_TRUE) data->record->regularisation = 1;
        if (walk->json.type == SFTI_JSON_FALSE) data->record->regularisation = 0;
        break;
    default: take_part_text(walk, row, part);
    }
}

static const sfti_walk_row set_rows[] = {
    { "/*", take_set, SET_BEGIN, 0, NULL },
    { "/*/resolution", take_set, SET_SIDE, 0, NULL },
    { "/*/resolution/0", take_set, SET_WIDTH, 0, NULL },
    { "/*/resolution/1", take_set, SET_HEIGHT, 0, NULL },
    { "/*/num_train_images", take_set, SET_IMAGES, 0, NULL },
    { "/*/num_train_items", take_set, SET_IMAGES, 0, NULL },
    { "/*/num_reg_images", take_set, SET_REGULAR, 0, NULL },
    { "/*/batch_size_per_device", take_set, SET_BATCH, 0, NULL },
    { "/*/num_repeats", take_set, SET_REPEATS, 0, NULL },
    { "/*/image_directory", take_set, SET_FOLDER, 0, NULL },
    { "/*/video_directory", take_set, SET_FOLDER, 0, NULL },
    { "/*/subsets/*", take_part, PART_BEGIN, 0, NULL },
    { "/*/subsets/*/img_count", take_part, PART_IMAGES, 0, NULL },
    { "/*/subsets/*/num_repeats", take_part, PART_REPEATS, 0, NULL },
    { "/*/subsets/*/image_dir", take_part, PART_FOLDER, 0, NULL },
    { "/*/subsets/*/metadata_file", take_part, PART_FOLDER, 0, NULL },
    { "/*/subsets/*/class_tokens", take_part, PART_CLASS, 0, NULL },
    { "/*/subsets/*/caption_prefix", take_part, PART_PREFIX, 0, NULL },
    { "/*/subsets/*/is_reg", take_part, PART_REGULAR, 0, NULL },
    { "/*/bucket_info/buckets/*", take_bucket, BUCKET_BEGIN, 0, NULL },
    { "/*/bucket_info/buckets/*/resolution/0", take_bucket, BUCKET_WIDTH, 0, NULL },
    { "/*/bucket_info/buckets/*/resolution/1", take_bucket, BUCKET_HEIGHT, 0, NULL },
    { "/*/bucket_info/buckets/*/count", take_bucket, BUCKET_COUNT, 0, NULL },
};

/* ── When all is read ── */

static sft_span without_commas(sft_span text) {
    text = sfti_trim(text);
    while (text.len > 0 && text.data[text.len - 1] == ',') text.len--, text = sfti_trim(text);
    return text;
}

static void end_parts(sft_info *info, const data_walk *data) {
    int group = 0;
    for (const data_part *part = data->parts.first; part; part = part->next) {
        const sfti_dataset *record = part->record;
        part->record->resolution = size_text(info, part->set->width, part->set->height);
        if (record->regularisation == 1) continue;
        if (record->class_tokens.len > 0)
            sfti_info_trigger_in(info, record->class_tokens, part->class_source, 80, group++,
                                 record->folder);
        if (part->prefix.len > 0)
            sfti_info_trigger_in(info, without_commas(part->prefix), part->prefix_source, 75,
                                 group++, record->folder);
    }
}

/* musubi-tuner's sets have no subsets. */
static void end_sets(sft_info *info, const data_walk *data) {
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
    if (sum == 0 || sum == UINT64_MAX) return;
    sft_span text = sfti_info_text(info, "%llu", (unsigned long long)sum);
    sfti_info_train(info, key, sfti_number_value(text));
}

static void sum_sets(sfti_header *header, const data_walk *data) {
    uint64_t images = 0, regular = 0;
    const data_set *first = data->sets.first, *largest = first;
    for (const data_set *set = first; set; set = set->next) {
        if (!sfti_add(images, set->images, &images)) images = 0;
        if (!sfti_add(regular, set->regular, &regular)) regular = 0;
        if (set->width < 1000000 && set->height < 1000000
            && set->width * set->height > largest->width * largest->height)
            largest = set;
    }
    if (!first) return;
    train_sum(header->info, TRAIN_IMAGES_WITH_REPEATS, images);
    train_sum(header->info, TRAIN_REGULARISATION_IMAGES, regular);
    train_sum(header->info, TRAIN_BATCH_SIZE, first->batch);
    sft_span size = size_text(header->info, largest->width, largest->height);
    sfti_info_train(header->info, TRAIN_RESOLUTION, sfti_text_value(size));
    sfti_info_add_text(header->info, SFT_FACT_RESOLUTION, size, header->source, 70);
}

/* Whether an earlier record is of the same folder: another resolution of the same images. */
static bool counted(const sft_info *info, const sfti_dataset *record) {
    for (const sfti_dataset *other = info->datasets.first; other != record; other = other->next)
        if (other->folder.len > 0 && sft_span_equal(other->folder, record->folder)) return true;
    return false;
}

static void count_set_images(sft_info *info) {
    uint64_t sum = 0;
    for (const sfti_dataset *record = info->datasets.first; record; record = record->next)
        if (record->regularisation != 1 && record->images != UINT64_MAX
            && !counted(info, record) && !sfti_add(sum, record->images, &sum))
            return;
    train_sum(info, TRAIN_IMAGES, sum);
}

static void walk_folders(sfti_header *header, const char *key, int regularisation) {
    data_walk data;
    memset(&data, 0, sizeof data);
    data.regularisation = regularisation;
    if (sfti_header_at(header, key))
        sfti_info_walk(header->info, header->value, header->source, SFTI_WALK(folder_rows),
                       &data);
}

void sfti_kohya_datasets(sfti_header *header) {
    data_walk data;
    sft_info *info = header->info;
    memset(&data, 0, sizeof data);
    if (sfti_header_at(header, "ss_datasets")) {
        sfti_info_walk(info, header->value, header->source, SFTI_WALK(set_rows), &data);
        end_parts(info, &data);
        end_sets(info, &data);
        sum_sets(header, &data);
    }
    if (info->datasets.count == 0) walk_folders(header, "ss_dataset_dirs", 0);
    walk_folders(header, "ss_reg_dataset_dirs", 1);
    if (sfti_header_at(header, "ss_bucket_info"))
        sfti_info_walk(info, header->value, header->source, SFTI_WALK(bucket_rows), &data);
    if (info->buckets.count > 0) info->has_training = true;
    count_set_images(info);
}
