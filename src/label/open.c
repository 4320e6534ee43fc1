/* sft_info_open: collects from tensors, header, online answers, sidecars and the file's
 * name in this order, then decides. */
#include "base/checked.h"
#include "base/error.h"
#include "base/files.h"
#include "base/options.h"
#include "label/sidecars/sidecars.h"
#include "os/path.h"
#include "safetensors_report.h"

#include <string.h>

/* ── Names ── */

/* "model.safetensors.index.fp16.json" is called model. */
static sft_span index_stem(sft_span name) {
    sft_span suffix = sfti_find_letters(name, ".safetensors.index");
    if (!suffix.data) suffix = sfti_find_letters(name, ".bin.index"); /* of PyTorch's shards */
    if (!suffix.data) return sfti_stem(name);
    return (sft_span){ name.data, name.len - suffix.len };
}

static void take_names(sft_info *info, const char *path) {
    sft_span whole = sfti_info_copy(info, sft_span_cstr(path));
    sft_span name = sfti_path_name(whole);
    size_t folder = whole.len - name.len, root = sfti_root_len(path);
    info->path = whole;
    bool is_index = sft_path_is_index(path) || sfti_ends_with(name, ".json");
    info->stem = is_index ? index_stem(name) : sfti_stem(name);
    info->folder = sft_span_cstr(".");
    /* Slashes of a URL are no accident. */
    bool is_claimed = sfti_files_claim(info->options.files, path, NULL);
    while (folder > root && folder > 1 && sfti_is_separator(whole.data[folder - 1])
           && !(is_claimed && whole.data[folder - 2] == '/'))
        folder--;
    if (folder > 0) info->folder = (sft_span){ whole.data, folder };
}

/* A shard opened by its own name: which of how many, and its index. */
static void take_shard(sft_info *info, const sft_info_folder *folder) {
    size_t base, total, end;
    uint64_t shard, of;
    sft_span stem = info->stem;
    if (!sfti_shard_number(stem, &base, &total, &end) || end != stem.len || base == 0) return;
    sft_span first = { stem.data + base + 1, total - base - 1 };
    if (!sfti_parse_uint(first, &shard)
        || !sfti_parse_uint(sfti_from(stem, total + strlen("-of-")), &of) || of == 0 || shard > of)
        return;
    info->shard = shard;
    info->shard_of = of;
    sft_span name = { stem.data, base };
    const sfti_entry *index = folder ? sfti_folder_find(folder, name, ".safetensors.index.json")
                                     : NULL;
    if (index) info->shard_index = sfti_info_copy(info, index->name);
}

/* ── Opening ── */

static SFTI_OPTIONS_TAKE(info_take, sft_info_options, SFT_INFO_OPTIONS_INIT, alloc)

static sft_code new_info(const sft_set *set, const sft_info_options *options, sft_info **out,
                         sft_error *err) {
    sft_info_options own;
    sft_code code = info_take(options, &own, err);
    if (code) return code;
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_info *info = sfti_take(&alloc, sizeof *info);
    if (!info) return sfti_fail_memory(err, sizeof *info);
    memset(info, 0, sizeof *info);
    info->arena.alloc = alloc;
    info->options = own;
    info->set = set;
    info->records = own.records ? sfti_records_of(own.records) : sfti_records_built_in();
    info->rating = info->favourite = -1;
    info->nsfw_level = -1;
    info->negative = -1;
    info->adapter.scale = -1;
    *out = info;
    return SFT_OK;
}

static sft_code finish_info(sft_info *info, sft_info **out, sft_error *err) {
    sft_code code = info->code;
    if (!code) *out = info;
    else sft_info_close(info);
    return code == SFT_OUT_OF_MEMORY ? sfti_fail_memory(err, sizeof(sft_info)) : code;
}

/* The folder to look into; NULL when there is none or it cannot be listed. */
static const sft_info_folder *list_folder(sft_info *info, const sft_info_folder *folder) {
    if (folder || info->options.header_only || info->path.len == 0) return folder;
    sft_span path = sfti_info_text(info, "%.*s", (int)info->folder.len, info->folder.data);
    if (info->code) return NULL;
    sft_code code = sfti_folder_open(path.data, info->options.files, false, info->options.alloc,
                                     &info->own_folder, NULL);
    if (code == SFT_OUT_OF_MEMORY) info->code = code;
    return info->own_folder;
}

static void collect(sft_info *info, const char *path, const sft_info_folder *folder) {
    const bool one_file = info->set && sft_set_shard_count(info->set) == 1
                       && !sft_set_index_path(info->set);
    if (path) take_names(info, path);
    folder = info->listed = list_folder(info, folder);
    if (!info->code && one_file && sfti_find_letters(info->stem, "-of-").data)
        take_shard(info, folder);
    sfti_info_tensors(info);
    sfti_info_header(info);
    if (info->answer.len > 0) sfti_info_online(info);
    if (!info->options.header_only && path && !info->code) sfti_info_sidecars(info, folder);
    for (size_t i = 0; i < info->options.claim_count && !info->code; i++) {
        const sft_info_claim *claim = &info->options.claims[i];
        sfti_info_claim(info, claim->algo, claim->value, claim->source, claim->known);
    }
    sfti_info_file_name(info);
    if (info->previews.count > 1) sfti_copied_previews_last(info);
    if (!info->code) sfti_info_resolve(info);
}

sft_code sft_info_open(const sft_set *set, const char *path, const sft_info_folder *folder,
                       const sft_info_options *options, sft_info **out, sft_error *err) {
    *out = NULL;
    sft_info *info = NULL;
    sft_code code = new_info(set, options, &info, err);
    if (code) return code;
    collect(info, path, folder);
    return finish_info(info, out, err);
}

void sft_info_close(sft_info *info) {
    while (info) {
        sft_info *older = info->older;
        sft_allocator alloc = info->arena.alloc;
        sft_info_folder_close(info->own_folder);
        sfti_arena_free(&info->arena);
        sfti_release(&alloc, info, sizeof *info);
        info = older;
    }
}

uint32_t sft_info_output_mode(const sft_info *info) {
    uint32_t mode = info->mode;
    if (info->set) sfti_mode_common(&mode, sft_set_output_mode(info->set, NULL));
    for (size_t i = 0; i < info->part_count; i++) {
        const sft_info_component *part = &info->parts[i];
        if (part->set) sfti_mode_common(&mode, sft_set_output_mode(part->set, NULL));
        if (part->info) sfti_mode_common(&mode, part->info->mode);
    }
    return mode;
}

/* ── Digests ── */

/* Copies of digests in info's arena. */
static sfti_digests copy_digests(sft_info *info, const sfti_digests *from) {
    sfti_digests copy = { .asked = from->asked };
    for (size_t i = 0; i < SFT_HASH_COUNT; i++)
        if (from->text[i].len > 0) copy.text[i] = sfti_info_copy(info, from->text[i]);
    return copy;
}

/* Collect anew, the digests known from the first: sidecars of other files are not believed.
 * What was collected before is kept, for its texts. */
static sft_code collect_again(sft_info *info, const sfti_digests *computed, sft_span answer,
                              sft_error *err) {
    sft_info_options options = info->options;
    options.alloc = &info->arena.alloc;
    sft_info *again, *made = NULL;
    sft_code code = new_info(info->set, &options, &again, err);
    if (code) return code;
    again->computed = copy_digests(again, computed);
    again->answer = sfti_info_copy(again, answer);
    sft_span path = sfti_info_text(again, "%.*s", (int)info->path.len, info->path.data);
    if (!again->code) collect(again, info->path.len > 0 ? path.data : NULL, info->listed);
    code = finish_info(again, &made, err);
    if (code) return code;
    sft_info older = *info;
    *info = *made;
    *made = older;
    if (made->own_folder) {
        info->own_folder = made->own_folder;
        made->own_folder = NULL;
    }
    info->older = made;
    return SFT_OK;
}

sft_code sft_info_set_computed(sft_info *info, uint32_t asked, const sft_hashes *hashes,
                               sft_error *err) {
    sfti_digests told = { .asked = asked };
    for (size_t i = 0; hashes && i < SFT_HASH_COUNT; i++)
        if (asked & SFT_HASH_BIT(i))
            told.text[i] = sft_span_cstr(sft_hashes_get(hashes, (sft_hash_algo)i));
    if (info->part_count == 0 && !sfti_info_match_again(info, &told))
        return collect_again(info, &told, info->answer, err);
    told = copy_digests(info, &told);
    sft_code code = info->code;
    info->code = SFT_OK; /* all that was there still is */
    if (code) return sfti_fail_memory(err, SFT_HASH_TEXT_SIZE);
    info->computed = told;
    return SFT_OK;
}

sft_code sft_info_add_civitai(sft_info *info, sft_span answer, sft_error *err) {
    if (info->part_count > 0 || !info->set)
        return sfti_misuse(err, "expected one model, found a folder of components");
    return collect_again(info, &info->computed, answer, err);
}

/* ── Parts ── */

static void add_part(sft_info *info, const sft_info_component *part) {
    const sfti_fact *told = sfti_info_best(part->info, SFT_FACT_ARCHITECTURE);
    const sfti_weights *weights = &part->info->weights;
    sft_dtype_sum first;
    size_t dtypes = sft_set_dtypes(part->set, &first, 1);
    if (weights->known == SFTI_WEIGHTS_HIDDEN) info->weights.hidden = true;
    else if (!sfti_add(info->weights.known, weights->known, &info->weights.known))
        info->weights.hidden = true;
    SFTI_PUSH(info, &info->components, sfti_component,
              .part = sfti_info_cstr(info, sft_span_cstr(part->name)),
              .architecture = told ? sfti_info_cstr(info, told->value.text) : NULL,
              .trust = told ? told->trust : -1,
              .dtype = dtypes == 0 ? NULL
                     : dtypes > 1 ? "mixed" : sft_dtype_describe(first.dtype)->name,
              .bytes = sft_set_data_bytes(part->set),
              .weights = *weights);
}

/* The pipeline is what its denoiser is. */
static void take_main_facts(sft_info *info, const sft_info *from) {
    static const sft_fact fields[] = { SFT_FACT_ARCHITECTURE, SFT_FACT_VARIANT,
                                       SFT_FACT_PREDICTION_TYPE, SFT_FACT_QUANTIZATION };
    for (size_t i = 0; i < SFTI_COUNT(fields); i++)
        for (const sfti_fact *fact = from->facts[fields[i]]; fact; fact = fact->next) {
            sfti_fact *same = sfti_info_add(info, fields[i], fact->value, fact->source,
                                            fact->trust);
            if (same) same->by = fact->by;
        }
    info->precision = from->precision;
}

sft_code sft_info_open_components(const sft_info_component *parts, size_t count, const char *path,
                                  const sft_info_folder *folder, const sft_info_options *options,
                                  sft_info **out, sft_error *err) {
    *out = NULL;
    if (count == 0)
        return sfti_misuse(err, "expected parts, found none");
    static const char *const denoisers[] = { "unet", "transformer", "prior" };
    const sft_info_component *first = &parts[0]; /* whose architecture is the pipeline's */
    for (size_t i = count; i-- > 0;)
        if (SFTI_ONE_OF(sft_span_cstr(parts[i].name), denoisers, sfti_is)) first = &parts[i];
    sft_info *info = NULL;
    sft_code code = new_info(first->set, options, &info, err);
    if (code) return code;
    info->parts = parts;
    info->part_count = count;
    take_names(info, path);
    info->stem = sfti_path_name(info->path); /* generic, and no sidecar's */
    folder = list_folder(info, folder);
    sfti_info_add_text(info, SFT_FACT_KIND, sft_span_cstr("pipeline"), sft_span_cstr("folder"),
                       100);
    take_main_facts(info, first->info);
    for (size_t i = 0; i < count; i++) add_part(info, &parts[i]);
    if (!info->options.header_only && !info->code) sfti_info_sidecars(info, folder);
    info->set = NULL;
    for (int i = 0; i < SFT_FACT_COUNT; i++) /* the file is everyone's: it is no name */
        sfti_drop_facts(&info->facts[i], sft_span_cstr("filename"));
    if (!info->code) sfti_info_resolve(info);
    return finish_info(info, out, err);
}

/* ── Getters ── */

bool sft_info_fact(const sft_info *info, sft_fact fact, sft_span *value, sft_span *source,
                   int *trust) {
    const sfti_fact *best = (unsigned)fact < SFT_FACT_COUNT ? info->facts[fact] : NULL;
    if (!best) return false;
    *value = best->value.text;
    if (source) *source = sfti_fact_source(best);
    if (trust) *trust = best->trust;
    return true;
}

size_t sft_info_trigger_count(const sft_info *info) {
    return info->triggers.count;
}

bool sft_info_trigger_at(const sft_info *info, size_t i, sft_trigger_word *out) {
    if (i >= info->triggers.count) return false;
    const sfti_trigger *trigger = info->ordered[i];
    *out = (sft_trigger_word){ trigger->text, trigger->prompt, trigger->source, trigger->trust };
    return true;
}

size_t sft_info_claim_count(const sft_info *info) {
    return info->claims.count;
}

bool sft_info_claim_at(const sft_info *info, size_t i, sft_info_claim *out) {
    const sfti_claim *claim = info->claims.first;
    for (; claim && i > 0; i--) claim = claim->next;
    if (!claim) return false;
    *out = (sft_info_claim){ claim->algo, claim->value, claim->source, claim->known };
    return true;
}

size_t sft_info_preview_count(const sft_info *info) {
    return info->previews.count;
}

bool sft_info_preview_at(const sft_info *info, size_t i, sft_preview *out) {
    const sfti_preview *preview = info->previews.first;
    for (; preview && i > 0; i--) preview = preview->next;
    if (!preview) return false;
    *out = (sft_preview){ preview->path, preview->source, preview->data, preview->media_type,
                          preview->bytes, preview->width, preview->height,
                          preview->nsfw_level };
    return true;
}
