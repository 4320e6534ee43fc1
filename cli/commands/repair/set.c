/* repair: what was found as JSON; a model in several files.
 * Tests: tests/cli/repair. */
#include "commands/repair/repair.h"

#include "base/files.h"
#include "base/order.h"
#include "base/sink.h"
#include "edit/dropped.h"
#include "os/os.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/edit.h"
#include "support/files.h"
#include "support/fresh.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/raw.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

static void put_fix(sfti_json_writer *w, const char *path, const char *fix, const sft_error *found,
                 const char *done) {
    sfti_json_open(w, '{');
    sfti_json_path(w, path);
    sfti_json_put_cstr(w, "fix", fix);
    sfti_json_key(w, "offset");
    if (found->offset == SFT_NO_OFFSET) sfti_json_null(w);
    else sfti_json_uint(w, found->offset);
    sfti_json_key(w, "tensor");
    if (found->tensor_len == SFT_NO_TENSOR) sfti_json_null(w);
    else sfti_json_span(w, (sft_span){ found->tensor, found->tensor_len });
    sfti_json_put_cstr(w, "message", found->message);
    sfti_json_put_cstr(w, "done", done);
    sfti_json_close(w, '}');
}

void cli_put_fixes(sfti_json_writer *w, const char *path, const sft_repair *repair) {
    for (size_t i = 0; i < sft_repair_fix_count(repair); i++) {
        const sft_fix *fix = sft_repair_fix_at(repair, i);
        put_fix(w, path, fix->name, &fix->found, fix->done);
    }
}

cli_written_file cli_repaired_file(const char *path, const sft_repair *repair) {
    cli_written_file file = { path, sft_repair_tensor_count(repair), 0 };
    for (size_t i = 0; i < file.tensors; i++) {
        sft_spec spec = sft_repair_tensor_at(repair, i);
        file.bytes += cli_spec_bytes(&spec);
    }
    return file;
}

/* ── A model in several files ── */

/* A tensor of the model, or one that the index names. */
typedef struct repair_row {
    sft_span name;
    uint32_t file; /* that has it, or is said to; UINT32_MAX: another */
} repair_row;

typedef struct repair_list {
    repair_row *rows;
    uint32_t *order; /* by name */
    size_t count;
} repair_list;

/* What is wrong with the index. */
typedef struct index_fixes {
    size_t misplaced, unnamed;
    sft_span first_misplaced, first_unnamed;
    bool total;
    sft_span total_found; /* as it stands there */
} index_fixes;

typedef struct repair_model {
    cli *c;
    sfti_arena *arena;
    const char **path;  /* what a failure is about */
    const char *index;  /* of the input; NULL: there is none */
    const char *folder; /* of the input, with its slash */
    const char **names; /* of the files, beneath folder */
    const char **paths;
    sft_repair **repairs;
    size_t count;
    repair_list tensors, claims;
    uint64_t bytes; /* of all tensors */
    cli_fresh fresh;
    index_fixes found;
    sfti_json_writer *w; /* as objects, or NULL */
} repair_model;

static sft_code model_memory(sft_error *err) { return sfti_fail_memory(err, sizeof(repair_row)); }

bool cli_repairs_set(const char *operand) {
    os_info info;
    return sft_path_is_index(operand)
           || (sfti_os_info_path(operand, true, &info) == 0 && info.kind == OS_DIR);
}

/* ── Which files ── */

/* Where file i goes; NULL when out of memory. */
static char *output_path(const repair_model *m, size_t i) {
    return cli_join_path(m->arena, sft_span_cstr(m->c->set.output), m->names[i]);
}

static sft_code take_index(repair_model *m, const char *index, sft_error *err) {
    sft_set_options options = cli_set_options(m->c);
    sft_index *read = NULL;
    m->index = *m->path = index;
    m->folder = sfti_arena_copy(m->arena, index, sfti_folder_len(index));
    sft_code code = sft_index_open(index, &options, &read, err);
    if (code) return code;
    m->count = sft_index_shard_count(read);
    m->names = sfti_arena_array(m->arena, m->count, sizeof *m->names);
    bool fine = m->folder && m->names;
    for (size_t i = 0; fine && i < m->count; i++) {
        const char *name = sft_index_shard_at(read, i);
        m->names[i] = sfti_arena_copy(m->arena, name, strlen(name));
        fine = m->names[i] != NULL;
    }
    sft_index_close(read);
    return fine ? SFT_OK : model_memory(err);
}

/* STEM-00001-of-00003.safetensors: the stem's length and the numbers; false for other names. */
static bool parse_shard_name(const char *name, size_t *stem, uint64_t *i, uint64_t *n) {
    sft_span base;
    if (!cli_shard_of(name, i, n, &base)) return false;
    *stem = base.len;
    return *stem > 0 && strlen(name) == *stem + sizeof "-00001-of-00003.safetensors" - 1
           && strcmp(name + *stem + 15, ".safetensors") == 0;
}

static sft_code no_family(repair_model *m, sft_error *err) {
    cli_not_one(m->count, err);
    if (m->count) cli_hint(err, CLI_HINT_EACH_FILE);
    return SFT_BAD_ARGUMENT;
}

/* Files without an index, in natural order: are they the shards of one model? */
static sft_code check_family(repair_model *m, sft_error *err) {
    size_t stem = 0, next;
    uint64_t i, n = 0, count;
    for (size_t f = 0; f < m->count; f++) {
        if (!parse_shard_name(m->names[f], &next, &i, &count)) return no_family(m, err);
        if (f == 0) stem = next, n = count;
        if (next != stem || count != n || memcmp(m->names[f], m->names[0], stem) != 0)
            return no_family(m, err);
        if (i == f + 1) continue;
        return sfti_fail(err, SFT_INDEX_SHARD_MISSING,
                         "expected shard %zu of %" PRIu64 ", found %s", f + 1, n, m->names[f]);
    }
    if (m->count == n) return SFT_OK;
    return m->count ? sfti_fail(err, SFT_INDEX_SHARD_MISSING,
                                "expected %" PRIu64 " shards, found %zu", n, m->count)
                    : no_family(m, err);
}

static sft_code take_folder(repair_model *m, const char *operand, const cli_inputs *inputs,
                            sft_error *err) {
    m->count = inputs->count;
    m->folder = cli_join_path(m->arena, sft_span_cstr(operand), "");
    m->names = sfti_arena_array(m->arena, m->count, sizeof *m->names);
    if (!m->folder || !m->names) return model_memory(err);
    for (size_t i = 0; i < m->count; i++) {
        const cli_input *input = inputs->items[i];
        if (input->kind == CLI_BLOCKED) {
            *err = *input->err;
            return err->code;
        }
        if (input->kind == CLI_EMPTY) m->count = 0;
        if (input->kind == CLI_INDEX) { /* a broken one does not hide its shards */
            sft_set_options options = cli_set_options(m->c);
            sft_index *read = NULL;
            sft_code code = sft_index_open(input->path, &options, &read, err);
            sft_index_close(read);
            const char *kept = code ? sfti_arena_copy(m->arena, input->path, strlen(input->path))
                                    : NULL;
            if (kept) *m->path = kept;
            if (code) return code;
        }
        if (input->kind != CLI_FILE) return no_family(m, err);
        const char *name = cli_name_of(input->path).data;
        m->names[i] = sfti_arena_copy(m->arena, name, strlen(name));
        if (!m->names[i]) return model_memory(err);
    }
    return check_family(m, err);
}

static sft_code take_operand(repair_model *m, const char *operand, sft_error *err) {
    cli_inputs inputs;
    if (sft_path_is_index(operand)) return take_index(m, operand, err);
    sft_code code = cli_inputs_expand(operand, CLI_ONE_LEVEL, NULL, &m->c->open, &inputs, err);
    if (!code && inputs.count == 1 && inputs.items[0]->kind == CLI_INDEX) {
        const char *path = inputs.items[0]->path;
        const char *index = sfti_arena_copy(m->arena, path, strlen(path));
        code = index ? take_index(m, index, err) : model_memory(err);
    } else if (!code) {
        code = take_folder(m, operand, &inputs, err);
    }
    cli_inputs_free(&inputs);
    return code;
}

const char *cli_repairs_one(const cli *c, const char *folder, sfti_arena *arena) {
    sft_error err = SFT_ERROR_INIT;
    cli_inputs inputs;
    const char *one = NULL;
    uint64_t i, n;
    sft_span base;
    if (sft_path_is_index(folder)) return NULL;
    sft_code code = cli_inputs_expand(folder, CLI_ONE_LEVEL, NULL, &c->open, &inputs, &err);
    const cli_input *input = !code && inputs.count == 1 ? inputs.items[0] : NULL;
    if (input && input->kind == CLI_FILE
        && !cli_shard_of(input->path, &i, &n, &base))
        one = sfti_arena_copy(arena, input->path, strlen(input->path));
    cli_inputs_free(&inputs);
    return one;
}

/* ── What is in them ── */

static int compare_rows(const void *ctx, uint32_t a, uint32_t b) {
    const repair_row *rows = ctx;
    return sfti_bytes_compare(rows[a].name, rows[b].name);
}

static sft_code sort_list(repair_model *m, repair_list *list, sft_error *err) {
    list->order = sfti_arena_sorted(m->arena, list->count, compare_rows, list->rows);
    return list->order ? SFT_OK : model_memory(err);
}

static sft_code open_files(repair_model *m, sft_error *err) {
    sft_open_options options = m->c->open;
    options.beneath = m->index ? m->folder : NULL;
    m->repairs = sfti_arena_array(m->arena, m->count, sizeof(sft_repair *));
    if (m->repairs && m->count > 0) memset(m->repairs, 0, m->count * sizeof(sft_repair *));
    m->paths = sfti_arena_array(m->arena, m->count, sizeof *m->paths);
    if (!m->repairs || !m->paths) return model_memory(err);
    for (size_t i = 0; i < m->count; i++) {
        m->paths[i] = cli_join_path(m->arena, sft_span_cstr(m->folder), m->names[i]);
        if (!m->paths[i]) return model_memory(err);
        *m->path = m->paths[i];
        sft_code code = sft_repair_open(*m->path, &options, &m->repairs[i], err);
        if (code == SFT_NOT_FOUND) sfti_hint(err, SFT_HINT_DOWNLOAD_SHARD);
        if (code) return code;
        m->tensors.count += sft_repair_tensor_count(m->repairs[i]);
    }
    return SFT_OK;
}

static sft_code list_files(repair_model *m, sft_error *err) {
    size_t at = 0;
    repair_row *rows = sfti_arena_array(m->arena, m->tensors.count, sizeof *rows);
    if (!rows || m->tensors.count >= UINT32_MAX) return model_memory(err);
    m->tensors.rows = rows;
    for (size_t i = 0; i < m->count; i++) {
        for (size_t t = 0; t < sft_repair_tensor_count(m->repairs[i]); t++) {
            sft_spec spec = sft_repair_tensor_at(m->repairs[i], t);
            rows[at++] = (repair_row){ spec.name, (uint32_t)i };
            m->bytes += cli_spec_bytes(&spec);
        }
    }
    sft_code code = sort_list(m, &m->tensors, err);
    for (size_t i = 1; !code && i < at; i++) {
        const repair_row *a = &rows[m->tensors.order[i - 1]], *b = &rows[m->tensors.order[i]];
        if (!sft_span_equal(a->name, b->name)) continue;
        *m->path = m->index ? m->index : m->folder;
        code = sfti_fail_tensor(err, SFT_INDEX_TENSOR_DUPLICATE, SFT_NO_OFFSET, a->name,
                                "expected the tensor in one shard, found it in %s and %s",
                                m->names[a->file], m->names[b->file]);
    }
    return code;
}

static bool decode_text(repair_model *m, sft_span text, sft_span *out) {
    char *buffer = sfti_arena_take(m->arena, text.len + 1);
    if (!buffer) return false;
    *out = (sft_span){ buffer, sfti_json_decode(text, buffer) };
    return true;
}

/* sft_index_open has seen that it is an object of strings. */
static sft_code list_claims(repair_model *m, sft_span map, sft_error *err) {
    cli_raw raw;
    size_t most = 0;
    for (cli_raw_begin(&raw, map); cli_raw_next(&raw);) most++;
    m->claims.count = 0;
    m->claims.rows = sfti_arena_array(m->arena, most, sizeof *m->claims.rows);
    if (!m->claims.rows) return model_memory(err);
    for (cli_raw_begin(&raw, map); cli_raw_next(&raw);) {
        repair_row *row = &m->claims.rows[m->claims.count++];
        sft_span shard = { raw.value.data + 1, raw.value.len - 2 };
        if (!decode_text(m, raw.key, &row->name) || !decode_text(m, shard, &shard))
            return model_memory(err);
        row->file = UINT32_MAX;
        for (size_t i = 0; i < m->count && row->file == UINT32_MAX; i++)
            if (cli_is(shard, m->names[i])) row->file = (uint32_t)i;
    }
    return sort_list(m, &m->claims, err);
}

/* Both lists side by side, by name. */
static sft_code compare_claims(repair_model *m, sft_error *err) {
    const repair_list *t = &m->tensors, *k = &m->claims;
    index_fixes *found = &m->found;
    size_t i = 0, j = 0;
    while (i < t->count || j < k->count) {
        const repair_row *a = i < t->count ? &t->rows[t->order[i]] : NULL;
        const repair_row *b = j < k->count ? &k->rows[k->order[j]] : NULL;
        int order = !a ? 1 : !b ? -1 : sfti_bytes_compare(a->name, b->name);
        if (order > 0)
            return sfti_fail_tensor(err, SFT_INDEX_TENSOR_MISSING, SFT_NO_OFFSET, b->name,
                                    "expected the tensor in a shard, found it in none");
        if (order < 0 && found->unnamed++ == 0) found->first_unnamed = a->name;
        if (order == 0 && a->file != b->file && found->misplaced++ == 0)
            found->first_misplaced = a->name;
        i++;
        j += order == 0;
    }
    return SFT_OK;
}

/* Before anything is written; the findings are printed afterwards. */
static sft_code check_index(repair_model *m, sft_error *err) {
    sft_buffer text;
    sft_span map;
    if (!m->index) return SFT_OK;
    *m->path = m->index;
    sft_code code = cli_read_file(m->c, m->index, SFT_MAX_INDEX_BYTES, &text, err);
    sft_span whole = { text.data ? text.data : "", text.len };
    while (whole.len > 0 && memchr(" \t\r\n", *whole.data, 4)) whole.data++, whole.len--;
    if (!code && cli_raw_member(whole, "weight_map", &map)) code = list_claims(m, map, err);
    if (!code) code = compare_claims(m, err);
    sft_span metadata, value = sft_span_cstr("none");
    uint64_t total = 0;
    bool there = cli_raw_member(whole, "metadata", &metadata)
                 && cli_raw_member(metadata, "total_size", &value);
    bool right = there && cli_raw_uint(metadata, "total_size", &total) && total == m->bytes;
    if (!code && !right) {
        const char *kept = sfti_arena_copy(m->arena, value.data, value.len);
        m->found.total = true;
        m->found.total_found = (sft_span){ kept, value.len };
        if (!kept) code = model_memory(err);
    }
    sft_buffer_free(&text);
    return code;
}

static void tell_index(repair_model *m, const char *fix, size_t count, sft_span first,
                       const char *what, const char *done, const char *would) {
    cli_out *out = &m->c->out;
    sft_error found = SFT_ERROR_INIT;
    if (count == 0) return;
    if (m->w) {
        sfti_error_text(&found, "%zu tensor%s%s", count, count == 1 ? "" : "s", what);
        sfti_error_tensor(&found, first);
        put_fix(m->w, m->index ? m->index : m->folder, fix, &found, done);
        return;
    }
    cli_path(out, m->index ? m->index : m->folder,
             ": %s: %zu tensor%s%s (the first is ", fix, count, count == 1 ? "" : "s", what);
    cli_quoted(out, first);
    cli_printf(out, "): %s\n", m->c->set.dry_run ? would : done);
}

static void tell_index_fixes(repair_model *m) {
    const index_fixes *found = &m->found;
    const repair_list *t = &m->tensors;
    if (!m->index) {
        sft_span first = t->count > 0 ? t->rows[t->order[0]].name : sft_span_cstr("");
        tell_index(m, "no_index", t->count, first, " in shards without an index",
                   "an index is written", "an index would be written");
        return;
    }
    tell_index(m, "misplaced", found->misplaced, found->first_misplaced,
               " in another shard than the index says", "put right in the index",
               "would be put right in the index");
    tell_index(m, "not_in_index", found->unnamed, found->first_unnamed,
               " that the index does not name", "added to the index",
               "would be added to the index");
    if (!found->total) return;
    const sft_span value = found->total_found;
    if (m->w) {
        sft_error total = SFT_ERROR_INIT;
        sfti_error_text(&total, "expected %" PRIu64 ", found %.*s", m->bytes,
                        value.len < 40 ? (int)value.len : 40, value.data);
        put_fix(m->w, m->index, "total_size", &total, "put right in the index");
        return;
    }
    cli_path(&m->c->out, m->index, ": total_size: expected %" PRIu64 ", found ", m->bytes);
    cli_escaped_cut(&m->c->out, value, 40);
    cli_text(&m->c->out, m->c->set.dry_run ? "; would be put right in the index\n"
                                           : "; put right in the index\n");
}

static size_t count_fixes(const repair_model *m) {
    const index_fixes *found = &m->found;
    size_t fixes = !m->index;
    fixes += found->misplaced > 0;
    fixes += found->unnamed > 0;
    fixes += found->total;
    for (size_t i = 0; i < m->count; i++) fixes += sft_repair_fix_count(m->repairs[i]);
    return fixes;
}

/* ── Writing ── */

static sft_code write_file(repair_model *m, size_t i, const sft_job *job, cli_progress *progress,
                           sft_error *err) {
    const char *old = m->paths[i];
    char *path = output_path(m, i);
    sft_path_options options;
    sft_sink sink;
    if (!path) return model_memory(err);
    *m->path = path;
    sft_code code = cli_fresh_folders(&m->fresh, m->c->set.output, m->names[i], err);
    if (!code) code = cli_fresh_options(&m->fresh, old, &options, err);
    if (!code) code = sft_sink_path(path, &options, &sink, err);
    if (code) return code;
    code = sft_repair_write(m->repairs[i], sink, job, err);
    if (!code) cli_fresh_written(&m->fresh, path);
    for (size_t t = 0; t < sft_repair_tensor_count(m->repairs[i]); t++) {
        sft_spec spec = sft_repair_tensor_at(m->repairs[i], t);
        progress->before += cli_spec_bytes(&spec);
    }
    return code;
}

static void index_text(sfti_json_writer *w, const char *text) {
    w->comma = false;
    sfti_json_raw(w, sft_span_cstr(text));
    w->comma = false;
}

/* As json.dumps(index, indent=2, sort_keys=True) lays it out. */
static sft_code write_new_index(repair_model *m, const char *path,
                                const sft_path_options *options, sft_error *err) {
    const repair_list *t = &m->tensors;
    sfti_json_writer w;
    sft_sink sink;
    sft_code code = sft_sink_path(path, options, &sink, err);
    if (code) return code;
    sfti_json_write(&w, &sink, 0, err);
    index_text(&w, "{\n  \"metadata\": {\n    \"total_size\": ");
    sfti_json_uint(&w, m->bytes);
    index_text(&w, "\n  },\n  \"weight_map\": {");
    for (size_t i = 0; i < t->count && !w.code; i++) {
        const repair_row *row = &t->rows[t->order[i]];
        index_text(&w, i > 0 ? ",\n    " : "\n    ");
        sfti_json_span(&w, row->name);
        index_text(&w, ": ");
        sfti_json_cstr(&w, m->names[row->file]);
    }
    index_text(&w, t->count > 0 ? "\n  }\n}\n" : "}\n}\n");
    return sfti_sink_end(&sink, sfti_json_done(&w), err);
}

static sft_code correct_index(repair_model *m, const char *path, const sft_path_options *options,
                           sft_error *err) {
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    sft_pair *places = sfti_arena_array(m->arena, m->tensors.count, sizeof *places);
    bool changed;
    if (!places) return model_memory(err);
    for (size_t i = 0; i < m->tensors.count; i++) {
        const repair_row *row = &m->tensors.rows[m->tensors.order[i]];
        places[i] = (sft_pair){ row->name, sft_span_cstr(m->names[row->file]) };
    }
    changes.places = places;
    changes.place_count = m->tensors.count;
    changes.has_total_size = true;
    changes.total_size = m->bytes;
    return sft_index_rewrite(m->index, &changes, path, options, &changed, err);
}

static sft_code write_index(repair_model *m, sft_error *err) {
    char name[512], *path = NULL;
    size_t stem;
    uint64_t shard, n;
    sft_span folder = sft_span_cstr(m->c->set.output);
    if (m->index) { /* under its own name, or that of the shards */
        path = cli_join_path(m->arena, folder, cli_name_of(m->index).data);
    } else if (parse_shard_name(m->names[0], &stem, &shard, &n) && stem + 28 <= sizeof name) {
        memcpy(name, m->names[0], stem);
        memcpy(name + stem, ".safetensors.index.json", 24);
        path = cli_join_path(m->arena, folder, name);
    }
    const char *old = m->index ? m->index : m->paths[0];
    sft_path_options options;
    if (!path) return model_memory(err);
    *m->path = path;
    sft_code code = cli_fresh_options(&m->fresh, old, &options, err);
    if (code) return code;
    bool is_new = !m->index || m->c->set.output;
    for (size_t i = 0; is_new && i < m->count; i++)
        sfti_mode_common(&options.mode, cli_output_mode_of(m->paths[i]));
    code = m->index ? correct_index(m, path, &options, err)
                    : write_new_index(m, path, &options, err);
    if (!code) cli_fresh_written(&m->fresh, path);
    return code;
}

static sft_code rewrite_model(repair_model *m, sft_error *err) {
    bool made;
    cli_progress progress;
    *m->path = m->c->set.output;
    if (m->c->set.dry_run) return cli_check_folder(m->c, m->c->set.output, err);
    sft_code code = cli_make_folder(m->c, m->c->set.output, &made, err);
    if (code) return code;
    sft_job job = cli_progress_begin(&progress, m->c, m->c->set.output);
    progress.all = m->bytes;
    for (size_t i = 0; !code && i < m->count; i++) code = write_file(m, i, &job, &progress, err);
    cli_progress_end(&progress);
    if (!code) code = write_index(m, err);
    if (!code) code = cli_settle_folder(m->c, m->c->set.output, made, err);
    if (!code) return SFT_OK;
    cli_fresh_undo(&m->fresh);
    if (made) (void)sfti_os_remove_folder(m->c->set.output);
    return code;
}

/* ── All together ── */

static void put_model_fixes(void *ctx, sfti_json_writer *w) {
    repair_model *m = ctx;
    m->w = w;
    sfti_json_put_open(w, "fixes", '[');
    for (size_t i = 0; i < m->count; i++) cli_put_fixes(w, m->paths[i], m->repairs[i]);
    tell_index_fixes(m);
    sfti_json_close(w, ']');
    m->w = NULL;
}

static sft_code say_model(repair_model *m, const char *operand, bool writes, sft_error *err) {
    cli_written_file *files = sfti_arena_array(m->arena, m->count, sizeof *files);
    if (!files) return model_memory(err);
    for (size_t i = 0; i < m->count; i++) {
        const char *path = output_path(m, i);
        if (!path) return model_memory(err);
        files[i] = cli_repaired_file(path, m->repairs[i]);
        if (writes) m->c->dropped |= sfti_repair_dropped(m->repairs[i]);
    }
    for (size_t i = 0; !cli_is_json(m->c) && i < m->count; i++)
        cli_print_fixes(m->c, m->paths[i], m->repairs[i]);
    if (!cli_is_json(m->c)) tell_index_fixes(m);
    if (!cli_is_json(m->c) && count_fixes(m) == 0)
        cli_path(&m->c->out, m->index ? m->index : m->folder, ": nothing to repair%s\n",
                 writes ? "" : CLI_REPAIR_SKIPPED);
    if (!cli_is_json(m->c) && !writes) {
        m->c->unchanged++;
        return SFT_OK;
    }
    cli_written written = { .input = operand, .output = m->c->set.output, .files = files,
                            .file_count = writes ? m->count : 0, .is_set = true,
                            .dtype = SFT_DTYPE_COUNT, .more = put_model_fixes, .ctx = m };
    cli_say_written(m->c, &written);
    return SFT_OK;
}

sft_code cli_repair_set(cli *c, const char *operand, sfti_arena *arena, const char **path,
                        sft_error *err) {
    repair_model m = { .c = c, .arena = arena, .path = path };
    *path = operand;
    if (!c->set.output || c->set.in_place)
        return cli_usage_error(err,
                               "expected -o DIR for a model in several files, found none");
    sft_code code = cli_output_is_folder(c, err);
    if (!code) code = take_operand(&m, operand, err);
    if (!code) code = open_files(&m, err);
    if (!code) code = list_files(&m, err);
    if (!code) code = check_index(&m, err);
    bool writes = !code && (c->set.copy || count_fixes(&m) > 0);
    if (writes)
        code = cli_check_adapter_config(c, m.index ? &m.index : m.paths, 1, NULL, err);
    for (size_t i = 0; !code && writes && i < m.count && !c->beside.bare; i++)
        code = cli_check_repaired_quantiser(c, m.repairs[i], m.paths[i], NULL, err);
    if (!code) code = cli_fresh_begin(&m.fresh, c, m.folder, m.count + 1, err);
    if (!code && writes) code = rewrite_model(&m, err);
    if (!code) code = say_model(&m, operand, writes, err);
    for (size_t i = 0; m.repairs && i < m.count; i++) sft_repair_close(m.repairs[i]);
    cli_fresh_end(&m.fresh);
    return code;
}
