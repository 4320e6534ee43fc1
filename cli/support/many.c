/* Commands that write, over many models: the name of each result. Tests: tests/cli/general. */
#include "support/guard.h"
#include "support/output.h"

#include "base/portable.h"
#include "os/io.h"
#include "os/path.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/moves.h"
#include "support/remote.h"
#include "support/words.h"

#include <stdlib.h>
#include <string.h>

#define URL_NAME_MOST 200 /* bytes of the name of a result */

typedef struct many {
    cli *c;
    sfti_arena arena;
    cli_input_list inputs;
    const cli_input **items; /* of -r those found, else the operands */
    size_t count;
    const char **outputs; /* of each; NULL without -o */
    const char *folder;   /* of -o, or NULL */
    bool made;            /* the folder is new */
    bool alike;           /* outputs differ by case alone: one file on some file systems */
} many;

static bool is_folder(const cli *c, const char *path) {
    os_info info;
    size_t len = strlen(path);
    if (strcmp(path, "-") == 0) return false;
    if (cli_is_remote(c, path)) return cli_is_folder_url(path);
    if (len > 0 && sfti_is_separator(path[len - 1])) return true;
    return sfti_os_info_path(path, true, &info) == 0 && info.kind == OS_DIR;
}

/* An index of a sharded model, PyTorch's included. */
static bool is_index(const char *path) {
    return sft_path_is_index(path) || cli_ends_with(sft_span_cstr(path), ".bin.index.json");
}

/* What numbered shards are called before their numbers, unless all models are called so ("model",
 * "pytorch_model.fp16"); empty: they are not numbered. */
static sft_span name_of_shards(const char *path, bool *are_numbered) {
    uint64_t number, of;
    sft_span name = { "", 0 };
    *are_numbered = cli_shard_of(path, &number, &of, &name) && of > 1;
    if (*are_numbered) name = sfti_path_name(name);
    const char *dot = name.len ? memchr(name.data, '.', name.len) : NULL;
    sft_span word = { name.data, dot ? (size_t)(dot - name.data) : name.len };
    return cli_is(word, "model") || cli_ends_with(word, "_model") ? (sft_span){ "", 0 } : name;
}

/* The name of a result: its input's or, of a model in several files, that of its shards or of its
 * folder. */
static sft_span name_of(const char *path, bool is_set) {
    bool numbered;
    if (!is_set) return cli_name_of(path);
    sft_span own = name_of_shards(path, &numbered);
    if (own.len > 0) return own;
    sft_span folder = numbered || is_index(path) ? cli_folder_of(path) : sft_span_cstr(path);
    sft_span name = sfti_path_name(sfti_path_trimmed(folder));
    bool none = name.len == 0 || strspn(name.data, ".") >= name.len;
    return none ? sft_span_cstr("model") : name;
}

/* The name of what a model in another format becomes: the extension, the number of the first part
 * of GGUF, with which the others are read, and what PyTorch calls models give way. */
static const char *imported_name(many *m, sft_span name) {
    static const char torch[] = "pytorch_model";
    uint64_t number, of;
    sft_span base;
    size_t len = name.len;
    while (len > 0 && name.data[len - 1] != '.') len--;
    len = len > 1 ? len - 1 : name.len;
    if (cli_ends_with(name, ".gguf") && cli_shard_of(name.data, &number, &of, &base) && number == 1)
        len = base.len;
    if (len >= sizeof torch - 1 && memcmp(name.data, torch, sizeof torch - 1) == 0) {
        name.data += 8; /* "model" */
        len -= 8;
    }
    return sfti_arena_join(&m->arena, (sft_span){ name.data, len }, sft_span_cstr(".safetensors"));
}

/* Makes the name of a URL one that every file system takes: a server chooses no folder, and no
 * hidden file. */
static bool make_safe(many *m, sft_span *name) {
    char *safe = sfti_arena_take(&m->arena, URL_NAME_MOST + 1);
    if (!safe) return false;
    sft_span given = name->len ? *name : sft_span_cstr("model");
    cli_safe_name(given, URL_NAME_MOST, safe);
    *name = sft_span_cstr(safe);
    return true;
}

/* A path becomes that of its folder if it is the file that stands for a SavedModel. */
static bool leave_saved_model(many *m, const char **path) {
    sft_span folder = sfti_path_trimmed(cli_folder_of(*path));
    if (strcmp(cli_name_of(*path).data, "variables.index") != 0
        || !sft_span_equal(sfti_path_name(folder), sft_span_cstr("variables")))
        return false;
    *path = sfti_arena_copy(&m->arena, folder.data, folder.len - strlen("variables"));
    return true;
}

/* The path of the result of a model, in the folder of -o; NULL when out of memory. A folder that is
 * no set holds a model in one file. A name found on this system becomes what every other one takes:
 * no device ("nul.ckpt"), no stream ("x:y"). Names that are portable stay. */
static const char *output_of(many *m, const char *path, bool is_set) {
    char safe[256];
    const char *why;
    is_set = is_set || is_index(path);
    bool in_folder = !is_set && (leave_saved_model(m, &path) || is_folder(m->c, path));
    if (!path) return NULL;
    sft_span name = name_of(path, is_set || in_folder);
    if (cli_is_remote(m->c, path) && !make_safe(m, &name)) return NULL;
    bool may = !is_set && (in_folder || m->c->imports || cli_is_remote(m->c, path)
                           || cli_other_format(name) < CLI_OTHER_FORMATS);
    if (may && !cli_ends_with(name, ".safetensors") && !cli_ends_with(name, ".sft")) {
        const char *text = in_folder ? sfti_arena_join(&m->arena, name,
                                                       sft_span_cstr(".safetensors"))
                                     : imported_name(m, name);
        if (!text) return NULL;
        name = sft_span_cstr(text);
    }
    if (!sfti_name_portable(name, &why)) {
        cli_safe_name(name, sizeof safe - 1, safe);
        name = sft_span_cstr(safe);
    }
    char *copy = sfti_arena_copy(&m->arena, name.data, name.len);
    return copy ? cli_join_path(&m->arena, sft_span_cstr(m->folder), copy) : NULL;
}

static int compare_folded(const char *a, const char *b) {
    return sfti_name_compare_folded(sft_span_cstr(a), sft_span_cstr(b));
}

static int compare_paths(const void *a, const void *b) {
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    int order = compare_folded(left, right);
    return order != 0 ? order : strcmp(left, right);
}

static sft_code name_outputs(many *m, sft_error *err) {
    size_t count = m->count;
    m->outputs = sfti_arena_array(&m->arena, count + 1, sizeof *m->outputs);
    if (!m->outputs) return sfti_fail_memory(err, count);
    for (size_t i = 0; i < count; i++) {
        const cli_input *input = m->items[i];
        m->outputs[i] = output_of(m, input->path, input->kind == CLI_INDEX || input->shards);
        if (!m->outputs[i]) return sfti_fail_memory(err, strlen(input->path));
    }
    /* The result of one would replace that of another. */
    const char **sorted = sfti_arena_array(&m->arena, count, sizeof *sorted);
    if (!sorted) return sfti_fail_memory(err, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) /* what is no model has no result */
        if (m->items[i]->kind < CLI_EMPTY) sorted[n++] = m->outputs[i];
    qsort(sorted, n, sizeof *sorted, compare_paths);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            return cli_usage_error(err, "expected models of different names for -o %s, found two "
                                   "results %s", m->folder, sorted[i]);
        m->alike = m->alike || compare_folded(sorted[i - 1], sorted[i]) == 0;
    }
    return SFT_OK;
}

/* The result of this run that the ith would replace, where the file system ignores case. */
static const char *taken_by(const many *m, size_t i) {
    for (size_t k = 0; m->alike && m->c->set.force && k < i; k++)
        if (cli_is_one_name(m->outputs[k], m->outputs[i])) return m->outputs[k];
    return NULL;
}

static sft_code make_folder(many *m, sft_error *err) {
    os_info info;
    if (sfti_os_info_path(m->folder, true, &info) == 0) return SFT_OK;
    m->c->folder_unmade = m->c->set.dry_run != 0;
    if (m->c->folder_unmade) return cli_check_above(m->folder, "make the folder", err);
    int error = sfti_os_make_folder(m->folder, 0777);
    m->made = !error;
    return error ? sfti_io_fail(err, SFT_IO_OPEN, error, "make the folder") : SFT_OK;
}

/* Whether a folder's model is in one file, and so is what is made of it. repair gives a shard an
 * index. */
static bool is_one_file(const cli *c, const char *folder) {
    cli_depth depth = c->no_imports ? CLI_ONE_LEVEL : (cli_depth)CLI_ELSE_OTHERS;
    cli_inputs in;
    uint64_t number, of;
    sft_span base;
    if (c->set.layout) return false;
    bool one = !cli_inputs_expand(folder, depth, NULL, &c->open, &in, NULL) && in.count == 1
            && in.items[0]->kind == CLI_FILE && !is_index(in.items[0]->path)
            && !(c->no_imports && cli_shard_of(in.items[0]->path, &number, &of, &base));
    cli_inputs_free(&in);
    return one;
}

/* A folder without -r stays what the command makes of it. */
static sft_code list_operands(many *m, char **operands, size_t count, sft_error *err) {
    cli_input *inputs = sfti_arena_array(&m->arena, count, sizeof *inputs);
    m->items = sfti_arena_array(&m->arena, count, sizeof *m->items);
    if (!inputs || !m->items) return sfti_fail_memory(err, count);
    for (size_t i = 0; i < count; i++) {
        bool is_set = is_index(operands[i])
                   || (is_folder(m->c, operands[i]) && !is_one_file(m->c, operands[i]));
        inputs[i] = (cli_input){ .kind = is_set ? CLI_INDEX : CLI_FILE, .path = operands[i] };
        m->items[i] = &inputs[i];
    }
    m->count = count;
    return SFT_OK;
}

static void each_of_many(many *m, char **operands, size_t count, cli_write_fn each, void *ctx) {
    sft_error err = SFT_ERROR_INIT;
    cli *c = m->c;
    size_t changed = c->changed, unchanged = c->unchanged;
    sft_code code = SFT_OK;
    c->several = true;
    if (c->set.output && !m->folder) {
        code = cli_usage_error(&err, "expected a folder (DIR/) for -o with several models, found "
                               "%s", c->set.output);
    } else if (c->set.recursive) {
        code = cli_list_inputs(c, operands, count, &m->inputs, &err);
        m->items = m->inputs.items;
        m->count = m->inputs.count;
    } else {
        code = list_operands(m, operands, count, &err);
    }
    if (!code && m->folder) code = name_outputs(m, &err);
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    if (m->folder && make_folder(m, &err)) {
        cli_fail_input(c, m->folder, &err);
        return;
    }
    size_t models = 0;
    for (size_t i = 0; i < m->count && !cli_is_over(c); i++) {
        const cli_input *input = m->items[i];
        models += input->kind != CLI_EMPTY;
        c->dropped = 0;
        if (m->outputs) c->set.output = m->outputs[i];
        const char *taken = m->outputs ? taken_by(m, i) : NULL;
        if (taken) {
            (void)sfti_fail(&err, SFT_EXISTS, "expected another name than that of %s, which was "
                            "written just now and would be replaced", taken);
            cli_fail_input(c, m->outputs[i], &err);
        } else if (cli_input_is_path(input) || input->kind == CLI_STDIN) {
            c->joined = input->shards ? input : NULL;
            c->beside = (cli_beside){ .left = NULL };
            each(c, input->path, ctx);
            cli_guard_forget(c);
            c->joined = NULL;
        } else cli_report_input(c, input);
    }
    if (models == 0 || cli_is_over(c) || cli_is_json(c)) return;
    changed = c->changed - changed;
    unchanged = c->unchanged - unchanged;
    cli_printf(&c->out, "%zu model%s: %zu %s", models, models == 1 ? "" : "s", changed,
               c->set.dry_run ? "would be written" : "written");
    if (unchanged) cli_printf(&c->out, ", %zu unchanged", unchanged);
    if (changed + unchanged < models)
        cli_printf(&c->out, ", %zu failed", models - changed - unchanged);
    cli_text(&c->out, "\n");
}

void cli_write_each(cli *c, char **operands, size_t count, cli_write_fn each, void *ctx) {
    sft_error err = SFT_ERROR_INIT;
    const char *output = c->set.output;
    size_t well = c->changed + c->unchanged;
    many m = { .c = c, .arena.alloc = c->alloc };
    sft_code code = SFT_OK;
    bool several = count > 1 || c->set.recursive;
    if (output && is_folder(c, output)) m.folder = output;
    /* A folder for a model in one file: its name stays. One in several files fills the folder. */
    if (!several && m.folder && strcmp(operands[0], "-") != 0 && !is_index(operands[0])
        && !is_folder(c, operands[0])) {
        code = make_folder(&m, &err);
        if (!code) c->set.output = output_of(&m, operands[0], false);
        if (!c->set.output) code = sfti_fail_memory(&err, strlen(operands[0]));
    }
    if (several) {
        each_of_many(&m, operands, count, each, ctx);
        cli_input_list_free(&m.inputs);
    } else if (code) {
        cli_fail_input(c, output, &err);
    } else {
        each(c, operands[0], ctx);
    }
    if (m.made && c->changed + c->unchanged == well) (void)sfti_os_remove_folder(m.folder);
    c->set.output = output;
    sfti_arena_free(&m.arena);
}
