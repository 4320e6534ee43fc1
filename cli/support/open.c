/* One model opened: standard input with its first bytes kept, safetensors, or another format; and
 * what is told of the import of one. Tests: tests/cli/convert, tests/cli/general. */
#include "os/os.h"
#include "support/guard.h"
#include "support/models.h"

#include "base/glob.h"
#include "base/mem.h"
#include "formats/parts/blocks.h"
#include "formats/shards.h"
#include "os/io.h"
#include "support/files.h"
#include "support/remote.h"
#include "support/values.h"
#include "support/words.h"
#include "safetensors_convert.h"
#include "safetensors_io.h"
#include "safetensors_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(cli_settings, member)

const cli_option cli_import_options_table[] = {
    CLI_ON(0, "list", list_branches,
      "of another format: list the branches of IN that hold tensors, and write nothing"),
    CLI_TAKES(0, "root", "BRANCH", root, "of another format: take the tensors of this branch"),
    CLI_ON(0, "all", all,
      "of another format: take every branch (optimizer, EMA, ...), under its whole path"),
    { 0, "shared", "alias|copy|refuse", CLI_CHOICE, SFT_IMPORT_ALIAS, AT(shared),
      "of another format: of names that share one tensor, write the first and record the others, "
      "write all, or refuse; default alias; of safetensors, copy writes what metadata record" },
    CLI_TAKES_MANY(0, "as", "GLOB=DTYPE", as_dtypes,
      "of another format: read the elements of these tensors as DTYPE of the same width; may be "
      "repeated"),
    CLI_ON(0, "skip", skip,
      "of another format: leave out what has no counterpart in safetensors, rather than fail"),
    { 0, "quantised", "refuse|parts|values", CLI_CHOICE, SFT_IMPORT_SPECIAL_REFUSE, AT(quantised),
      "of quantised tensors of PyTorch write integers and scales, or the values; default refuse" },
    { 0, "sparse", "refuse|parts|dense", CLI_CHOICE, SFT_IMPORT_SPECIAL_REFUSE, AT(sparse),
      "of sparse tensors write indices and values, or dense tensors; default refuse" },
    CLI_ON(0, "scalars", scalars, "of another format: write numbers as tensors, too"),
    CLI_TAKES(0, "strip-prefix", "TEXT", strip_prefix,
      "of another format: take TEXT off the names that begin with it"),
    CLI_TAKES(0, "separator", "TEXT", separator,
      "of another format: what stands between the levels of nested names; default \".\""),
    CLI_ON('v', "verbose", verbose, "of another format: list all that was left out"),
    CLI_TAKES(0, "max-output", "SIZE", max_output,
      "of another format: write up to SIZE; default 1 GiB or 8 times the input, whichever is "
      "more"),
    CLI_OPTIONS_END,
};

/* ── Options ── */

/* The last `=` divides, for names may hold others. */
static bool split_as(const char *text, sft_span *glob, sft_span *dtype) {
    const char *equals = strrchr(text, '=');
    if (!equals) return false;
    *glob = (sft_span){ text, (size_t)(equals - text) };
    *dtype = sft_span_cstr(equals + 1);
    return true;
}

static bool dtype_as(void *ctx, const sft_spec *spec, sft_dtype *dtype) {
    cli *c = ctx;
    const cli_settings *set = &c->set;
    for (size_t i = set->as_dtypes.count; i-- > 0;) {
        sft_span glob, name;
        if (!split_as(set->as_dtypes.items[i], &glob, &name)) continue;
        if (!sfti_glob_match(glob, spec->name)) continue;
        c->as_matched = true;
        return !cli_dtype_read(name, dtype, NULL);
    }
    return false;
}

/* What convert makes of blocks that it casts; F16 is what it writes without being told. */
static sft_dtype blocks_dtype(const cli *c) {
    sft_dtype dtype;
    bool told = c->set.dtype && !cli_dtype_read(sft_span_cstr(c->set.dtype), &dtype, NULL);
    return told ? dtype : SFT_F16;
}

bool cli_casts_computed(const cli *c, sft_span name) {
    if (cli_is_matching(&c->set)) return cli_is_matched(&c->set, name);
    return sft_dtype_describe(blocks_dtype(c))->kind == SFT_KIND_FLOAT;
}

/* By the settings; of commands that only show, tensors that cannot be carried are left out. */
static sft_code import_options(cli *c, sft_import_options *out, sft_error *err) {
    *out = (sft_import_options)SFT_IMPORT_OPTIONS_INIT;
    c->as_matched = false;
    out->alloc = &c->alloc;
    out->files = c->open.files;
    out->skip = !c->imports_whole;
    if (c->imports_exact || c->set.values) out->dequantised = SFT_F32;
    if (!c->imports) return SFT_OK;
    out->skip = c->set.skip != 0;
    out->root = c->set.root;
    out->all = c->set.all != 0;
    out->shared = (sft_import_shared_mode)c->set.shared;
    out->quantised = (sft_import_special)c->set.quantised;
    out->sparse = (sft_import_special)c->set.sparse;
    out->scalars = c->set.scalars != 0;
    out->strip_prefix = c->set.strip_prefix;
    out->separator = c->set.separator;
    /* Blocks are computed to what convert is to write, or, exactly, to what it casts. */
    sft_dtype dtype = blocks_dtype(c);
    bool direct = dtype == SFT_BF16 || (dtype == SFT_F16 && !c->set.saturate);
    out->dequantised = direct && !c->set.quantize ? dtype : SFT_F32;
    if (c->set.as_dtypes.count > 0) {
        out->as = dtype_as;
        out->as_ctx = c;
    }
    for (size_t i = 0; i < c->set.as_dtypes.count; i++) {
        sft_span glob, name;
        if (!split_as(c->set.as_dtypes.items[i], &glob, &name))
            return cli_usage_error(err, "expected GLOB=DTYPE for --as, found %s",
                                   c->set.as_dtypes.items[i]);
        sft_code code = cli_dtype_read(name, &dtype, err);
        if (code) return code;
    }
    return c->set.max_output ? cli_parse_size(c->set.max_output, &out->max_output, err) : SFT_OK;
}

/* ── Opening ── */

/* Blocks that convert is not to cast become F16, its default. */
static sft_code choose_blocks(const cli *c, sft_import *import, sft_error *err) {
    sft_code code = SFT_OK;
    if (!c->imports || c->set.quantize) return SFT_OK;
    for (size_t i = 0; !code && i < sft_import_tensor_count(import); i++)
        if (!cli_casts_computed(c, sft_import_part(import, i).spec.name))
            code = sfti_import_blocks_to(import, i, SFT_F16, err);
    return code;
}

static sft_code open_import(cli *c, const char *const *paths, size_t count, sft_set **out,
                            sft_import **import, sft_error *err) {
    sft_import_options options;
    sft_import *opened;
    sft_code code = import_options(c, &options, err);
    if (!code) code = sfti_import_open_list(paths, count, &options, &opened, err);
    if (!code && (code = choose_blocks(c, opened, err)) != SFT_OK) sft_import_close(opened);
    if (!code) code = sft_import_set(opened, paths[0], out, err);
    *import = code ? NULL : opened;
    return code;
}

sft_code cli_open_path(cli *c, const char *path, const sft_set_options *options, sft_set **out,
                       sft_import **import, sft_error *err) {
    sft_import_format format = SFT_IMPORT_NONE;
    sft_error other = SFT_ERROR_INIT;
    *import = NULL;
    if (c->no_imports) return sft_set_open(path, options, out, err);
    /* What is remote is tried first as what its name says: each opening is a request. */
    bool named = cli_is_remote(c, path)
              && cli_other_format(sft_span_cstr(path)) < CLI_OTHER_FORMATS;
    if (named && !open_import(c, &path, 1, out, import, NULL)) return SFT_OK;
    sft_code code = sft_set_open(path, options, out, err), told = SFT_OK;
    /* The errors of something that is not safetensors. */
    bool foreign = (code >= SFT_HEADER_TOO_SMALL && code <= SFT_JSON_TRAILING)
                || (code >= SFT_FOUND_GIT_LFS && code <= SFT_FOUND_INDEX)
                || code == SFT_HEADER_NOT_OBJECT || code == SFT_INDEX_TYPE
                || code == SFT_IO_NOT_FILE || code == SFT_INDEX_SHARD_MISSING
                || code == SFT_INDEX_PATH;
    if (!foreign || sft_path_is_index(path)) return code;
    /* opening tells more of a zip archive, and recognising reads as much of it */
    bool is_zip = code == SFT_FOUND_ZIP || code == SFT_FOUND_TORCH || code == SFT_FOUND_NPY;
    if (!is_zip) told = sft_import_recognise(path, c->open.files, &format, &other);
    if (told == SFT_OUT_OF_MEMORY) { /* it may be one of them all the same */
        *err = other;
        return told;
    }
    if (told || (format == SFT_IMPORT_NONE && !is_zip)) return code;
    if (err) *err = (sft_error)SFT_ERROR_INIT;
    return open_import(c, &path, 1, out, import, err);
}

sft_code cli_open_shards(cli *c, const char *const *paths, size_t count,
                         const sft_set_options *options, sft_set **out, sft_import **import,
                         sft_error *err) {
    bool other = cli_other_format(sft_span_cstr(paths[0])) < CLI_OTHER_FORMATS;
    *import = NULL;
    return other && !c->no_imports ? open_import(c, paths, count, out, import, err)
                                   : sft_set_open_list(paths, count, options, out, err);
}

sft_set_options cli_set_options(const cli *c) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    options.open = &c->open;
    return options;
}

/* ── Standard input: the first bytes stay readable, to be diagnosed ── */

#define KEPT_HEAD 4096

/* Lives as long as the file over it, and until opening has been judged. */
typedef struct kept_input {
    sft_allocator alloc;
    sft_source inner;
    uint32_t users;
    size_t have;
    bool ended;
    char head[KEPT_HEAD];
} kept_input;

static void kept_close(void *ctx) {
    kept_input *k = ctx;
    sft_allocator alloc = k->alloc;
    if (--k->users) return;
    sft_source_close(&k->inner);
    sfti_release(&alloc, k, sizeof *k);
}

static sft_code head_read(kept_input *k, size_t at, void *into, size_t len, size_t *got,
                          sft_error *err) {
    size_t end = len < KEPT_HEAD - at ? at + len : KEPT_HEAD;
    while (k->have < end && !k->ended) { /* read on until they are there, or the pipe ends */
        size_t more = 0;
        sft_code code = sft_source_read(&k->inner, k->have, k->head + k->have, end - k->have, &more,
                                        err);
        if (code) return code;
        k->have += more;
        k->ended = more == 0;
    }
    if (end > k->have) end = k->have;
    *got = end > at ? end - at : 0;
    if (*got) memcpy(into, k->head + at, *got);
    return SFT_OK;
}

static sft_code kept_read_at(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    kept_input *k = ctx;
    size_t first = 0, more = 0;
    *got = 0;
    if (offset < KEPT_HEAD) {
        sft_code code = head_read(k, (size_t)offset, into, len, &first, err);
        if (code) return code;
    }
    *got = first;
    if (first == len || k->ended) return SFT_OK;
    sft_code code = sft_source_read(&k->inner, offset + first, (char *)into + first,
                                    len - first, &more, err);
    *got += more;
    return code;
}

static uint32_t kept_mode(void *ctx) {
    return sft_source_mode(&((const kept_input *)ctx)->inner);
}

static const sft_source_vtable kept_source_vtable = {
    sizeof(sft_source_vtable), kept_read_at, kept_close, NULL, kept_mode
};

static sft_code open_stdin(cli *c, sft_set **out, sft_error *err) {
    sft_file *file = NULL;
    kept_input *k = sfti_take(&c->alloc, sizeof *k);
    if (!k) return sfti_fail_memory(err, sizeof *k);
    memset(k, 0, sizeof *k);
    k->alloc = c->alloc;
    k->users = 2; /* the file, and this function */
    sft_code code = sft_source_fd(0, &c->alloc, &k->inner, err);
    if (code) {
        sfti_release(&c->alloc, k, sizeof *k);
        return code;
    }
    sft_source source = { k, &kept_source_vtable, k->inner.size, NULL, false };
    code = sft_open_source(source, &c->open, &file, err);
    if (code >= 100 && code < 180) sft_diagnose(&source, err);
    kept_close(k);
    return file ? sft_set_from_file(file, "-", out, err) : err->code;
}

/* ── Any input ── */

sft_code cli_open_operand(cli *c, const char *operand, cli_inputs *inputs, const cli_input **input,
                          sft_set **out, sft_error *err) {
    sft_code code = cli_inputs_expand(operand, (cli_depth)(CLI_ELSE_OTHERS | CLI_JOIN_SHARDS),
                                      NULL, &c->open, inputs, err);
    if (!code) code = cli_inputs_one(inputs, input, err);
    cli_guard_watch(c);
    if (!code) code = cli_open_model(c, *input, out, err);
    cli_guard_watched(c);
    if (!code && c->import && c->imports_whole)
        cli_say_left(c, (*input)->path, c->import, true);
    return code;
}

static bool is_there(cli *c, const char *path) {
    os_info info;
    return cli_is_remote(c, path) || sfti_os_info_path(path, true, &info) == 0;
}

/* Digits, a point, digits, a power of ten, with a sign or without. */
static bool is_number(const char *text) {
    const char *digits = text + (*text == '-' || *text == '+');
    return strspn(digits, "0123456789.") > 0 && strpbrk(digits, "0123456789")
        && text[strspn(text, "0123456789.eE+-")] == '\0';
}

/* "scheme://host:9": a URL without a path, which names no file. */
static bool ends_in_port(const cli *c, const char *operand) {
    const char *host = strstr(operand, "://");
    return host && !strchr(host + 3, '/') && cli_is_remote(c, operand);
}

sft_code cli_cut_number(cli *c, char *operand, const char **number, double *out,
                        sft_error *err) {
    char *colon = strrchr(operand, ':'), *end;
    *out = 1;
    *number = NULL;
    if (!colon || !is_number(colon + 1) || ends_in_port(c, operand)) return SFT_OK;
    *colon = '\0';
    bool url = cli_is_remote(c, operand);
    *colon = ':';
    if (!url && is_there(c, operand)) return SFT_OK;
    *out = strtod(colon + 1, &end);
    if (*end || *out - *out != 0)
        return cli_usage_error(err, "expected a number such as 0.8 behind the colon, found \"%s\"",
                               colon + 1);
    *colon = '\0';
    *number = colon + 1;
    return SFT_OK;
}

static bool is_within(void *ctx, const sft_tensor *tensor) {
    sft_span begin = ((const cli *)ctx)->values_within;
    return tensor->name.len >= begin.len
        && (begin.len == 0 || memcmp(tensor->name.data, begin.data, begin.len) == 0);
}

/* What --values shows of a set, which it takes over. */
static sft_code open_values(cli *c, const char *path, sft_set **set, sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_set *stored = *set;
    options.dequantize = options.partial = true;
    options.files = c->open.files;
    options.alloc = &c->alloc;
    options.match = c->values_within.len > 0 ? is_within : NULL;
    options.match_ctx = c;
    c->values_count = sft_set_tensor_count(stored);
    sft_code code = sft_conversion_new(stored, SFT_F32, &options, &c->values, err);
    *set = NULL;
    if (code) sft_set_close(stored);
    else code = sft_conversion_set(c->values, stored, path, set, err);
    if (code) c->values = NULL;
    return code;
}

sft_code cli_open_model(cli *c, const cli_input *input, sft_set **out, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    c->import = NULL;
    c->values = NULL;
    if (c->set.values && input->kind == CLI_STDIN) /* beside which nothing can be declared */
        return sfti_fail(err, SFT_IO_NOT_FILE,
                         "expected a file for --values, found standard input");
    sft_code code = input->kind == CLI_STDIN
        ? open_stdin(c, out, err)
        : input->shards
        ? cli_open_shards(c, input->shards, input->shard_count, &options, out, &c->import, err)
        : cli_open_path(c, input->path, &options, out, &c->import, err);
    return code || !c->set.values ? code : open_values(c, input->path, out, err);
}

/* ── What is told of an import ── */

#define LISTED_MOST 5 /* of a kind, unless all are asked for with -v */

static size_t most_lines(const cli *c) {
    return c->set.verbose ? SIZE_MAX : LISTED_MOST;
}

static void say_more(cli *c, size_t count, size_t shown, const char *what) {
    if (count > shown)
        cli_printf(&c->out, "  and %zu more %s (-v lists them)\n", count - shown, what);
}

void cli_say_left(cli *c, const char *path, const sft_import *import, bool branches) {
    static const char begin[] = "safetensors: note: ";
    sft_import_reason reason = branches ? SFT_IMPORT_LEFT_BRANCH : SFT_IMPORT_LEFT_SKIPPED;
    const sft_import_left *left;
    size_t count = 0;
    cli_flush(&c->out);
    for (size_t i = 0; (left = sft_import_left_at(import, i)) != NULL; i++) {
        if (left->reason != reason || ++count > LISTED_MOST) continue;
        cli_text(&c->err, begin);
        cli_path(&c->err, path, c->set.dry_run ? ": would be left out: " : ": left out: ");
        cli_fill(&c->err, left->path.len ? "%: %\n" : "%%\n", left->path,
                 sft_span_cstr(left->text));
    }
    if (count > LISTED_MOST)
        cli_printf(&c->err, "%sand %zu more; \"safetensors check -v\" lists them\n", begin,
                   count - LISTED_MOST);
    cli_flush(&c->err);
}

bool cli_say_globals(cli_out *out, const sft_import *import, size_t most) {
    size_t count = 0, shown = 0;
    const sft_import_global *global;
    for (size_t i = 0; (global = sft_import_global_at(import, i)) != NULL; i++) {
        if (global->calls == 0) continue;
        if (++count > most) continue;
        cli_text(out, shown++ ? ", " : "");
        cli_fill(out, "%.%", global->module, global->name);
        if (global->calls > 1) cli_printf(out, " (%" PRIu64 " times)", global->calls);
    }
    if (count > shown) cli_printf(out, " and %zu more", count - shown);
    return count > 0;
}

static void say_left(cli *c, const char *path, const sft_import *import, bool writes) {
    const char *begin = writes ? ": left out: " : ": would be left out: ";
    char buffer[CLI_NUMBER_SIZE];
    const sft_import_left *left;
    size_t count = 0;
    uint64_t values = 0;
    for (size_t i = 0; (left = sft_import_left_at(import, i)) != NULL; i++) {
        if (left->reason == SFT_IMPORT_LEFT_VALUE && !c->set.verbose) {
            values += left->count > 0 ? left->count : 1;
            continue;
        }
        if (count++ >= most_lines(c)) continue;
        cli_path(&c->out, path, "%s",
                 left->reason == SFT_IMPORT_LEFT_NOTE ? ": note: " : begin);
        if (left->path.len > 0) cli_escaped(&c->out, left->path);
        cli_text(&c->out, left->path.len > 0 ? ": " : "");
        cli_escaped(&c->out, sft_span_cstr(left->text));
        if (left->bytes > 0) cli_printf(&c->out, ", %s", cli_size_text(left->bytes, buffer));
        cli_text(&c->out, "\n");
    }
    say_more(c, count, count < most_lines(c) ? count : most_lines(c),
             writes ? "left out" : "would be left out");
    if (values == 0) return;
    cli_path(&c->out, path, "%s", begin);
    cli_printf(&c->out, "%" PRIu64 " value%s other than tensors (-v lists %s)\n", values,
               values == 1 ? "" : "s", values == 1 ? "it" : "them");
}

static void say_aliases(cli *c, const char *path, const sft_import *import, bool writes) {
    size_t count = sft_import_alias_count(import);
    for (size_t i = 0; i < count && i < most_lines(c); i++) {
        sft_import_alias alias = sft_import_alias_at(import, i);
        cli_path(&c->out, path, ": ");
        cli_escaped(&c->out, alias.name);
        cli_text(&c->out, alias.partial ? " shares bytes with " : " is the same tensor as ");
        cli_escaped(&c->out, alias.of);
        if (alias.copied) cli_printf(&c->out, "; both %s written\n", writes ? "are" : "would be");
        else cli_printf(&c->out, "; %swritten once, recorded in the metadata\n",
                        writes ? "" : "would be ");
    }
    say_more(c, count, count < most_lines(c) ? count : most_lines(c), "shared");
}

void cli_say_import(cli *c, const char *path, const sft_import *import, bool writes) {
    const sft_import_global *one = sft_import_global_at(import, 0);
    for (size_t i = 1; one && one->calls == 0; i++) one = sft_import_global_at(import, i);
    if (one) {
        cli_path(&c->out, path, ": not run: ");
        (void)cli_say_globals(&c->out, import, most_lines(c));
        cli_text(&c->out, ", which a pickle loader would have called\n");
    }
    say_left(c, path, import, writes);
    say_aliases(c, path, import, writes);
}

void cli_put_import(cli *c, sfti_json_writer *w, const char *path, const sft_import *import) {
    sft_buffer text = { .alloc = c->alloc };
    sft_sink sink = sft_sink_memory(&text);
    sft_code code = sft_import_json(import, path, &sink, NULL);
    sfti_json_key(w, "import");
    if (code) sfti_json_null(w);
    else sfti_json_raw(w, (sft_span){ text.data, text.len });
    sft_buffer_free(&text);
}
