/* ss_tag_frequency: how often the captions of each folder have a tag. */
#include "label/words/triggers.h"

#include "os/os.h"

#include <string.h>

#define COUNT_MOST (UINT64_C(1) << 32)

/* ── Tables ── */

static size_t count_bytes(sft_span text, char byte, size_t most) {
    size_t count = 0;
    for (sft_span at = sfti_find_byte(text, byte); at.data && count < most;
         at = sfti_find_byte(sfti_from(at, 1), byte))
        count++;
    return count;
}

static sft_span folder_name_at(const void *ctx, uint32_t entry) {
    return ((const sfti_tags *)ctx)->folders[entry].name;
}

static sft_span row_text_at(const void *ctx, uint32_t entry) {
    return ((const sfti_tags *)ctx)->rows[entry].text;
}

/* Between parts of a caption, besides commas; the last is the training's own. */
static const char *const separators[] = { "|||", "BREAK" };

/* How often a separator may begin with the byte. */
static size_t count_mark(sfti_tags *tags, sft_span text, char byte) {
    tags->separates[(uint8_t)byte] = true;
    return count_bytes(text, byte, SFTI_TAG_PAIRS);
}

/* A pair needs a colon, or a separator before it; a folder needs a colon. */
static bool take_tables(sfti_tags *tags, sft_span text) {
    sfti_arena *arena = &tags->arena;
    size_t colons = count_bytes(text, ':', SFTI_TAG_PAIRS) + 1, marks = 0;
    for (size_t i = 0; i < SFTI_COUNT(separators); i++)
        marks += count_mark(tags, text, *separators[i]);
    if (tags->separator.len > 0) marks += count_mark(tags, text, *tags->separator.data);
    tags->pair_cap = colons + marks < SFTI_TAG_PAIRS ? colons + marks : SFTI_TAG_PAIRS;
    tags->folder_cap = tags->pair_cap < SFTI_TAG_FOLDERS ? tags->pair_cap : SFTI_TAG_FOLDERS;
    tags->folders = sfti_arena_take(arena, tags->folder_cap * sizeof *tags->folders);
    tags->pairs = sfti_arena_take(arena, tags->pair_cap * sizeof *tags->pairs);
    tags->rows = sfti_arena_take(arena, tags->pair_cap * sizeof *tags->rows);
    if (sfti_os_random(tags->seed, sizeof tags->seed)) tags->seed[0] = tags->seed[1] = 1;
    if (tags->folders && tags->pairs && tags->rows
        && sfti_names_begin(&tags->folder_names, tags->folder_cap, tags->seed, folder_name_at,
                            tags, arena)
        && sfti_names_begin(&tags->row_names, tags->pair_cap, tags->seed, row_text_at, tags,
                            arena))
        return true;
    tags->info->code = SFT_OUT_OF_MEMORY;
    return false;
}

/* ── Folders ── */

/* "10_mikumo style": what every image is repeated, and the rest. */
static void split_folder(sfti_tag_folder *folder) {
    size_t digits = 0;
    sft_span name = folder->name;
    folder->rest = sfti_trim(name);
    while (digits < name.len && name.data[digits] >= '0' && name.data[digits] <= '9') digits++;
    if (digits == 0 || digits >= name.len || name.data[digits] != '_') return;
    if (!sfti_parse_uint((sft_span){ name.data, digits }, &folder->repeats)) return;
    folder->rest = sfti_trim((sft_span){ name.data + digits + 1, name.len - digits - 1 });
}

/* A new folder; NULL when the name was there already or there are enough. */
static sfti_tag_folder *add_folder(sfti_tags *tags, sft_span name) {
    uint32_t entry = (uint32_t)tags->folder_count;
    if (tags->folder_count == tags->folder_cap) return NULL;
    sfti_tag_folder *folder = &tags->folders[entry];
    memset(folder, 0, sizeof *folder);
    folder->name = name;
    if (sfti_names_put(&tags->folder_names, name, sfti_names_hash(name, tags->seed), entry)
        != entry)
        return NULL;
    split_folder(folder);
    tags->folder_count++;
    return folder;
}

/* By name, or by the name without the " (2)" of a second folder so called. */
static sfti_tag_folder *find_folder(sfti_tags *tags, sft_span name) {
    uint32_t entry = sfti_names_find(&tags->folder_names, name);
    if (entry == SFTI_NO_NAME && name.len > 4 && name.data[name.len - 1] == ')'
        && memcmp(name.data + name.len - 4, " (", 2) == 0) {
        name.len -= 4;
        entry = sfti_names_find(&tags->folder_names, name);
    }
    return entry == SFTI_NO_NAME ? NULL : &tags->folders[entry];
}

/* ── Tags ── */

static bool count_of(const sfti_json *json, uint64_t *out) {
    if (json->type == SFTI_JSON_UINT) *out = json->value;
    else if (json->type != SFTI_JSON_STRING || !sfti_parse_uint(json->text, out)) return false;
    if (*out > COUNT_MOST) *out = COUNT_MOST;
    return *out > 0;
}

static void add_pair(sfti_tags *tags, sft_span text, uint32_t folder, uint64_t count) {
    text = sfti_trim(text);
    if (text.len == 0 || tags->pair_count == tags->pair_cap) return;
    uint32_t row = (uint32_t)tags->row_count;
    tags->rows[row] = (sfti_tag_row){ text, 0 };
    uint32_t at = sfti_names_put(&tags->row_names, text, sfti_names_hash(text, tags->seed), row);
    if (at == row) tags->row_count++;
    tags->pairs[tags->pair_count++] = (sfti_tag_pair){ at, folder, count };
}

static bool separates(sft_span text, sft_span separator) {
    return separator.len > 0 && text.len >= separator.len
        && memcmp(text.data, separator.data, separator.len) == 0;
}

/* The length of a separator at i, or 0. A word separates as a word of its own. */
static size_t separator_at(const sfti_tags *tags, sft_span text, size_t i) {
    sft_span rest = sfti_from(text, i);
    for (size_t n = 0; n < SFTI_COUNT(separators); n++) {
        sft_span separator = sft_span_cstr(separators[n]);
        bool word = sfti_word_byte(*separator.data);
        if (!separates(rest, separator)) continue;
        if (word && i > 0 && sfti_word_byte(text.data[i - 1])) continue;
        if (word && rest.len > separator.len && sfti_word_byte(rest.data[separator.len])) continue;
        return separator.len;
    }
    return separates(rest, tags->separator) ? tags->separator.len : 0;
}

static void add_parts(sfti_tags *tags, sft_span text, uint32_t folder, uint64_t count) {
    size_t begin = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool may = tags->separates[(uint8_t)text.data[i]];
        size_t len = may ? separator_at(tags, text, i) : 0;
        if (len == 0) continue;
        add_pair(tags, (sft_span){ text.data + begin, i - begin }, folder, count);
        begin = i + len;
        i = begin - 1;
    }
    add_pair(tags, sfti_from(text, begin), folder, count);
}

/* The members of one folder's object, whose first event is the last one. */
static void read_folder(sfti_cursor *at, sfti_tags *tags, uint32_t folder) {
    sfti_json *json = at->json;
    uint32_t depth = json->depth;
    while (json->depth >= depth && sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_span text = sfti_json_string(json, &tags->arena);
        uint64_t count;
        if (!text.data) {
            at->info->code = SFT_OUT_OF_MEMORY;
            return;
        }
        sfti_json_next(json);
        if (count_of(json, &count)) add_parts(tags, text, folder, count);
        sfti_json_skip(json);
    }
}

/* {folder:{tag:count}}, or without folders {tag:count}. */
static void take_frequency(sfti_cursor *at) {
    sfti_tags *tags = at->ctx;
    uint64_t count;
    if (!at->member) return;
    if (at->json->type == SFTI_JSON_OBJECT) {
        sfti_tag_folder *folder = add_folder(tags, at->key);
        if (folder) read_folder(at, tags, (uint32_t)(folder - tags->folders));
    } else if (count_of(at->json, &count)) {
        sft_span none = { "", 0 };
        sfti_tag_folder *folder = find_folder(tags, none);
        if (!folder) folder = add_folder(tags, none);
        if (folder) add_parts(tags, at->key, (uint32_t)(folder - tags->folders), count);
    }
}

static const sfti_row frequency_rows[] = { { "/*", take_frequency, 0, 0, NULL } };
static const sfti_row dataset_frequency_rows[] = {
    { "/*/tag_frequency/*", take_frequency, 0, 0, NULL },
};
static const sfti_row separator_rows[] = {
    { "/*/subsets/*/keep_tokens_separator", sfti_take_slot, 0, 0, NULL },
};

/* What the data sets of the header say of the folders. */
static void read_told(sfti_tags *tags) {
    for (const sfti_dataset *set = tags->info->datasets.first; set; set = set->next) {
        sfti_tag_folder *folder = set->folder.data ? find_folder(tags, set->folder) : NULL;
        if (!folder) continue;
        folder->regularisation = folder->regularisation || set->regularisation == 1;
        if (folder->known || set->images == 0 || set->images == UINT64_MAX) continue;
        folder->images = set->images < COUNT_MOST ? set->images : COUNT_MOST;
        folder->known = true;
    }
}

/* ── Sums ── */

static void sum_pairs(sfti_tags *tags) {
    for (size_t i = 0; i < tags->pair_count; i++) {
        const sfti_tag_pair *pair = &tags->pairs[i];
        sfti_tag_folder *folder = &tags->folders[pair->folder];
        if (folder->regularisation) continue;
        tags->rows[pair->tag].total += pair->count;
        folder->sum += pair->count;
        folder->tags++;
        if (pair->count > folder->most) folder->most = pair->count;
    }
}

/* Images of a folder that records none: of the only folder from the sum of repeats, else
 * as many as its commonest tag has. */
static void guess_images(sfti_tags *tags, sfti_tag_folder *folder, bool only) {
    sft_span text;
    uint64_t trained = 0;
    folder->images = folder->most;
    if (!only || folder->repeats == 0) return;
    if (!sfti_info_metadata(tags->info, "ss_num_train_images", &text)) return;
    if (!sfti_parse_uint(text, &trained) || trained % folder->repeats) return;
    if (trained / folder->repeats < folder->most) return;
    folder->images = trained / folder->repeats;
    folder->known = true;
}

static void number_concepts(sfti_tags *tags) {
    for (size_t i = 0; i < tags->folder_count; i++) {
        sfti_tag_folder *folder = &tags->folders[i];
        folder->concept = (uint32_t)i;
        if (i >= 64) continue; /* more concepts than that are none */
        for (size_t j = 0; j < i; j++)
            if (sft_span_equal(tags->folders[j].rest, folder->rest)) {
                folder->concept = (uint32_t)j;
                break;
            }
    }
}

static void count_images(sfti_tags *tags) {
    size_t used = 0;
    for (size_t i = 0; i < tags->folder_count; i++)
        used += tags->folders[i].tags > 0 && !tags->folders[i].regularisation;
    tags->known = used > 0;
    for (size_t i = 0; i < tags->folder_count; i++) {
        sfti_tag_folder *folder = &tags->folders[i];
        if (folder->tags == 0 || folder->regularisation) continue;
        if (!folder->known || folder->images == 0) guess_images(tags, folder, used == 1);
        tags->known = tags->known && folder->known;
        tags->images += folder->images;
    }
}

bool sfti_tags_read(sfti_tags *tags) {
    sft_info *info = tags->info;
    sft_span text, source = { "", 0 };
    const sfti_row *rows = frequency_rows;
    tags->arena.alloc = info->arena.alloc;
    if (!sfti_info_metadata(info, "ss_tag_frequency", &text)) {
        rows = dataset_frequency_rows;
        if (!sfti_info_metadata(info, "ss_datasets", &text)) return false;
    }
    (void)sfti_walk_key(info, "ss_datasets", SFTI_ROWS(separator_rows), &tags->separator);
    if (!take_tables(tags, text)) return false;
    if (!sfti_info_walk(info, text, source, rows, 1, tags)) return false;
    read_told(tags);
    sum_pairs(tags);
    number_concepts(tags);
    count_images(tags);
    return tags->pair_count > 0 && !info->code;
}
