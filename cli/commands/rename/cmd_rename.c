/* rename: rename tensors in place. Tests: tests/cli/rename, tests/tools/regex.c. */
#include "base/files.h"
#include "base/order.h"
#include "base/utf8.h"
#include "commands/commands.h"
#include "commands/meta/meta.h"
#include "commands/rename/rename.h"
#include "quant/beside.h"
#include "support/edit.h"
#include "support/files.h"
#include "support/fresh.h"
#include "support/guard.h"
#include "support/hints.h"
#include "support/output.h"
#include "base/regex.h"
#include "support/renamed.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

/* ── The names ── */

#define MAP_FILE_MOST ((uint64_t)64 << 20)

/* --map and --map-file: old names and new ones. */
typedef struct rename_maps {
    sft_pair *items; /* old, new */
    bool *used;
    uint32_t *order; /* by old name */
    size_t count;
} rename_maps;

/* One --regex: s/RE/TO/ with g or without. */
typedef struct rule {
    sfti_regex *regex;
    bool everywhere;
    const char *to;
} rule;

typedef struct rename_run {
    cli *c;
    sfti_arena arena;
    rule *rules;
    size_t rule_count;
    rename_maps maps;
    const char *blame; /* a file of names that is at fault, or NULL */
    sfti_arena scratch; /* of one name */
    sfti_arena named;
    cli_rename_names names; /* that change, of the current model; in `named` */
} rename_run;

/* ── --map and --map-file ── */

static sft_code bad_map(const char *expected, sft_span found, sft_error *err) {
    return cli_usage_hint(err, CLI_HINT_HELP_RENAME, "expected %s, found \"%.*s\"", expected,
                          found.len < 160 ? (int)found.len : 160, found.data);
}

static sft_code lines_of(sft_span text, sfti_arena *arena, meta_json *out, sft_error *err) {
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++) most += text.data[i] == '\n';
    out->pairs = sfti_arena_array(arena, most, sizeof *out->pairs);
    text.data = sfti_arena_copy(arena, text.data, text.len);
    if (!out->pairs || !text.data) return sfti_fail_memory(err, most * sizeof *out->pairs);
    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        sft_span line = { text.data, end ? (size_t)(end - text.data) : text.len };
        size_t step = line.len + (end != NULL);
        text = (sft_span){ text.data + step, text.len - step };
        if (line.len > 0 && line.data[line.len - 1] == '\r') line.len--;
        if (line.len == 0) continue;
        const char *tab = memchr(line.data, '\t', line.len);
        if (!tab) return bad_map("lines OLD<tab>NEW or a JSON object", line, err);
        size_t old = (size_t)(tab - line.data);
        out->pairs[out->count++] = (sft_pair){ { line.data, old },
                                               { tab + 1, line.len - old - 1 } };
    }
    return SFT_OK;
}

static int compare_old(const void *ctx, uint32_t a, uint32_t b) {
    const rename_maps *maps = ctx;
    return sfti_bytes_compare(maps->items[a].key, maps->items[b].key);
}

/* By the options; memory from the arena. *blame: the file that is at fault, or NULL. */
static sft_code read_maps(cli *c, sfti_arena *arena, rename_maps *out, const char **blame,
                          sft_error *err) {
    const cli_settings *set = &c->set;
    meta_json file = { .text = { .alloc = c->alloc } };
    sft_code code = SFT_OK;
    *blame = set->map_file;
    if (set->map_file) code = cli_read_file(c, set->map_file, MAP_FILE_MOST, &file.text, err);
    if (set->map_file && !code) {
        sft_span text = cli_read_text(&file.text);
        size_t blank = 0;
        while (blank < text.len && memchr(" \t\r\n", text.data[blank], 4)) blank++;
        bool json = blank < text.len && text.data[blank] == '{';
        code = json ? meta_json_text(text, arena, &file, err) : lines_of(text, arena, &file, err);
        if (!code && file.other.data)
            code = bad_map("a string as the new name", file.other, err);
    }
    sft_buffer_free(&file.text);
    if (code) return code;
    *blame = NULL;
    uint64_t most = (uint64_t)set->map.count + file.count;
    out->items = sfti_arena_array(arena, most, sizeof *out->items);
    out->used = sfti_arena_array(arena, most, sizeof *out->used);
    if (!out->items || !out->used || most > UINT32_MAX / 4)
        return sfti_fail_memory(err, most * sizeof *out->items);
    for (size_t i = 0; i < set->map.count; i++) { /* OLD=NEW */
        const char *text = set->map.items[i], *equals = strchr(text, '=');
        if (!equals) return bad_map("--map OLD=NEW", sft_span_cstr(text), err);
        out->items[out->count++] = (sft_pair){ { text, (size_t)(equals - text) },
                                               sft_span_cstr(equals + 1) };
    }
    for (size_t i = 0; i < file.count; i++) out->items[out->count++] = file.pairs[i];
    if (out->count > 0) memset(out->used, 0, out->count * sizeof *out->used);
    out->order = sfti_arena_sorted(arena, out->count, compare_old, out);
    if (!out->order) return sfti_fail_memory(err, most * sizeof *out->order);
    for (size_t i = 1; i < out->count; i++)
        if (compare_old(out, out->order[i - 1], out->order[i]) == 0)
            return bad_map("each old name once", out->items[out->order[i]].key, err);
    return SFT_OK;
}

/* The pair of a name, which is used from now on, or NULL. */
static const sft_pair *find_map(rename_maps *maps, sft_span name) {
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t at = maps->order[middle];
        int way = sfti_bytes_compare(maps->items[at].key, name);
        if (way == 0) {
            maps->used[at] = true;
            return &maps->items[at];
        }
        if (way < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

/* ── Rules ── */

/* "\/" inside a rule with slashes is a slash. */
static const char *rule_part(const char *at, char mark) {
    while (*at && *at != mark) at += *at == '\\' && at[1] ? 2 : 1;
    return *at ? at : NULL;
}

static void drop_escaped_mark(char *text, char mark) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at == '\\' && at[1] == mark) at++;
        *to++ = *at;
    }
    *to = '\0';
}

static sft_code parse_rule(rename_run *r, const char *text, rule *out, sft_error *err) {
    char mark = text[0] == 's' ? text[1] : '\0';
    const char *middle = mark ? rule_part(text + 2, mark) : NULL;
    const char *end = middle ? rule_part(middle + 1, mark) : NULL;
    if (!end || (end[1] && strcmp(end + 1, "g") != 0))
        return cli_usage_hint(err, CLI_HINT_HELP_RENAME, "expected --regex s/RE/TO/, "
                              "with g at its end or without, found \"%s\"", text);
    char *pattern = sfti_arena_copy(&r->arena, text + 2, (size_t)(middle - text - 2));
    char *to = sfti_arena_copy(&r->arena, middle + 1, (size_t)(end - middle - 1));
    if (!pattern || !to) return sfti_fail_memory(err, strlen(text));
    drop_escaped_mark(pattern, mark);
    drop_escaped_mark(to, mark);
    out->to = to;
    out->everywhere = end[1] == 'g';
    sft_code code = sfti_regex_new(sft_span_cstr(pattern), &r->c->alloc, &out->regex, err);
    if (code == SFT_BAD_ARGUMENT) cli_hint(err, CLI_HINT_HELP_RENAME);
    return code;
}

static sft_code rename_begin(rename_run *r, sft_error *err) {
    const cli_settings *set = &r->c->set;
    sft_code code = SFT_OK;
    bool maps = set->map.count > 0 || set->map_file;
    bool rules = set->regex.count > 0 || set->strip_prefix || set->add_prefix;
    if (!rules && (!maps || cli_is_matching(set)))
        return cli_usage_error(err, "expected %s--regex, --strip-prefix or --add-prefix%s, found "
                               "none", maps ? "" : "--map, --map-file, ",
                               maps ? " with --match and --exclude" : "");
    r->rules = sfti_arena_array(&r->arena, set->regex.count, sizeof *r->rules);
    if (!r->rules) return sfti_fail_memory(err, sizeof *r->rules);
    memset(r->rules, 0, set->regex.count * sizeof *r->rules);
    for (; !code && r->rule_count < set->regex.count; r->rule_count++)
        code = parse_rule(r, set->regex.items[r->rule_count], &r->rules[r->rule_count], err);
    return code ? code : read_maps(r->c, &r->arena, &r->maps, &r->blame, err);
}

/* ── One name ── */

/* REPLACEMENT with & and \1 to \9 put in. */
static bool put_replacement(const rule *rule, const char *name, const sfti_regex_group *groups,
                            sft_buffer *out) {
    for (const char *at = rule->to; *at; at++) {
        int group = *at == '&' ? 0 : -1;
        if (*at == '\\' && at[1]) {
            at++;
            if (*at >= '0' && *at <= '9') group = *at - '0';
        }
        if (group < 0 && !sfti_buffer_put(out, at, 1)) return false;
        if (group < 0 || groups[group].begin == SIZE_MAX) continue;
        const sfti_regex_group *g = &groups[group];
        if (!sfti_buffer_put(out, name + g->begin, g->end - g->begin)) return false;
    }
    return true;
}

/* One match replaced, *at behind it; an empty one right behind another is none (as sed has
 * it), and takes the character it stands before. */
static bool replace_once(const rule *rule, sft_span name, size_t *at,
                         const sfti_regex_group *groups, bool *behind, sft_buffer *out) {
    size_t begin = groups[0].begin, end = groups[0].end;
    bool empty = end == begin, none = empty && begin == *at && *behind;
    if (!sfti_buffer_put(out, name.data + *at, begin - *at)) return false;
    if (!none && !put_replacement(rule, name.data, groups, out)) return false;
    *behind = !empty;
    *at = end;
    if (!empty || end == name.len) return true;
    uint32_t code;
    size_t len = sfti_utf8_decode((const uint8_t *)name.data + end,
                                  (const uint8_t *)name.data + name.len, &code);
    *at += len ? len : 1;
    return sfti_buffer_put(out, name.data + end, *at - end);
}

/* *name becomes what the rule makes of it; false when out of memory. */
static bool apply_rule(rename_run *r, const rule *rule, char **name) {
    sfti_regex_group groups[SFTI_REGEX_GROUPS];
    sft_buffer out = { NULL, 0, 0, r->c->alloc };
    sft_span text = sft_span_cstr(*name);
    size_t at = 0;
    bool ok = true, any = false, behind = false, more = true;
    /* Each match takes linear time, all of a long name may take hours. */
    while (ok && more && !cli_is_over(r->c) && sfti_regex_find(rule->regex, text, at, groups)) {
        more = rule->everywhere && groups[0].end < text.len;
        any = true;
        ok = replace_once(rule, text, &at, groups, &behind, &out);
    }
    ok = ok && sfti_buffer_put(&out, text.data + at, text.len - at);
    if (ok && any) *name = sfti_arena_copy(&r->scratch, out.data ? out.data : "", out.len);
    sft_buffer_free(&out);
    return ok && *name;
}

/* --map excludes the other rules; a name with NUL in it is renamed by --map only. */
static sft_code new_name(rename_run *r, sft_span old, sft_span *out, sft_error *err) {
    const sft_pair *map = find_map(&r->maps, old);
    *out = map ? map->value : old;
    if (map || memchr(old.data, '\0', old.len) || !cli_is_matched(&r->c->set, old)) return SFT_OK;
    char *name = sfti_arena_copy(&r->scratch, old.data, old.len);
    const cli_settings *set = &r->c->set;
    size_t strip = set->strip_prefix ? strlen(set->strip_prefix) : 0;
    if (name && strip > 0 && strncmp(name, set->strip_prefix, strip) == 0) name += strip;
    bool fine = name != NULL;
    for (size_t i = 0; fine && i < r->rule_count; i++) fine = apply_rule(r, &r->rules[i], &name);
    if (fine && set->add_prefix) {
        name = sfti_arena_join(&r->scratch, sft_span_cstr(set->add_prefix), sft_span_cstr(name));
        fine = name != NULL;
    }
    sft_span made = sft_span_cstr(fine ? name : "");
    if (fine && !sft_span_equal(made, old))
        *out = (sft_span){ sfti_arena_copy(&r->named, made.data, made.len), made.len };
    sfti_arena_free(&r->scratch);
    if (cli_is_over(r->c)) return sfti_fail_cancelled(err);
    return fine && out->data ? SFT_OK : sfti_fail_memory(err, old.len);
}

/* Puts the name with its new one behind those that change, if it does. */
static sft_code put_name(rename_run *r, sft_span name, sft_error *err) {
    sft_pair *pair = &r->names.pairs[r->names.tensors + r->names.aliases];
    pair->key = name;
    return new_name(r, name, &pair->value, err);
}

static int compare_results(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *pairs = ctx;
    return sfti_bytes_compare(pairs[a].value, pairs[b].value);
}

/* Other names of tensors, by the metadata. */
static sft_code put_aliases(rename_run *r, const cli_aliases *all, sft_error *err) {
    const sft_pair *first = r->names.pairs + r->names.tensors;
    for (size_t i = 0; i < all->count; i++) {
        sft_code code = put_name(r, all->pairs[i].key, err);
        if (code) return code;
        r->names.aliases += !sft_span_equal(all->pairs[i].key, first[r->names.aliases].value);
    }
    uint32_t *order = sfti_arena_sorted(&r->named, r->names.aliases, compare_results, first);
    if (!order) return sfti_fail_memory(err, r->names.aliases * sizeof *order);
    for (size_t i = 1; i < r->names.aliases; i++)
        if (sft_span_equal(first[order[i - 1]].value, first[order[i]].value))
            return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET,
                                    first[order[i]].value, "expected a free name, found that two "
                                    "tensors would have this one");
    return SFT_OK;
}

/* All names of a model, which is a set or one file, that change: told by a dry run. */
static sft_code new_names(rename_run *r, const sft_set *set, const sft_file *file,
                          sft_error *err) {
    size_t count = set ? sft_set_tensor_count(set) : sft_file_tensor_count(file);
    cli_aliases aliases;
    sft_code code = set ? cli_aliases_of(set, &r->named, &aliases, err)
                        : cli_aliases_of_file(file, &r->named, &aliases, err);
    if (!code) code = cli_aliases_once(&aliases, &r->named, err);
    if (code) return code;
    uint64_t most = (uint64_t)count + aliases.count + 1;
    r->names = (cli_rename_names){ .pairs = sfti_arena_array(&r->named, most, sizeof(sft_pair)),
                                   .coded = sfti_arena_array(&r->named, most, sizeof(sft_pair)) };
    if (!r->names.pairs || !r->names.coded) return sfti_fail_memory(err, most * sizeof(sft_pair));
    for (size_t i = 0; !code && i < count; i++) {
        const sft_tensor *tensor = set ? sft_set_tensor_at(set, i) : sft_file_tensor_at(file, i);
        const sft_pair *pair = &r->names.pairs[r->names.tensors];
        code = put_name(r, tensor->name, err);
        if (!code) r->names.tensors += !sft_span_equal(pair->key, pair->value);
        if (!code && sfti_may_hold_codes(tensor->dtype))
            r->names.coded[r->names.coded_count++] = *pair;
    }
    if (!code) code = put_aliases(r, &aliases, err);
    if (code) return code;
    for (size_t i = 0; i < r->maps.count; i++)
        if (!r->maps.used[i])
            return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, r->maps.items[i].key,
                                    "expected a tensor of this name, found none");
    bool tells = r->c->set.dry_run && !cli_is_json(r->c);
    for (size_t i = 0; tells && i < r->names.tensors + r->names.aliases; i++)
        cli_fill(&r->c->out, "% -> %\n", r->names.pairs[i].key, r->names.pairs[i].value);
    return SFT_OK;
}

/* ── The command ── */

static sft_code rename_file(cli *c, const char *path, rename_run *r, sft_error *err) {
    sft_edit *edit;
    sft_edit_report report;
    sft_edit_options options = cli_edit_options(c);
    sft_code code = sft_edit_open(path, &options, &edit, err);
    if (!code) code = new_names(r, NULL, sft_edit_file(edit), err);
    if (!code) code = cli_rename_beside(c, path, &r->names, err);
    size_t all = r->names.tensors + r->names.aliases;
    for (size_t i = 0; !code && i < all; i++)
        code = sft_edit_rename(edit, r->names.pairs[i].key, r->names.pairs[i].value, err);
    /* The edit has copies; JSON lists the names, else their number does. */
    bool listed = cli_is_json(c);
    if (!listed) sfti_arena_free(&r->named);
    if (!code) code = cli_edit_finish(c, path, edit, &report, err);
    if (!code) {
        bool changed = report.method != SFT_EDIT_NONE || cli_output_copies(c, path);
        cli_edit_result result = { .path = path, .report = &report, .changed = changed,
                                   .renamed = listed ? r->names.pairs : NULL,
                                   .renamed_count = all, .renamed_aliases = r->names.aliases };
        cli_edit_say(c, &result);
    }
    sft_edit_close(edit);
    return code;
}

static sft_code rename_model(cli *c, const char *path, rename_run *r, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sft_set *set = NULL;
    sft_code code = rename_begin(r, err);
    bool index = sft_path_is_index(path);
    if (!code) code = cli_edit_recover(c, path, err);
    if (!code && index && !c->set.output) code = cli_guard_lock(c, path, err);
    for (bool held = index || c->set.output != NULL; !code; held = true) {
        cli_guard_watch(c);
        code = sft_set_open(path, &options, &set, err);
        cli_guard_watched(c);
        if (code || held || !sft_set_index_path(set)) break;
        /* An index under another name: once more with its lock. */
        code = cli_guard_lock(c, sft_set_index_path(set), err);
        sft_set_close(set);
        set = NULL;
    }
    if (!code && !sft_set_index_path(set)) {
        sft_set_close(set); /* the edit opens the file, too */
        return rename_file(c, path, r, err);
    }
    if (!code && c->set.output && (code = cli_check_folder(c, c->set.output, err)) != SFT_OK)
        c->blame = c->set.output;
    if (!code) code = new_names(r, set, NULL, err);
    if (!code) code = cli_rename_beside(c, path, &r->names, err);
    if (!code) code = cli_rename_set(c, path, set, &r->names, err);
    sft_set_close(set);
    return code;
}

/* ── A copy of what is remote ── */

/* The order of names decides that of data, so that all of it is written anew. */
static sft_code rename_copy(cli *c, const char *operand, cli_parts *parts, rename_run *r,
                            sft_error *err) {
    sft_code code = cli_output_no_stream(c, err);
    c->no_imports = true;
    if (!code) code = rename_begin(r, err);
    if (!code) code = cli_parts_open_one(c, operand, false, parts, err);
    if (!code) code = new_names(r, parts->sets[0], NULL, err);
    if (!code) code = cli_rename_beside(c, parts->path, &r->names, err);
    if (code) return code;
    for (size_t i = 0; !code && i < parts->count; i++)
        code = new_name(r, parts->parts[i].spec.name, &parts->parts[i].spec.name, err);
    const sft_set *set = parts->sets[0];
    const cli_rename_names *names = &r->names;
    size_t all = names->tensors + names->aliases, pairs = 0;
    const char *input = parts->path;
    bool changed = all > 0 || cli_output_copies(c, input);
    cli_changed_pair *pair = NULL;
    parts->changed = all > 0;
    parts->untold = true;
    cli_output out;
    if (!code)
        code = cli_renamed_pairs(set, names->pairs, names->tensors, names->pairs + names->tensors,
                                 names->aliases, &parts->arena, &pair, &pairs, err);
    if (!code) code = cli_parts_change(c, parts, !sft_set_index_path(set), pair, pairs, err);
    if (!code && changed && sft_set_index_path(set)) {
        code = cli_output_set(c, parts, (uint32_t)sft_set_shard_count(set), err);
    } else if (!code && changed) {
        code = cli_output_begin(&out, c, input, CLI_TARGET_NEW, err);
        if (!code) code = cli_output_sources(c, parts, &out, err);
        if (!code) code = cli_output_parts(&out, c, parts, err);
    }
    if (code) return code;
    c->same = all == 0;
    cli_edit_result result = { .path = input, .changed = changed, .renamed = names->pairs,
                               .renamed_count = all, .renamed_aliases = names->aliases };
    cli_edit_say(c, &result);
    return SFT_OK;
}

static void run_rename(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    rename_run r = { .c = c, .arena.alloc = c->alloc, .scratch.alloc = c->alloc,
                   .named.alloc = c->alloc };
    cli_parts parts = { .arena = { .alloc = c->alloc } };
    const char *path = operands[0];
    bool remote = cli_is_remote(c, path);
    sft_code code = remote ? rename_copy(c, path, &parts, &r, &err)
                           : cli_edit_operand(c, &r.arena, path, &path, &err);
    (void)count;
    cli_parts_free(&parts);
    if (!code && !remote) code = rename_model(c, path, &r, &err);
    if (code && r.blame) path = r.blame;
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, path, &err);
    else if (code) cli_edit_fail(c, path, &err);
    for (size_t i = 0; i < r.rule_count; i++) sfti_regex_free(r.rules[i].regex);
    sfti_arena_free(&r.named);
    sfti_arena_free(&r.arena);
}

const cli_command cli_rename_command = {
    "rename", "FILE", "rename tensors in place",
    "Changes only the names in the header, as meta changes metadata: at once if they fit, and "
    "atomically. A tensor named by --map or --map-file gets that name; others that --match and "
    "--exclude leave go through --strip-prefix, each --regex and --add-prefix, in this order. All "
    "renames are applied together. If two tensors would get the same name, nothing is changed. "
    "Metadata that names tensors follows: other names of a tensor (aliases, which are renamed like "
    "tensors), lora_adapter_metadata and declarations of quantised layers; if it cannot, because "
    "more than the beginning of names changes, nothing is changed. "
    "sshs_legacy_hash, a digest that covers the names, is dropped from the metadata.\n"
    "The names that another program expects are known to \"convert --layout\" (models) and \"lora "
    "convert --to\" (adapters), which divide and join tensors, too, where it wants that.\n"
    "--regex takes POSIX extended regular expressions over UTF-8, with \\w \\W \\s \\S \\b \\B \\< "
    "\\> besides, and without references to groups in the pattern. The leftmost longest match is "
    "replaced; finding one takes linear time, whatever the pattern.\n"
    "For a model with an index, the shards whose tensors are renamed are written under new "
    "names, then the index, then the old shards are removed unless another index in the folder "
    "names them. With -o, OUT is a new file, or for a model with an index a new or empty folder.",
    CLI_EXAMPLES(
        { "safetensors rename model.safetensors --strip-prefix model.diffusion_model.",
          "the names another program expects" },
        { "safetensors rename model.safetensors --map embed.weight=wte.weight", "one tensor" },
        { "safetensors rename model.safetensors --map-file names.json", "every name in a list" },
        { "safetensors rename model.safetensors --regex \"s/^layers\\.([0-9]+)/blocks.\\1/\" "
          "--dry-run",
          "which names would change" }),
    { CLI_OPTIONS(
        CLI_TAKES_MANY(0, "map", "OLD=NEW", map,
          "rename this tensor; may be repeated, also to swap two names"),
        CLI_TAKES(0, "map-file", "FILE", map_file,
          "the same for every line OLD<tab>NEW of a file, or every member \"OLD\": \"NEW\" of a "
          "JSON object; - is standard input"),
        CLI_TAKES_MANY(0, "regex", "s/RE/TO/", regex,
          "replace matches of an extended regular expression; in TO, & is the match and a "
          "backslash with 1 to 9 a group; g at the end: all matches; may be repeated"),
        CLI_TAKES(0, "strip-prefix", "TEXT", strip_prefix,
          "remove this prefix from names that have it"),
        CLI_TAKES(0, "add-prefix", "TEXT", add_prefix, "prepend this to names")),
      cli_match_options, cli_editing_options, cli_output_path_options, cli_writing_options,
      cli_json_options, cli_reading_options, cli_remote_options, cli_network_options,
      cli_common_options },
    { "done, also if no name changes", "no tensor has a name given with --map or --map-file",
      "the model could not be read or written, two tensors would get one name, or a usage error" },
    1, 1, run_rename, CLI_URLS_COPY_FIRST,
};
