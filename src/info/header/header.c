#include "info/header/header.h"

#include "base/json_lex.h"

#include <string.h>

#define HEADER_IMAGE_MOST ((uint64_t)16 << 20)
#define HEADER_PREVIEWS 16

/* ── Reading pairs ── */

bool sfti_header_get(const sfti_header *header, const char *key, sft_span *value) {
    return sft_file_metadata_get_cstr(header->file, key, value) && !sfti_is_placeholder(*value);
}

bool sfti_header_at(sfti_header *header, const char *key) {
    if (!sfti_header_get(header, key, &header->value)) return false;
    header->key = sft_span_cstr(key);
    header->source = sfti_info_join(header->info, "header:", header->key);
    return true;
}

sft_span sfti_leaf_name(sft_span text) {
    text = sfti_trim(text);
    for (size_t i = text.len; i-- > 0;)
        if (text.data[i] == '/' || text.data[i] == '\\')
            return (sft_span){ text.data + i + 1, text.len - i - 1 };
    return text;
}

/* ── Ready-made takes ── */

void sfti_header_fact(sfti_header *header, const sfti_header_row *row) {
    sfti_info_add_text(header->info, (sft_fact)row->field, header->value, header->source,
                       row->trust);
}

void sfti_header_number(sfti_header *header, const sfti_header_row *row) {
    sft_span text = sfti_trim(header->value);
    if (!sfti_is_number(text)) return;
    sfti_info_add(header->info, (sft_fact)row->field, sfti_number_value(text), header->source,
                  row->trust);
}

void sfti_header_commas(sfti_header *header, const sfti_header_row *row) {
    sfti_info_add_commas(header->info, (sft_fact)row->field, header->value, header->source,
                         row->trust);
}

void sfti_header_prose(sfti_header *header, const sfti_header_row *row) {
    sft_span plain = sfti_plain_text(header->info, header->value);
    sfti_info_add_text(header->info, (sft_fact)row->field, plain, header->source, row->trust);
    sfti_info_scan_text(header->info, header->value, header->source, false);
    if (row->field != SFT_FACT_DESCRIPTION && row->field != SFT_FACT_USAGE_HINT) return;
    sfti_info_trigger_sentence(header->info, plain, header->source, 70);
}

void sfti_header_train(sfti_header *header, const sfti_header_row *row) {
    sfti_info_train(header->info, (sfti_training_key)row->field,
                    sfti_text_value(header->value));
}

void sfti_header_trigger(sfti_header *header, const sfti_header_row *row) {
    sfti_info_trigger(header->info, header->value, header->source, row->trust, 0);
}

void sfti_header_claim(sfti_header *header, const sfti_header_row *row) {
    sfti_info_claim(header->info, row->word, header->value, header->source, NULL);
}

void sfti_header_links(sfti_header *header, const sfti_header_row *row) {
    (void)row;
    sfti_info_scan_text(header->info, header->value, header->source, false);
}

void sfti_header_date(sfti_header *header, const sfti_header_row *row) {
    sft_span date = sfti_iso_date(header->info, header->value);
    sfti_info_add_text(header->info, (sft_fact)row->field, date, header->source, row->trust);
}

void sfti_header_size(sfti_header *header, const sfti_header_row *row) {
    sft_span size = sfti_resolution(header->info, header->value);
    sfti_info_add_text(header->info, (sft_fact)row->field, size, header->source, row->trust);
}

void sfti_header_prediction(sfti_header *header, const sfti_header_row *row) {
    const char *ours = sfti_map_prediction(header->value);
    if (!ours) return;
    sfti_info_add_text(header->info, SFT_FACT_PREDICTION_TYPE, sft_span_cstr(ours),
                       header->source, row->trust);
}

void sfti_info_preview(sft_info *info, sft_span base64, sft_span source) {
    sft_span data;
    uint32_t width, height;
    if (info->previews.count >= HEADER_PREVIEWS) return;
    if (!sfti_base64(info, base64, &data, HEADER_IMAGE_MOST)) return;
    const char *type = sfti_image_type(data, &width, &height);
    sfti_preview *preview = type ? sfti_info_push(info, &info->previews, sizeof *preview) : NULL;
    if (!preview) return;
    preview->source = source;
    preview->media_type = type;
    preview->bytes = data.len;
    preview->width = width;
    preview->height = height;
    preview->data = data;
    if (strcmp(type, "image/png") == 0) sfti_info_png_text(info, data, source);
}

void sfti_header_preview(sfti_header *header, const sfti_header_row *row) {
    (void)row;
    sfti_info_preview(header->info, header->value, header->source);
}

void sfti_info_declared_base(sft_info *info, const char *architecture, sft_span text,
                             sft_span source, int trust) {
    const char *label = NULL, *variant = sfti_map_derivative(text, &label);
    if (architecture)
        sfti_info_add_text(info, SFT_FACT_ARCHITECTURE, sft_span_cstr(architecture), source,
                           trust);
    if (!variant) return;
    sfti_info_add_text(info, SFT_FACT_VARIANT, sft_span_cstr(variant), source, trust);
    sfti_info_add_text(info, SFT_FACT_BASE_MODEL, label ? sft_span_cstr(label) : text, source,
                       trust);
}

void sfti_header_spec(sfti_header *header, const sfti_header_row *row) {
    const char *kind, *variant;
    sft_info *info = header->info;
    sft_span id = sfti_trim(header->value), suffix = sfti_find_byte(id, '/');
    const char *architecture = sfti_map_modelspec(id, &kind, &variant);
    if (kind)
        sfti_info_add_text(info, SFT_FACT_KIND, sft_span_cstr(kind), header->source, row->trust);
    id.len -= suffix.len;
    sfti_info_declared_base(info, architecture, id, header->source, row->trust);
    if (variant)
        sfti_info_add_text(info, SFT_FACT_VARIANT, sft_span_cstr(variant), header->source,
                           row->trust);
}

void sfti_header_walk(sfti_header *header, const sfti_header_row *row) {
    sfti_info_walk(header->info, header->value, header->source, row->rows, row->row_count,
                   header);
}

/* "{}", "[]" and "null" tell nothing of anybody. */
void sfti_header_private(sfti_header *header, const sfti_header_row *row) {
    sft_span text = sfti_trim(header->value);
    if (text.len > 2) sfti_info_private(header->info, header->key, row->word);
}

/* ── Keys without a convention ── */

/* The first of two spellings of a key that holds a number; 0 when there is none. */
static uint64_t generic_number(const sfti_header *header, const char *a, const char *b) {
    sft_span text;
    uint64_t id = 0;
    if ((sfti_header_get(header, a, &text) || sfti_header_get(header, b, &text))
        && !sfti_parse_uint(text, &id))
        return 0;
    return id;
}

/* Model and version are one claim, the model key's. */
static void generic_id(sfti_header *header, const sfti_header_row *row) {
    uint64_t model = generic_number(header, "civitai_model_id", "modelId");
    uint64_t version = generic_number(header, "civitai_version_id", "modelVersionId");
    if (row->field == 1 && model != 0) return;
    sfti_info_civitai(header->info, model, version, header->source, row->trust);
}

static void generic_base(sfti_header *header, const sfti_header_row *row) {
    const char *architecture = sfti_map_civitai_base(header->value);
    if (!architecture) {
        sfti_info_base_checkpoint(header->info, header->value, header->source, row->trust);
        return;
    }
    sfti_info_add_text(header->info, SFT_FACT_BASE_MODEL, header->value, header->source,
                       row->trust);
}

static void generic_private(sfti_header *header, const sfti_header_row *row) {
    (void)row;
    sfti_info_private(header->info, header->key, "comment");
}

static const sfti_header_row generic_rows[] = {
    { "trigger_word", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "trigger_words", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "trigger word", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "trigger words", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "trigger", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "trigger_phrase", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "activation_text", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "activation text", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "instance_prompt", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "trained_words", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "trainedWords", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "keywords", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "title", sfti_header_fact, SFT_FACT_NAME, 75, NULL, NULL, 0 },
    { "name", sfti_header_fact, SFT_FACT_NAME, 75, NULL, NULL, 0 },
    { "model_name", sfti_header_fact, SFT_FACT_NAME, 75, NULL, NULL, 0 },
    { "description", sfti_header_prose, SFT_FACT_DESCRIPTION, 60, NULL, NULL, 0 },
    { "author", sfti_header_prose, SFT_FACT_AUTHOR, 60, NULL, NULL, 0 },
    { "creator", sfti_header_prose, SFT_FACT_AUTHOR, 60, NULL, NULL, 0 },
    { "license", sfti_header_prose, SFT_FACT_LICENSE, 60, NULL, NULL, 0 },
    { "tags", sfti_header_commas, SFT_FACT_TAGS, 60, NULL, NULL, 0 },
    { "usage_hint", sfti_header_prose, SFT_FACT_USAGE_HINT, 60, NULL, NULL, 0 },
    { "base_model", generic_base, 0, 60, NULL, NULL, 0 },
    { "baseModel", generic_base, 0, 60, NULL, NULL, 0 },
    { "civitai_model_id", generic_id, 0, 60, NULL, NULL, 0 },
    { "modelId", generic_id, 0, 60, NULL, NULL, 0 },
    { "civitai_version_id", generic_id, 1, 60, NULL, NULL, 0 },
    { "modelVersionId", generic_id, 1, 60, NULL, NULL, 0 },
    { "air", sfti_header_links, 0, 0, NULL, NULL, 0 },
    { "source", sfti_header_links, 0, 0, NULL, NULL, 0 },
    { "url", sfti_header_links, 0, 0, NULL, NULL, 0 },
    { "thumbnail", sfti_header_preview, 0, 0, NULL, NULL, 0 },
    { "preview_image", sfti_header_preview, 0, 0, NULL, NULL, 0 },
    { "resolution", sfti_header_size, SFT_FACT_RESOLUTION, 60, NULL, NULL, 0 },
    { "prediction_type", sfti_header_prediction, 0, 60, NULL, NULL, 0 },
    { "language", sfti_header_commas, SFT_FACT_LANGUAGE, 60, NULL, NULL, 0 },
    { "comment", generic_private, 0, 0, NULL, NULL, 0 },
};

/* ── Paths that tell of somebody's machine ── */

static bool path_start(sft_span text, size_t at) {
    char before = at > 0 ? text.data[at - 1] : ' ';
    return before == '\0' || !!strchr(" \t\r\n\"'=,;([{<>|`", before);
}

/* A name after "home/" and the like that stands for a person. */
static bool names_user(sft_span rest, const char *folder) {
    static const char *const nobody[] = { "public", "shared", "user", "default" };
    size_t len = 0;
    if (!sfti_starts_with(rest, folder)) return false;
    rest.data += strlen(folder);
    rest.len -= strlen(folder);
    while (rest.len > 0 && (*rest.data == '/' || *rest.data == '\\')) rest.data++, rest.len--;
    while (len < rest.len && !strchr("/\\\" \t\r\n',", rest.data[len])) len++;
    rest.len = len;
    for (size_t i = 0; i < SFTI_COUNT(nobody); i++)
        if (sfti_same_letters(rest, nobody[i])) return false;
    return len > 0;
}

static bool unix_path(sft_span rest, bool *user) {
    static const char *const roots[] = { "/home/", "/users/", "/root/", "/mnt/", "/media/",
                                         "/data/", "/workspace/", "/content/", "/kaggle/",
                                         "/opt/", "/tmp/", "/var/", "/srv/", "/volumes/",
                                         "/app/", "/storage/" };
    for (size_t i = 0; i < SFTI_COUNT(roots); i++) {
        if (!sfti_starts_with(rest, roots[i])) continue;
        *user = *user || (i < 2 && names_user(rest, roots[i]));
        return true;
    }
    return false;
}

static bool drive_path(sft_span rest, bool *user) {
    char drive = (char)(*rest.data | 0x20);
    if (rest.len < 4 || drive < 'a' || drive > 'z' || rest.data[1] != ':') return false;
    if (rest.data[2] != '\\' && rest.data[2] != '/') return false;
    size_t skip = rest.data[2] == rest.data[3] ? 4 : 3;
    sft_span inside = { rest.data + skip, rest.len - skip };
    *user = *user || names_user(inside, "users");
    return rest.data[2] == '\\' || skip == 3;
}

static void private_paths(sfti_header *header) {
    sft_span text = header->value;
    bool path = false, user = false;
    for (size_t i = 0; i + 3 < text.len && !user; i++) {
        sft_span rest = { text.data + i, text.len - i };
        bool slash = text.data[i] == '/', drive = text.data[i + 1] == ':';
        if ((!slash && !drive) || !path_start(text, i)) continue;
        if (slash ? unix_path(rest, &user) : drive_path(rest, &user)) path = true;
    }
    if (path) sfti_info_private(header->info, header->key, "path");
    if (user) sfti_info_private(header->info, header->key, "user");
}

/* ── The pass ── */

/* Whether the row's key is the pair's, after the prefix. */
static bool key_fits(const sfti_header_family *family, const char *key, sft_span name) {
    if (family->any_case) return sfti_same_letters(name, key);
    return name.len > 0 && *name.data == *key && sft_span_equal(name, sft_span_cstr(key));
}

static bool take_pair(sfti_header *header, const sfti_header_family *family) {
    size_t prefix = strlen(family->prefix);
    sft_span name = header->key;
    bool taken = false;
    if (name.len < prefix || memcmp(name.data, family->prefix, prefix) != 0) return false;
    name.data += prefix;
    name.len -= prefix;
    for (size_t i = 0; i < family->count; i++) {
        if (!key_fits(family, family->rows[i].key, name)) continue;
        if (!taken) header->source = sfti_info_join(header->info, "header:", header->key);
        family->rows[i].take(header, &family->rows[i]);
        taken = true;
    }
    return taken;
}

/* The first LoRA scripts: "<s1>": "<embed>" is a learned word. */
static void learned_word(sfti_header *header) {
    sft_span key = header->key;
    if (key.len < 3 || *key.data != '<' || key.data[key.len - 1] != '>') return;
    if (!sft_span_equal(header->value, sft_span_cstr("<embed>"))) return;
    sfti_info_trigger(header->info, key, sfti_info_join(header->info, "header:", key), 90, -1);
}

static sfti_header_family generic_family(void) {
    return (sfti_header_family){ "", generic_rows, SFTI_COUNT(generic_rows), true };
}

static void each_pair(sfti_header *header) {
    const sfti_header_family families[] = {
        sfti_kohya_family(), sfti_modelspec_family(), sfti_trainers_family(),
        sfti_ssmd_family(), sfti_merges_family(), sfti_provenance_family(),
        sfti_bare_family(), generic_family(),
    };
    size_t pairs = sft_file_metadata_count(header->file);
    for (size_t i = 0; i < pairs && !header->info->code; i++) {
        sft_pair pair = sft_file_metadata_at(header->file, i);
        header->key = pair.key;
        header->value = pair.value;
        if (sfti_is_placeholder(pair.value)) continue;
        private_paths(header);
        learned_word(header);
        for (size_t f = 0; f < SFTI_COUNT(families); f++)
            if ((f != SFTI_COUNT(families) - 2 || header->spec)
                && take_pair(header, &families[f]))
                break;
    }
}

void sfti_info_header(sft_info *info) {
    sfti_header header = { info, NULL, { "", 0 }, { "", 0 }, { "", 0 }, false };
    size_t shards = sft_set_shard_count(info->set);
    sft_span version;
    for (size_t i = 0; i < shards && !header.file; i++) {
        const sft_file *file = sft_set_shard(info->set, i);
        if (sft_file_metadata_count(file) > 0) header.file = file;
    }
    if (!header.file || info->code) return;
    header.spec = sfti_header_get(&header, "sai_model_spec", &version);
    each_pair(&header);
    sfti_kohya_finish(&header);
    sfti_merges_finish(&header);
}
