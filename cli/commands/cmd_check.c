/* check: check that models are valid; silent if they are.
 * Tests: tests/cli/check, tests/cli/foreign.py, tests/cli/tables.py. */
#include "base/mem.h"
#include "base/result.h"
#include "commands/commands.h"
#include "convert/dropped.h"
#include "set/deep.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/remote.h"
#include "support/words.h"
#include "safetensors_convert.h"
#include "safetensors_index.h"
#include "safetensors_scan.h"

#include <string.h>

/* ── The rules ── */

/* The first sentence of each rule of docs/format.md; tests/cli/tables.py compares, and
 * writes this table with --write-rules. */
static const char *const rule_sentences[] = {
    [1] = "A file is at least 8 bytes long: the header length",
    [2] = "The header length `N` is at most 100,000,000",
    [3] = "The file holds all `N` bytes of the header: `8 + N` is at most its length",
    [4] = "The `N` bytes are UTF-8 throughout, also outside strings and in ignored fields: no "
           "overlong form, no encoded surrogate, nothing past U+10FFFF",
    [5] = "The header's text is JSON by RFC 8259: double quotes, no comments, no trailing "
           "commas, no `NaN` or `Infinity`",
    [6] = "A string holds no byte below 20 (hexadecimal) unescaped, only the escapes of JSON, "
           "and `\\u` with four hexadecimal digits",
    [7] = "A number is spelled as JSON demands (no leading zero or plus, digits after a point "
           "and after an `e`) and is in the range of a double",
    [8] = "Objects and arrays are nested at most 127 deep, the header's own object counted, "
           "also inside ignored fields",
    [9] = "Only white space follows the header's object inside the `N` bytes",
    [10] = "The header is an object",
    [11] = "Each member of the header but `__metadata__` is a tensor entry: an object, or "
           "(compat only, R24) an array of exactly three elements",
    [12] = "An entry has `dtype`, `shape` and `data_offsets`",
    [13] = "An entry has each of `dtype`, `shape` and `data_offsets` only once",
    [14] = "`dtype` is a string, or (compat only, R25) an object with one member whose value is "
           "`null`",
    [15] = "The dtype is one of the 22 names, compared byte for byte",
    [16] = "`shape` is an array of integers from 0 to 2^64 - 1, written only as digits: no "
           "sign, point or exponent (`-0` and `2.0` are refused)",
    [17] = "`data_offsets` is an array of two integers from 0 to 2^64 - 1, written only as "
           "digits",
    [18] = "`__metadata__` is an object, or `null` (R31)",
    [19] = "Each value of `__metadata__` is a string",
    [20] = "The header has at most one `__metadata__`, even if its value is `null`",
    [21] = "The layout of 2022 is refused with a code of its own, so that a program can offer "
           "the option `legacy`",
    [22] = "No two tensors have the same name",
    [23] = "No key occurs twice in `__metadata__`",
    [24] = "An entry is an object",
    [25] = "A dtype is a string",
    [26] = "A shape has at most 64 dimensions",
    [27] = "The first byte of the header is `{`",
    [28] = "Only spaces (20 hexadecimal) follow the object: no tab, line feed or carriage return",
    [29] = "An entry has no fields other than `dtype`, `shape` and `data_offsets`",
    [30] = "A tensor's name holds no control character: none of U+0000 to U+001F and U+007F to "
           "U+009F",
    [31] = "`__metadata__` is not `null`",
    [32] = "`end` is not less than `begin`",
    [33] = "Tensors, sorted by (`begin`, `end`), follow one another without a hole: the first "
           "begins at 0, each further one where the one before it ends",
    [34] = "No two tensors share a byte: a tensor that begins before the end of the one before "
           "it breaks this rule",
    [35] = "The product of the dimensions, taken from left to right, and then the number of "
           "bits stay below 2^64 at each step",
    [36] = "The tensor's bits are whole bytes: an even count of F4, a multiple of four of F6",
    [37] = "`end - begin` is the number of bytes that shape and dtype ask for",
    [38] = "The file holds all bytes of all tensors",
    [39] = "The file ends where the last tensor does; a file without tensors ends with its "
           "header",
    [40] = "The index is a JSON object with the member `weight_map`, an object whose values are "
           "strings",
    [41] = "A shard's name leads nowhere outside the folder of the index: no absolute path, no "
           "component `..`, no backslash, no NUL",
    [42] = "Each shard that the index or the shards' numbers name exists",
    [43] = "Each tensor that the index names is in some shard",
    [44] = "Each tensor that the index names is in the shard that the index gives for it",
    [45] = "No tensor is in two shards",
};

/* The sentence of a rule ("R22"), without its full stop, or NULL. */
static const char *rule_sentence(const char *rule) {
    size_t number = 0;
    if (!rule || *rule != 'R') return NULL;
    for (rule++; *rule >= '0' && *rule <= '9' && number < 1000; rule++) {
        number = number * 10 + (size_t)(*rule - '0');
    }
    return number < sizeof rule_sentences / sizeof *rule_sentences ? rule_sentences[number]
                                                                   : NULL;
}

/* ── What is said to people ── */

/* "PATH: byte N: expected ..., found ...; hint". */
static void verdict_line(cli *c, const char *path, const sft_error *err) {
    cli_path_bold(&c->out, path, ": ");
    cli_error_text(&c->out, err);
    cli_text(&c->out, "\n");
}

static const char *const level_names[] = { "compat", "default", "strict" };

/* The rule a code breaks, in the words of docs/format.md. */
static void explain_rule(cli *c, const sft_error *err) {
    const sft_code_info *row = sft_code_describe(err->code);
    const char *sentence = rule_sentence(row->rule);
    cli_text(&c->out, "    ");
    if (row->rule) cli_printf(&c->out, "rule %s, ", row->rule);
    cli_text(&c->out, row->name);
    if (row->level != SFT_LEVEL_COMPAT)
        cli_printf(&c->out, " (from level %s on)", level_names[row->level]);
    cli_printf(&c->out, ": %s\n", sentence ? sentence : row->sentence);
    const char *hint = cli_hint_text(err->hint);
    if (hint && err->hint != SFT_HINT_BROKEN_WRITER) /* which tells to ask for this rule */
        cli_printf(&c->out, "    next: %s\n", hint);
}

static void explain_error(cli *c, const sft_error *err) {
    sft_error bare = *err;
    bare.hint = SFT_HINT_NONE;
    cli_text(&c->out, "  ");
    cli_error_text(&c->out, &bare);
    cli_text(&c->out, "\n");
    explain_rule(c, err);
}

/* --explain: verdict, every finding with its rule, every note. */
static void explain_file(cli *c, const char *path, const sft_scan *scan) {
    const sft_error *err = sft_scan_error(scan);
    size_t count = sft_scan_finding_count(scan);
    cli_path_bold(&c->out, path, ": %s at level %s\n", err ? "not valid" : "valid",
                  level_names[sft_scan_level(scan)]);
    bool found = false; /* the error is among the findings */
    for (size_t i = 0; err && i < count; i++)
        found = found || sft_scan_finding_at(scan, i)->error.code == err->code;
    if (err && !found) explain_error(c, err);
    for (size_t i = 0; i < count; i++) explain_error(c, &sft_scan_finding_at(scan, i)->error);
    for (size_t i = 0; i < sft_scan_note_count(scan); i++) {
        const sft_note *note = sft_scan_note_at(scan, i);
        cli_printf(&c->out, "  note [%s]: ", note->name);
        cli_error_text(&c->out, &note->error);
        cli_text(&c->out, "\n");
    }
}

/* ── Models in other formats ── */

/* A model in another format is valid if all of it can be imported: its table of contents holds
 * together, and with --deep its records have their checksums and its values can be read. */

static void show_foreign(cli *c, const char *path, const sft_import *import) {
    const sft_import_format_info *format = sft_import_format_describe(sft_import_format_of(import));
    size_t count = sft_import_tensor_count(import);
    cli_path_bold(&c->out, path, ": valid, but not safetensors: %s, %zu tensor%s\n", format->title,
                  count, count == 1 ? "" : "s");
    cli_say_import(c, path, import, false);
}

/* import NULL: it could not be opened. err NULL: it is valid. */
static void put_foreign(cli *c, const char *path, const sft_import *import,
                        const sft_deep_counts *deep, const sft_error *err) {
    cli_object object = { .c = c, .path = path, .sink = cli_result_begin(c) };
    sfti_json_writer *w = &object.w;
    sfti_json_write(w, &object.sink, 0, &object.err);
    sfti_result_begin(w, path, !err);
    sfti_json_put_cstr(w, "level", level_names[c->set.level]);
    sfti_result_error(w, "error", err);
    sfti_json_put_open(w, "findings", '[');
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "notes", '[');
    sfti_json_close(w, ']');
    sfti_put_deep(w, deep);
    if (import) cli_put_import(c, w, path, import);
    cli_object_end(&object);
}

/* Its checksums, then its values; *import becomes that of the set, or NULL if there is none. */
static sft_code look_foreign(cli *c, const char *path, sft_import **import, sft_set **set,
                             sft_deep_counts *deep, sft_error *err) {
    cli_progress progress;
    sft_job job = cli_progress_begin(&progress, c, path);
    sft_code code = sft_import_verify(*import, &job, err);
    cli_progress_end(&progress);
    if (code) return code;
    code = sft_import_set(*import, path, set, err);
    if (code) *import = NULL;
    return code ? code : cli_check_values(c, path, *set, deep, err);
}

/* False, and nothing is printed, if it is in no format that is read. */
static bool check_foreign(cli *c, const char *path) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *import = NULL;
    sft_import_format format;
    sft_set *set = NULL;
    sft_deep_counts deep;
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    options.alloc = &c->alloc;
    options.files = c->open.files;
    options.dequantised = SFT_F32; /* which holds all values of blocks, and is computed only then */
    if (sft_import_recognise(path, c->open.files, &format, NULL)) return false;
    sft_code code = sft_import_open(path, &options, &import, &err);
    /* a zip archive that is cut is not recognised, and may be a checkpoint all the same */
    bool known = format != SFT_IMPORT_NONE || code == SFT_FOREIGN_TRUNCATED;
    bool look = known && !code && c->set.deep;
    if (look) code = look_foreign(c, path, &import, &set, &deep, &err);
    const sft_deep_counts *found = look && !code ? &deep : NULL;
    if (known && cli_is_json(c)) put_foreign(c, path, import, found, code ? &err : NULL);
    else if (known && code) verdict_line(c, path, &err);
    else if (known) show_foreign(c, path, import);
    if (found && !cli_is_json(c)) cli_deep_line(c, path, set, found);
    if (known && code) cli_status(c, CLI_NO);
    if (set) sft_set_close(set); /* which owns the import */
    else sft_import_close(import);
    return known;
}

/* ── Models with an index ── */

/* The verdict on a model with an index, as it grows. */
typedef struct verdict {
    cli *c;
    const char *path;
    bool ok;
    sft_error err;     /* the first failure */
    sft_buffer shards; /* JSON results of the shards, with commas */
    bool lost;         /* memory ran out for them */
    const sft_deep_counts *deep;
} verdict;

/* What a file says about itself (1xx, 2xx) is an answer; anything else means there is
 * none. */
static bool is_answer(sft_code code) {
    return code >= 100 && code < 300;
}

static void keep_first(verdict *v, const sft_error *err) {
    if (v->ok) v->err = *err;
    v->ok = false;
    cli_status(v->c, is_answer(err->code) ? CLI_NO : CLI_FAILED);
}

static void tell(verdict *v, const char *path, const sft_error *err) {
    keep_first(v, err);
    if (!is_answer(err->code)) {
        cli_complain(v->c, path, err);
    } else if (!cli_is_json(v->c)) {
        sft_error shown = *err;
        if (v->c->set.explain) shown.hint = SFT_HINT_NONE; /* it comes with the rule */
        verdict_line(v->c, path, &shown);
        if (v->c->set.explain) explain_rule(v->c, err);
    }
}

/* ── Shards ── */

static sft_code append_at(void *ctx, uint64_t offset, const void *bytes, size_t len,
                          sft_error *err) {
    (void)offset;
    if (sfti_buffer_put(ctx, bytes, len)) return SFT_OK;
    return sfti_fail_memory(err, len);
}

static const sft_sink_vtable append_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, append_at, NULL, NULL, NULL, cli_sink_words
};

static void shard_json(verdict *v, const char *path, const sft_scan *scan,
                       const sft_error *failed) {
    sft_sink sink = { &v->shards, &append_sink_vtable, false };
    sft_error err = SFT_ERROR_INIT;
    if (v->shards.len && !sfti_buffer_put(&v->shards, ",", 1)) v->lost = true;
    sft_code code = scan ? sft_scan_json(scan, path, NULL, &sink, &err)
                         : sft_error_json(failed, path, &sink, &err);
    if (code) v->lost = true;
}

static void judge_shard(verdict *v, const char *folder, const char *path) {
    sft_open_options options = v->c->open;
    sft_error err = SFT_ERROR_INIT;
    sft_scan *scan = NULL;
    options.beneath = folder;
    if (!sft_scan_open(path, &options, &scan, &err)) {
        const sft_error *found = sft_scan_error(scan);
        if (found) keep_first(v, found);
        if (cli_is_json(v->c)) shard_json(v, path, scan, NULL);
        else if (v->c->set.explain) explain_file(v->c, path, scan);
        else if (found) verdict_line(v->c, path, found);
        sft_scan_close(scan);
        return;
    }
    if (err.code == SFT_NOT_FOUND)
        sfti_fail(&err, SFT_INDEX_SHARD_MISSING,
                  "expected this shard of the index, found no such file");
    if (cli_is_json(v->c)) shard_json(v, path, NULL, &err);
    tell(v, path, &err);
}

static void judge_shards(verdict *v, const sft_index *names) {
    sft_error err = SFT_ERROR_INIT;
    sfti_arena arena = { .alloc = v->c->alloc };
    const char *folder = sft_index_folder(names);
    for (size_t i = 0; i < sft_index_shard_count(names) && !cli_is_over(v->c); i++) {
        char *path = cli_join_path(&arena, sft_span_cstr(folder), sft_index_shard_at(names, i));
        if (path) {
            judge_shard(v, folder, path);
        } else {
            sfti_fail_memory(&err, strlen(folder));
            tell(v, v->path, &err);
        }
    }
    sfti_arena_free(&arena);
}

/* ── Quantised tensors ── */

#define MISFITS_SHOWN 5
#define MISFITS_MOST 1000 /* as of findings */

/* Those whose tensors are not as their declared layout has them. */
typedef struct misfits {
    sft_set *set;
    sft_conversion *values;
    size_t count;
} misfits;

/* The next one from tensor *at on, which is moved behind it; false if there is none. */
static bool next_misfit(const misfits *m, size_t *at, sft_error *err) {
    while (*at < sft_set_tensor_count(m->set)) {
        bool unfit;
        *err = (sft_error)SFT_ERROR_INIT;
        if (sft_conversion_refusal(m->values, (*at)++, &unfit, err) && unfit) {
            err->hint = SFT_HINT_NONE;
            return true;
        }
    }
    return false;
}

static void put_misfits(void *ctx, sfti_json_writer *w) {
    const misfits *m = ctx;
    sft_error err;
    sfti_json_put_open(w, "quantised", '[');
    for (size_t i = 0, at = 0; i < MISFITS_MOST && next_misfit(m, &at, &err); i++)
        sfti_result_finding(w, &err, false);
    sfti_json_close(w, ']');
}

static void show_misfits(cli *c, const char *path, const misfits *m) {
    sft_error err;
    size_t most = c->set.explain ? SIZE_MAX : MISFITS_SHOWN;
    for (size_t i = 0, at = 0; i < m->count && i < most && next_misfit(m, &at, &err); i++)
        verdict_line(c, path, &err);
    if (m->count > most)
        cli_path_bold(&c->out, path, ": %zu more quantised tensors are not as declared (--explain "
                                     "lists them)\n", m->count - most);
}

/* Looks at what a valid model declares of its quantisation; the status becomes 1 if tensors are not
 * so. Of what is declared in a way that is not known nothing is said. */
static void judge_quantised(cli *c, misfits *m) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_error err;
    size_t at = 0;
    options.dequantize = options.partial = true;
    options.files = c->open.files;
    options.alloc = &c->alloc;
    if (!sfti_conversion_is_declared(m->set, c->open.files, &c->alloc)) return;
    if (sft_conversion_new(m->set, SFT_F32, &options, &m->values, NULL)) return;
    if (sft_conversion_count(m->values, SFT_CONVERT_REFUSED) == 0) return;
    while (next_misfit(m, &at, &err)) m->count++;
    if (m->count == 0) return;
    cli_status(c, CLI_NO);
    c->more = put_misfits;
    c->more_ctx = m;
}

/* Whether any tensor's dtype can hold codes: an integer of at most 32 bits, a float of 8. Of one
 * shard of several, what belongs together may be in different ones. */
static bool may_be_quantised(const sft_scan *scan, const char *path) {
    uint64_t shard, of;
    sft_span base;
    if (cli_shard_of(path, &shard, &of, &base) && of > 1) return false;
    for (size_t i = 0; i < sft_scan_entry_count(scan); i++) {
        sft_span dtype = sft_scan_entry_at(scan, i).dtype; /* in quotes */
        if (dtype.len < 4) continue;
        char kind = dtype.data[1], bits = dtype.data[2];
        if (kind == 'F' ? bits == '8' || bits == '4' || dtype.data[3] == '_'
                        : (kind == 'I' || kind == 'U') && bits != '6')
            return true;
    }
    return false;
}

/* ── The whole ── */

/* Each shard, then how they fit together. */
static void check_set(cli *c, const cli_input *input) {
    verdict v = { .c = c, .path = input->path, .ok = true, .shards = { .alloc = c->alloc } };
    sft_set_options options = cli_set_options(c);
    sft_error err = SFT_ERROR_INIT;
    sft_index *names = NULL;
    sft_set *set = NULL;
    misfits quantised = { .set = NULL };
    sft_deep_counts deep;
    if (sft_index_open(input->path, &options, &names, &err)) {
        tell(&v, input->path, &err);
    } else {
        judge_shards(&v, names);
        if (v.ok && !cli_is_over(c)) {
            /* the shards are sound: is the index, and what are the values? */
            sft_code code = cli_open_model(c, input, &set, &err);
            quantised.set = set;
            if (!code && c->set.deep) code = cli_check_values(c, v.path, set, &deep, &err);
            if (!code && c->set.deep) v.deep = &deep;
            if (code) tell(&v, v.path, &err);
            else if (c->set.deep || !cli_is_remote(c, v.path)) judge_quantised(c, &quantised);
        }
    }
    sft_span shards = { v.shards.data, v.shards.len };
    if (cli_is_json(c) && v.lost) {
        sfti_fail_memory(&err, shards.len);
        cli_fail_input(c, v.path, &err);
    } else if (cli_is_json(c)) {
        sft_sink sink = cli_result_begin(c);
        sft_code code = sft_set_check_json(v.ok ? NULL : &v.err, (sft_level)c->set.level, shards,
                                           v.path, v.deep, &sink, &err);
        cli_result_end(c, v.path, code, &err);
    }
    if (!cli_is_json(c) && v.ok && c->set.explain)
        cli_path_bold(&c->out, v.path, ": index and shards are consistent\n");
    if (!cli_is_json(c) && v.deep) cli_deep_line(c, v.path, set, &deep);
    if (!cli_is_json(c)) show_misfits(c, v.path, &quantised);
    sft_conversion_free(quantised.values);
    sft_set_close(set);
    sft_index_close(names);
    sft_buffer_free(&v.shards);
}

/* ── One file ── */

static sft_code scan_input(cli *c, const cli_input *input, sft_scan **scan, sft_error *err) {
    sft_source source;
    if (input->kind != CLI_STDIN) return sft_scan_open(input->path, &c->open, scan, err);
    sft_code code = sft_source_fd(0, &c->alloc, &source, err);
    if (code) return code;
    if (c->set.deep && source.size == SFT_SIZE_UNKNOWN) {
        sft_source_close(&source);
        return sfti_fail(err, SFT_IO_NOT_FILE,
                         "expected a file for --deep, which reads it twice, found a pipe");
    }
    return sft_scan_open_source(source, &c->open, scan, err);
}

static void judge_file(cli *c, const cli_input *input, const sft_scan *scan) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = NULL;
    sft_deep_counts deep;
    misfits quantised = { .set = NULL };
    bool valid = sft_scan_error(scan) == NULL, look = valid && c->set.deep;
    bool reads = input->kind != CLI_STDIN && (look || !cli_is_remote(c, input->path));
    bool codes = valid && reads && sft_scan_level(scan) > SFT_LEVEL_COMPAT
              && may_be_quantised(scan, input->path);
    sft_code code = look || codes ? cli_open_model(c, input, &set, &err) : SFT_OK;
    quantised.set = set;
    if (look && !code) code = cli_check_values(c, input->path, set, &deep, &err);
    if (codes && !code) judge_quantised(c, &quantised);
    if (code) {
        cli_fail_input(c, input->path, &err);
    } else if (cli_is_json(c)) {
        sft_sink sink = cli_result_begin(c);
        code = sft_scan_json(scan, input->path, look ? &deep : NULL, &sink, &err);
        cli_result_end(c, input->path, code, &err);
    } else {
        if (c->set.explain) explain_file(c, input->path, scan);
        else if (!valid) verdict_line(c, input->path, sft_scan_error(scan));
        if (look) cli_deep_line(c, input->path, set, &deep);
        show_misfits(c, input->path, &quantised);
    }
    if (!valid) cli_status(c, CLI_NO);
    sft_conversion_free(quantised.values);
    sft_set_close(set);
}

/* ── The command ── */

static void check_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    sft_scan *scan = NULL;
    if (input->kind == CLI_INDEX) {
        check_set(c, input);
        return;
    }
    if (scan_input(c, input, &scan, &err)) {
        bool may = err.code == SFT_IO_NOT_FILE && input->kind == CLI_FILE; /* a SavedModel */
        if (!may || !check_foreign(c, input->path)) cli_fail_input(c, input->path, &err);
        return;
    }
    const sft_error *found = sft_scan_error(scan);
    sft_span path = sft_span_cstr(input->path);
    bool claims = input->kind == CLI_STDIN || cli_ends_with(path, ".safetensors")
                  || cli_ends_with(path, ".sft"); /* what is called so must be so */
    if (found && found->code == SFT_FOUND_INDEX && input->kind == CLI_FILE) {
        if (!check_foreign(c, input->path)) check_set(c, input);
    } else if (!found || claims || !check_foreign(c, input->path)) {
        judge_file(c, input, scan);
    }
    sft_scan_close(scan);
}

/* Tells, after the first of numbered shards without an index, that others are missing. */
static void check_found(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    check_input(c, input);
    if (!input->err || cli_is_over(c)) return;
    cli_status(c, CLI_NO);
    if (!cli_is_json(c)) {
        verdict_line(c, input->path, input->err);
        return;
    }
    sft_sink sink = cli_result_begin(c);
    sft_code code = sft_set_check_json(input->err, (sft_level)c->set.level, (sft_span){ "", 0 },
                                       input->path, NULL, &sink, &err);
    cli_result_end(c, input->path, code, &err);
}

static void run_check(cli *c, char **operands, size_t count) {
    c->others = CLI_AND_OTHERS | CLI_TELL_MISSING;
    c->tells_reading = true;
    cli_each_input(c, operands, count, check_found);
    if (cli_is_json(c) || cli_is_over(c)) return;
    cli_flush(&c->out);
    /* a note, for silence would say too much */
    size_t remote = 0;
    for (size_t i = 0; i < count; i++) remote += cli_is_remote(c, operands[i]);
    if (remote && !c->set.deep && c->status < CLI_FAILED)
        cli_text(&c->err, "safetensors: note: only headers and lengths of URLs were checked, no "
                          "data (--deep reads it)\n");
    cli_passed_line(c, &c->err);
}

const cli_command cli_check_command = {
    "check", "PATH...", "check that models are valid; silent if they are",
    "Checks every rule of the format that a reader relies on: the lengths, the header's JSON, each "
    "tensor's dtype, shape and offsets, and that the data is complete and nothing follows it. "
    "Prints one line per invalid file. A model in another format that convert reads is checked by "
    "that format's rules, with --deep also against its checksums, and named in a line, unless it "
    "is called .safetensors; other files are identified: Git LFS or Xet pointer, HTML page, HDF5, "
    "gzip, zstd, truncated download.\n"
    "A model with an index is checked shard by shard, then as a whole. Where a folder has numbered "
    "shards without an index, one that is missing is an error. - reads standard input to its end. "
    "In a folder a file is judged as if it were named: all that is called .ckpt, .pt, .pth, .gguf, "
    ".onnx or .pdparams, or as models of PyTorch, Flax and TensorFlow are, and of other names "
    "(.bin, .npz, .msgpack, .pkl, .index, .h5, ...) what is a model by its contents, or a pointer "
    "or web page in its place. Sound files of another kind are not checked (archives and pickles "
    "without tensors, HDF5, unknown data in a .bin); a line on standard error counts "
    "them.\n"
    "Of a URL the header and the length of the file are checked; a note on standard error says "
    "that no data was read. With --deep it is, all of it.\n"
    "Where a model declares how it is quantised, in a layout that convert --dequantize reads, the "
    "tensors of each quantised one are compared with it: what is not there, or has another dtype "
    "or shape, is reported, and the exit status is 1, although the model is valid. With --level "
    "compat only sets are compared.\n"
    "With --deep, NaN and infinities count as findings (exit status 1), although the model is "
    "valid.",
    CLI_EXAMPLES(
        { "safetensors check model.safetensors", "silent if valid" },
        { "safetensors check -r ~/models", "one line per invalid file in a tree" },
        { "safetensors check --explain model.safetensors", "every finding, with its rule" },
        { "safetensors check --level strict *.safetensors", "by the letter of the specification" },
        { "safetensors check --deep model.safetensors", "NaN and infinities too" }),
    { CLI_OPTIONS(
        CLI_ON(0, "deep", deep, "also read every value and count NaN and infinities"),
        CLI_ON(0, "explain", explain,
          "print for each file every finding, the rule it breaks and what to do, with notes on "
          "alignment, order and other formats hidden inside"),
        CLI_ON('v', "verbose", verbose, "of another format: list all that would be left out")),
      cli_input_options, cli_json_options, cli_reading_options, cli_remote_options,
      cli_network_options, cli_common_options },
    { "every model is valid",
      "a model is not valid, or not quantised as it declares, or --deep found NaN or infinities",
      "a model could not be read, or a usage error" },
    1, SIZE_MAX, run_check, CLI_URLS_ALL,
};
