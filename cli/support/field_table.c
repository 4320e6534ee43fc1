/* The table of fields of a result of `info`, their known values, and the nearest name of one that
 * is unknown. Tests: tests/cli/info, tests/cli/find. */
#include "support/fields.h"

#include "support/records.h"
#include "safetensors_info.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define NAME_PARTS 3 /* of a name to choose from */
#define NAME_BYTES 96

/* ── Short names ── */

static const struct field_alias { const char *name, *path; } field_aliases[] = {
    { "rank", "adapter.rank.mode" }, { "alpha", "adapter.alpha.mode" },
    { "prompt", "trigger_words.prompt" }, { "a1111", "prompts.a1111" },
    { "comfy", "prompts.comfy" }, { "bytes", "file.bytes" }, { "tensors", "file.tensors" },
    { "parameters", "model.parameters" }, { "precision", "model.precision" },
    { "size", "model.size" }, { "tool", "training.tool" }, { "type", "adapter.type" },
    { "format", "adapter.format" }, { "epoch", "training.epoch" },
    { "steps", "training.steps" }, { "images", "training.images" },
    { "model_id", "civitai.model_id" }, { "version_id", "civitai.version_id" },
    { "air", "civitai.air" }, { "url", "civitai.url" }, { "notes", "model.notes" },
    { "rating", "model.rating" }, { "favourite", "model.favourite" },
    { "nsfw_level", "model.nsfw_level" }, { "version", "model.version_name" },
    { "components", "model.components" }, { "evidence", "model.evidence" },
    { "vectors", "model.vectors" }, { "negative", "model.negative" }, { "llm", "model.llm" },
};

/* ── The table ── */

/* Members of each type of object. A mark follows the name of what is no text: # a number, % a size
 * in bytes, @ a date, ? true or false, * any of these. After a colon the member's own type; "[]"
 * marks a list. The facts of `model` are those of sft_fact_name. */
static const struct field_type { const char *name, *members; } field_types[] = {
    { "result", "path path_bytes ok? error:error complete? file:file metadata:any metadata_cut:any "
                "shards:shard[] set:set import:import missing:[] parts:result[] model:model "
                "adapter:adapter trigger_words:trigger[] prompts:prompts frequent_tags:tag[] "
                "example_prompts:example[] civitai:civitai links:link[] training:training "
                "merge:merge provenance:provenance hashes:hashes previews:preview[] "
                "sidecars:sidecar[] privacy:private[] conflicts:conflict[] dataset:manifest "
                "remote:remote" },
    { "error", "code offset% tensor message hint" },
    { "remote", "url bytes% sha256 commit etag local?" },
    { "file", "bytes% header_bytes% data_offset% data_bytes% tensors# parameters# alignment% "
              "unaligned# dtypes:dtypes" },
    { "dtypes", "*:count" },
    { "count", "tensors# parameters# bytes%" },
    { "shard", "path path_bytes bytes% tensors#" },
    { "set", "index shard# of#" },
    { "import", "path path_bytes ok? format title tensors# bytes% input_bytes% branches:branch[] "
                "aliases:alias[] left_out:left_out[] globals:global[] metadata:any" },
    { "branch", "path tensors# bytes% chosen?" },
    { "alias", "name of copied? partial?" },
    { "left_out", "reason path text count# bytes%" },
    { "global", "module name named# calls#" },
    { "fact", "value*:[] source trust# others:candidate[]" },
    { "candidate", "value*:[] source trust#" },
    { "model", "notes:note[] rating# favourite? nsfw_level# components:component[] precision "
               "parameters# size vectors# negative? preferred_weight_range:bounds llm:llm "
               "evidence:[]" },
    { "note", "text source" },
    { "component", "part architecture trust# dtype bytes% parameters#" },
    { "llm", "layers# hidden# heads# kv_heads# vocab#" },
    { "bounds", "min# max# source trust#" },
    { "adapter", "type dora? rslora? format rank:range alpha:alpha scale# conv_rank# modules# "
                 "components:component[] targets:[] blocks:[]" },
    { "range", "min# max# mode#" },
    { "alpha", "min# max# mode# sampled?" },
    { "trigger", "text prompt words:[] trust# source group# folder coverage# others:candidate[]" },
    { "prompts", "a1111 comfy" },
    { "tag", "tag count# coverage#" },
    { "example", "positive negative seed# steps# sampler cfg# source" },
    { "civitai", "model_id# version_id# air url source trust# match matches_file? published_at@ "
                 "permissions:permissions" },
    { "permissions", "credit? commercial:[] derivatives? relicense?" },
    { "link", "url source model_id# version_id#" },
    { "training", "tool tool_version started_at@ finished_at@ duration_s# epoch# epochs# step# "
                  "steps# images# images_with_repeats# regularisation_images# batch_size# "
                  "learning_rate# unet_lr# text_encoder_lr#:[] optimizer scheduler resolution "
                  "network_module network_args:any seed# clip_skip# mixed_precision noise_offset# "
                  "comment session_id base:origin vae:origin datasets:dataset[] buckets:bucket[]" },
    { "origin", "file sha256 autov1" },
    { "dataset", "folder images# repeats# class_tokens regularisation? resolution" },
    { "bucket", "resolution count#" },
    { "merge", "tool method recipe:any sources:source[]" },
    { "source", "name sha256 autov1 weight#" },
    { "provenance", "workflow? prompt? loaders:loader[]" },
    { "loader", "type name strength_model# strength_clip#" },
    { "hashes", "recorded:claim[] computed:any mismatches:mismatch[] lookup_url" },
    { "claim", "algo value source" },
    { "mismatch", "algo recorded computed source known" },
    { "preview", "path source media_type bytes% width# height# nsfw_level#" },
    { "sidecar", "path kind match error" },
    { "private", "key what" },
    { "conflict", "field candidates:candidate[]" },
    { "manifest", "mode generator commit version# batch_size# name_col kv_separator tail_strategy "
                  "index segments# samples# valid_samples# padded_samples# dropped_samples# "
                  "deleted_samples# places# bytes% shards# tensors# shadowed# "
                  "columns:columns" },
    { "columns", "*:column" },
    { "column", "dtype shape:[]" },
};

#define MARKS "#%@?*"

typedef struct member {
    sft_span name, type; /* type: empty for a scalar */
    char mark;           /* of a scalar; 0: text */
    bool is_list;
    size_t fact;         /* that it is, or the value of; else SFT_FACT_COUNT */
} member;

static bool next_member(const char **rest, member *out) {
    const char *at = *rest + strspn(*rest, " ");
    size_t len = strcspn(at, " "), name = *at == '*' ? 1 : strcspn(at, MARKS ": ");
    *rest = at + len;
    if (len == 0) return false;
    out->name = (sft_span){ at, name };
    out->mark = name < len && at[name] != ':' ? at[name++] : 0;
    out->type = (sft_span){ at + name, len - name };
    if (out->type.len > 0) { /* the colon */
        out->type.data++;
        out->type.len--;
    }
    out->is_list = out->type.len >= 2 && out->type.data[out->type.len - 1] == ']';
    if (out->is_list) out->type.len -= 2;
    out->fact = SFT_FACT_COUNT;
    return true;
}

static const char *members_of(sft_span type) {
    for (size_t i = 0; i < sizeof field_types / sizeof *field_types; i++)
        if (cli_is(type, field_types[i].name)) return field_types[i].members;
    return "";
}

static size_t fact_of(sft_span name) {
    size_t i = 0;
    while (i < SFT_FACT_COUNT && !cli_is(name, sft_fact_name((sft_fact)i))) i++;
    return i;
}

static bool is_fact(sft_span name) {
    return fact_of(name) < SFT_FACT_COUNT;
}

/* From a member to one of its own members. */
static bool find_member(member *at, sft_span name) {
    size_t fact = cli_is(at->type, "model") ? fact_of(name) : SFT_FACT_COUNT;
    const char *rest = members_of(at->type);
    member one;
    if (fact < SFT_FACT_COUNT) {
        bool number = fact == SFT_FACT_CLIP_SKIP || fact == SFT_FACT_PREFERRED_WEIGHT;
        char mark = fact == SFT_FACT_DATE ? '@' : fact == SFT_FACT_NSFW ? '?' : number ? '#' : 0;
        *at = (member){ name, sft_span_cstr("fact"), mark, false, fact };
        return true;
    }
    while (next_member(&rest, &one)) {
        if (!sft_span_equal(one.name, name) && !cli_is(one.name, "*")) continue;
        if (cli_is(at->type, "fact") && cli_is(name, "value"))
            one.mark = at->mark, one.fact = at->fact;
        *at = one;
        return true;
    }
    return false;
}

static sft_span first_part(sft_span path) {
    const char *dot = path.len ? memchr(path.data, '.', path.len) : NULL;
    return (sft_span){ path.data, dot ? (size_t)(dot - path.data) : path.len };
}

/* Walks the path as far as the table knows it: where it does not, *at and *path say which part
 * of what is unknown. */
static bool walk(member *at, sft_span *path) {
    for (bool more = true; more;) {
        sft_span part = first_part(*path);
        size_t digits = 0;
        if (cli_is(at->type, "any")) {
            at->mark = '*';
            return path->len > 0;
        }
        while (digits < part.len && part.data[digits] >= '0' && part.data[digits] <= '9') digits++;
        if (at->is_list && digits > 0 && digits == part.len) at->is_list = false;
        else if (!find_member(at, part)) return false;
        /* An empty last part ("model.") is kept as a part. */
        more = part.len < path->len;
        if (more) *path = (sft_span){ path->data + part.len + 1, path->len - part.len - 1 };
    }
    return true;
}

static member whole(const char *type) {
    return (member){ .type = sft_span_cstr(type), .fact = SFT_FACT_COUNT };
}

bool cli_field_place_of(sft_span name, cli_field_place *out) {
    const char *alias = NULL;
    for (size_t i = 0; !alias && i < sizeof field_aliases / sizeof *field_aliases; i++)
        if (cli_is(name, field_aliases[i].name)) alias = field_aliases[i].path;
    sft_span path = alias ? sft_span_cstr(alias) : name;
    *out = (cli_field_place){ .path = path, .in_model = !alias && is_fact(first_part(name)) };
    member at = whole(out->in_model ? "model" : "result");
    bool found = walk(&at, &path);
    const char *mark = at.mark ? strchr(MARKS, at.mark) : NULL;
    out->type = mark ? CLI_FIELD_NUMBER + (cli_field_type)(mark - MARKS) : CLI_FIELD_TEXT;
    out->fact = at.fact;
    return found;
}

/* ── The nearest name ── */

static void try_members(sfti_guess *guess, sft_span type) {
    const char *rest = members_of(type);
    member one;
    while (next_member(&rest, &one)) sfti_guess_try(guess, one.name);
    for (int i = 0; cli_is(type, "model") && i < SFT_FACT_COUNT; i++)
        sfti_guess_try(guess, sft_span_cstr(sft_fact_name((sft_fact)i)));
}

/* A name whose beginning was left out: "rank.max" for adapter.rank.max. */
static bool find_parent(sft_span name, member *out) {
    const char *rest = members_of(sft_span_cstr("result"));
    while (next_member(&rest, out)) {
        member at = *out;
        sft_span path = name;
        bool is_free = cli_is(at.type, "any") || cli_is(at.type, "result");
        at.is_list = false;
        if (at.type.len > 0 && !is_free && walk(&at, &path)) return true;
    }
    return false;
}

/* The guess with a path before it, which is known. */
static const char *guess_text(sfti_guess *guess, sft_span path, const char *dot) {
    char before[64];
    if (path.len >= sizeof before - 2) return "";
    snprintf(before, sizeof before, "\"%.*s%s", (int)path.len, path.data, dot);
    return sfti_guess_text(guess, before, "\"");
}

/* What people call a field by other programs' names. */
static const char *field_meant(sft_span name) {
    static const char *const meant[][2] = {
        { "base", "base_model" },      { "trigger", "trigger_words" },
        { "triggers", "trigger_words" }, { "words", "trigger_words" },
        { "keywords", "trigger_words" }, { "activation", "trigger_words" },
        { "weight", "preferred_weight" }, { "strength", "preferred_weight" },
        { "title", "name" },           { "tag", "tags" },
        { "creator", "author" },
        { "dtype", "precision" },      { "filename", "path" },
        { "folder", "path" },          { "hash", "hashes" },
        { "sha256", "hashes" },
    };
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++)
        if (cli_same_letters(name, sft_span_cstr(meant[i][0]))) return meant[i][1];
    return NULL;
}

const char *cli_field_guess(sfti_guess *guess, sft_span name) {
    const char *meant = field_meant(name);
    if (meant) {
        *guess = (sfti_guess){ .word = name, .best = sft_span_cstr(meant) };
        return guess_text(guess, (sft_span){ name.data, 0 }, "");
    }
    member at = whole(is_fact(first_part(name)) ? "model" : "result"), parent;
    sft_span path = name;
    if (find_parent(name, &parent)) {
        *guess = (sfti_guess){ .word = name, .best = name };
        return guess_text(guess, parent.name, ".");
    }
    (void)walk(&at, &path);
    bool is_first = path.len == name.len;
    *guess = sfti_guess_begin(first_part(path));
    try_members(guess, at.type);
    if (is_first) try_members(guess, sft_span_cstr("model"));
    for (size_t i = 0; is_first && i < sizeof field_aliases / sizeof *field_aliases; i++)
        sfti_guess_try(guess, sft_span_cstr(field_aliases[i].name));
    return guess_text(guess, (sft_span){ name.data, name.len - path.len }, "");
}

/* ── All names ── */

void cli_field_each(cli_field_fn take, void *ctx) {
    /* Types that completion does not go on into: facts have short names. */
    static const char *const closed[] = { "", "any", "result", "fact", "candidate", "dtypes" };
    const char *rest[NAME_PARTS] = { members_of(sft_span_cstr("result")) };
    size_t begins[NAME_PARTS] = { 0 }, depth = 0;
    char name[NAME_BYTES];
    member one;
    for (int i = 0; i < SFT_FACT_COUNT; i++) take(ctx, sft_fact_name((sft_fact)i));
    for (size_t i = 0; i < sizeof field_aliases / sizeof *field_aliases; i++)
        take(ctx, field_aliases[i].name);
    for (;;) {
        if (!next_member(&rest[depth], &one)) {
            if (depth-- == 0) return;
            continue;
        }
        size_t len = begins[depth] + one.name.len;
        if (len + 2 > sizeof name) continue;
        memcpy(name + begins[depth], one.name.data, one.name.len);
        name[len] = 0;
        take(ctx, name);
        bool listed = depth + 1 < NAME_PARTS;
        for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
            listed = listed && !cli_is(one.type, closed[i]);
        if (!listed) continue;
        name[len] = '.';
        begins[++depth] = len + 1;
        rest[depth] = members_of(one.type);
    }
}

/* ── Known values ── */

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ── Words of people ── */

static const struct record_field { const char *field; sfti_record_type type; } record_fields[] = {
    { "kind", SFTI_KIND }, { "architecture", SFTI_MODEL }, { "prediction_type", SFTI_PREDICTION },
    { "quantization", SFTI_QUANTISATION },
};

/* "sd-1" for "sd15", "base_model=Pony" for the architecture "pony"; empty if nobody says so. */
static sft_span meant_by(const char *field, sft_span value, char buffer[64]) {
    const sfti_records *records = cli_records();
    const sfti_record_row *row;
    sft_span meant = { "", 0 }, branch;
    if (strcmp(field, "base_model") == 0) {
        if (sfti_said(records, SFTI_MODEL, SFTI_SAYS_BASE_MODEL, value, true, &row))
            (void)sfti_row_has(row, "meant", &meant);
        return meant;
    }
    for (size_t i = 0; i < COUNT(record_fields); i++) {
        if (strcmp(record_fields[i].field, field) != 0) continue;
        const sfti_record *of = sfti_said(records, record_fields[i].type, SFTI_SAYS_PEOPLE, value,
                                          true, &row);
        if (of && !sfti_row_has(row, "meant", &meant)) meant = sft_span_cstr(of->id);
    }
    if (meant.len > 0 || strcmp(field, "architecture") != 0) return meant;
    for (row = sfti_rows(records, SFTI_BRANCH, 0); row; row = sfti_rows_next(records, row)) {
        sft_span rest = sfti_row_text(row);
        if (!sfti_next_said(&rest, &branch) || !cli_same_letters(branch, value)
            || !sfti_next_said(&rest, &branch))
            continue;
        int len = snprintf(buffer, 64, "base_model=%.*s", (int)branch.len, branch.data);
        return (sft_span){ buffer, len > 0 && len < 64 ? (size_t)len : 0 };
    }
    return meant;
}

/* ── Known values ── */

typedef struct value_search {
    sft_span value;
    bool found;
    sfti_guess guess;
    char list[320]; /* "one of", and all with ", " between */
    size_t len;
} value_search;

static bool see_value(void *ctx, const char *known) {
    value_search *search = ctx;
    sft_span text = sft_span_cstr(known);
    search->found = cli_same_letters(search->value, text);
    sfti_guess_try(&search->guess, text);
    if (search->len + text.len + 8 < sizeof search->list)
        search->len += (size_t)snprintf(search->list + search->len,
                                        sizeof search->list - search->len, "%s%s",
                                        search->len ? ", " : "one of ", known);
    return !search->found;
}

/* Ids of the user's records. */
static void see_users(const char *field, value_search *search) {
    const sfti_records *records = cli_records();
    for (size_t f = 0; f < COUNT(record_fields); f++)
        for (size_t i = 0; i < sfti_record_count(records); i++) {
            const sfti_record *record = sfti_record_at(records, i);
            if (strcmp(record_fields[f].field, field) == 0 && record->type == record_fields[f].type
                && sfti_record_source(records, record) && !see_value(search, record->id))
                return;
        }
}

sft_code cli_field_check(cli *c, const cli_field_place *place, sft_span value, sft_error *err) {
    value_search search = { .value = value, .guess = sfti_guess_begin(value) };
    bool closed = false;
    const char *name = "size";
    if (place->fact < SFT_FACT_COUNT) {
        name = sft_fact_name((sft_fact)place->fact);
        closed = sft_fact_values((sft_fact)place->fact, see_value, &search);
        see_users(name, &search);
    } else if (cli_is(place->path, "model.size")) {
        closed = true;
        (void)(see_value(&search, "full") && see_value(&search, "pruned"));
    }
    char buffer[64];
    sft_span meant = meant_by(name, value, buffer);
    if (search.found || (search.len == 0 && !meant.len)) return SFT_OK;
    const char *guess = search.guess.text;
    if (!meant.len) guess = sfti_guess_text(&search.guess, "\"", "\"");
    else
        snprintf(search.guess.text, sizeof search.guess.text, ": did you mean \"%.*s\"?",
                 (int)meant.len, meant.data);
    if (!closed && *guess) {
        cli_flush(&c->out);
        cli_printf(&c->err, "safetensors: note: no known %s is called ", name);
        cli_quoted(&c->err, value);
        cli_printf(&c->err, "%s\n", guess);
        cli_flush(&c->err);
    }
    if (!closed) return SFT_OK;
    return cli_usage_error(err, "expected %s as value of %s, found \"%.*s\"%s",
                           *guess ? "a known word" : search.list, name, (int)value.len,
                           value.data, guess);
}
