/* convert: convert tensors to another dtype or format. Tests: tests/cli/convert. */
#include "commands/commands.h"
#include "commands/convert/convert.h"
#include "convert/computed.h"
#include "convert/dropped.h"
#include "safetensors_convert.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/files.h"
#include "support/fresh.h"
#include "support/hash.h"
#include "support/hints.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/records.h"
#include "support/remote.h"
#include "support/renamed.h"
#include "support/values.h"
#include "support/words.h"

#include <string.h>

/* ── To NumPy's .npz, PyTorch's .pt ── */

typedef struct export_kind {
    const char *ending;
    sft_code (*write)(const sft_part *parts, size_t count, const sft_export_options *options,
                      sft_sink sink, const sft_job *job, sft_error *err);
} export_kind;

static const export_kind export_kinds[] = {
    { ".npz", sft_export_npz },
    { ".pt", sft_export_pt },
    { ".pth", sft_export_pt },
};

static const export_kind *export_kind_of(const cli *c) {
    sft_span output = sft_span_cstr(c->set.output ? c->set.output : "");
    for (size_t i = 0; i < sizeof export_kinds / sizeof *export_kinds; i++)
        if (cli_ends_with(output, export_kinds[i].ending)) return &export_kinds[i];
    return NULL;
}

/* Whether -o names a file of another format, by how it ends. */
static bool is_export(const cli *c) {
    return export_kind_of(c) != NULL;
}

static sft_code discard(void *ctx, const void *bytes, size_t len, sft_error *err) {
    (void)ctx, (void)bytes, (void)len, (void)err;
    return SFT_OK;
}

/* With --dry-run: refuses the same names and dtypes as the run does; reads no element. */
static sft_code try_export(convert_run *run, const sft_part *parts, size_t count,
                           const sft_export_options *options, sft_error *err) {
    static const uint64_t none[] = { 0 };
    sft_sink sink;
    sft_part *empty = sfti_arena_array(&run->parts.arena, count, sizeof *empty);
    if (!empty) return sfti_fail_memory(err, count * sizeof *empty);
    for (size_t i = 0; i < count; i++) {
        empty[i] = parts[i];
        empty[i].spec.rank = 1;
        empty[i].spec.shape = none;
    }
    sft_code code = sft_sink_callback(discard, NULL, &run->c->alloc, &sink, err);
    return code ? code
                : export_kind_of(run->c)->write(empty, count, options, sink, NULL, err);
}

/* Writes the tensors; with --dry-run, only reports what writing would refuse. */
static sft_code export_parts(convert_run *run, const cli_output *out, const sft_part *parts,
                             size_t count, sft_error *err) {
    cli *c = run->c;
    sft_export_options options = SFT_EXPORT_OPTIONS_INIT;
    cli_progress progress;
    sft_sink sink;
    options.alloc = &c->alloc;
    options.opaque = c->set.opaque != 0;
    sft_code code = c->set.dry_run ? try_export(run, parts, count, &options, err)
                                   : cli_output_sink(out, &sink, err);
    if (!code && !c->set.dry_run) {
        sft_job job = cli_progress_begin(&progress, c, out->path);
        code = export_kind_of(c)->write(parts, count, &options, sink, &job, err);
        cli_progress_end(&progress);
    }
    if (code == SFT_CAST_DTYPE) cli_hint(err, CLI_HINT_EXPORT_DTYPE);
    if (code == SFT_FOREIGN_NAME) cli_hint(err, CLI_HINT_EXPORT_NAME);
    return code;
}

/* ── Options ── */

static bool is_matched(void *ctx, const sft_tensor *tensor) {
    convert_run *run = ctx;
    if (!cli_is_matched(&run->c->set, tensor->name)) return false;
    run->matched++;
    return true;
}

/* ── Results ── */

/* About tensors that mean nothing without their scale. */
static void warn_of_scales(const convert_run *run, bool overruled) {
    const sft_set *set = run->parts.sets[0];
    cli_out *err = &run->c->err;
    size_t count = 0, first = 0;
    for (size_t i = sft_set_tensor_count(set); i-- > 0;) {
        sft_convert_action action = sft_conversion_action(run->conversion, i, NULL);
        bool special = overruled ? sft_conversion_overrules(run->conversion, i)
                                 : action == SFT_CONVERT_SCALED || action == SFT_CONVERT_SCALE;
        if (!special) continue;
        first = i;
        count++;
    }
    if (count == 0) return;
    cli_flush(&run->c->out);
    cli_text(err, "safetensors: ");
    cli_path(err, run->input,
             ": %zu scaled tensor%s and scales (first: ", count, count == 1 ? "" : "s");
    cli_quoted(err, sft_set_tensor_at(set, first)->name);
    cli_printf(err, ") are %s\n", overruled ? "cast because of --cast-scaled"
                                            : "not cast; --dequantize computes their values, "
                                              "--cast-scaled casts them as they are");
    cli_flush(err);
}

/* ── Writing ── */

/* Times of the shards that keep tensors, for the others are not written, and of the index. */
static sft_code set_mtimes(convert_run *run, const int64_t **out, sft_error *err) {
    const sft_set *set = run->parts.sets[0];
    size_t shards = sft_set_shard_count(set), count = 0;
    int64_t *times = sfti_arena_array(&run->parts.arena, shards + 1, sizeof *times);
    sft_code code = SFT_OK;
    if (!times) return sfti_fail_memory(err, shards * sizeof *times);
    for (size_t s = 0; !code && s < shards; s++) {
        bool kept = false;
        for (size_t i = 0; i < sft_set_tensor_count(set); i++)
            kept = kept || (sft_set_tensor_shard(set, i) == s &&
                            sft_conversion_action(run->conversion, i, NULL) != SFT_CONVERT_DROP);
        if (kept) code = cli_output_mtime(run->c, sft_set_shard_path(set, s), &times[count++], err);
    }
    const char *last = sft_set_index_path(set);
    if (!last) last = sft_set_shard_path(set, shards - 1);
    if (!code) code = cli_output_mtime(run->c, last, &times[count], err);
    *out = times;
    return code;
}

static sft_code write_set(convert_run *run, const sft_job *job, sft_error *err) {
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    const cli *c = run->c;
    const sft_set *set = run->parts.sets[0];
    char stem[CLI_STEM_SIZE];
    sft_code code = SFT_OK;
    options.stem = cli_index_stem(sft_set_index_path(set), stem);
    options.no_sync = c->set.no_sync != 0;
    options.in_place_unsafe = c->set.in_place_unsafe != 0;
    options.mode = sft_set_output_mode(set, NULL);
    options.index_metadata = sft_set_index_metadata(set);
    if (c->set.keep_mtime) code = set_mtimes(run, &options.mtimes_ns, err);
    if (code) return code;
    return sft_conversion_save_set(run->conversion, c->set.output, &options, job, err);
}

/* ── A set where it is ── */

static sft_code save_converted_shard(void *ctx, size_t shard, sft_sink sink, const sft_job *job,
                                     sft_error *err) {
    convert_run *run = ctx;
    sft_job own = *job;
    own.threads = run->threads;
    return sft_conversion_save_shard(run->conversion, shard, sink, &own, err);
}

/* What stands in the shards from now on, and in which of them anything changes. */
static sft_code convert_set_in_place(convert_run *run, sft_error *err) {
    const sft_set *set = run->parts.sets[0];
    cli_parts *p = &run->parts;
    cli_rewrite how = CLI_REWRITE_INIT;
    size_t shards = sft_set_shard_count(set);
    bool *touched = sfti_arena_array(&p->arena, shards, sizeof *touched);
    if (!touched) return sfti_fail_memory(err, shards * sizeof *touched);
    memset(touched, 0, shards * sizeof *touched);
    for (size_t i = 0; i < p->count; i++) {
        p->parts[i] = sft_part_of(sft_set_tensor_at(set, i), NULL); /* the conversion has it */
        p->shard[i] = (uint32_t)sft_set_tensor_shard(set, i);
        if (sft_conversion_action(run->conversion, i, NULL) != SFT_CONVERT_CAST) continue;
        p->parts[i].spec.dtype = run->to;
        touched[p->shard[i]] = true;
        how.cast++;
    }
    for (size_t s = 0; s < shards; s++)
        if (touched[s]) how.bytes_before += sft_file_data_bytes(sft_set_shard_at(set, s));
    how.touched = touched;
    how.save = save_converted_shard;
    how.ctx = run;
    how.same_elements = true;
    how.dtype = run->to;
    how.more = convert_put_more;
    sft_code code = cli_rewrite_set(run->c, &run->parts, &how, err);
    if (!code) convert_warn_lost(run);
    return code;
}

/* ── All ways ── */

static bool is_several(const convert_run *run) {
    return convert_shard_count(run) > 1
        || (!run->c->import && sft_set_index_path(run->parts.sets[0]));
}

static bool is_folder_asked(const convert_run *run) {
    return is_several(run) && run->c->set.output && !cli_output_is_file(run->c);
}

/* The casts are decided upon, and nothing is written yet. */
static sft_code plan_and_warn(convert_run *run, sft_error *err) {
    const cli_settings *set = &run->c->set;
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    options.saturate = set->saturate != 0;
    options.scaled = set->cast_scaled != 0;
    options.dequantize = set->dequantize != 0;
    options.lossy = set->lossy != 0;
    options.files = run->c->open.files;
    options.alloc = &run->c->alloc;
    if (cli_is_matching(set)) options.match = is_matched;
    options.match_ctx = run;
    sft_code code = convert_find_computed(run, err);
    if (!code)
        code = sfti_conversion_new(run->parts.sets[0], run->to, &options, run->computed,
                                   &run->conversion, err);
    if (!code && options.match && run->matched == 0) code = cli_no_match(set, err);
    if (code) return code;
    warn_of_scales(run, false);
    warn_of_scales(run, true);
    convert_note_kept(run);
    return SFT_OK;
}

/* No tensor is cast, into as many files: nothing is written, unless a copy is wanted. */
static bool is_unchanged(const convert_run *run) {
    cli *c = run->c;
    cli_written written = { .input = run->input, .output = run->input, .dtype = SFT_DTYPE_COUNT };
    bool merges = run->parts.changed || (is_several(run) && !is_folder_asked(run));
    bool casts = sft_conversion_count(run->conversion, SFT_CONVERT_CAST) > 0
                 || sft_conversion_count(run->conversion, SFT_CONVERT_DEQUANTIZE) > 0;
    if (casts || merges || c->import || cli_output_copies(c, run->input)) return false;
    cli_say_written(c, &written);
    return true;
}

static sft_code convert_opened(convert_run *run, sft_error *err) {
    cli *c = run->c;
    cli_output out;
    bool folder = is_folder_asked(run);
    sft_code code = folder ? cli_check_adapter_config(c, run->parts.opened, 1, NULL, err)
                           : cli_output_begin(&out, c, run->input, CLI_TARGET_EITHER, err);
    if (!folder && !code) code = cli_output_sources(c, &run->parts, &out, err);
    else if (!code && !c->set.dequantize) code = cli_check_quantiser(c, &run->parts, NULL, err);
    const char *output = folder ? c->set.output : out.path;
    run->parts.path = !code ? run->input : folder ? output : out.blame;
    if (code) return code;
    code = plan_and_warn(run, err);
    if (code || is_unchanged(run)) return code;
    if (folder && c->set.dry_run && (code = cli_check_folder(c, output, err)) != SFT_OK) {
        run->parts.path = output;
        return code;
    }
    c->dropped = sfti_conversion_dropped(run->conversion);
    if (!c->set.dry_run) {
        cli_progress progress;
        sft_sink sink;
        sft_job job = cli_progress_begin(&progress, c, output);
        job.threads = run->threads;
        code = !folder         ? cli_output_sink(&out, &sink, err)
               : run->shard_of ? convert_save_import(run, &job, err)
                               : write_set(run, &job, err);
        if (!folder && !code) code = sft_conversion_save(run->conversion, sink, &job, err);
        cli_progress_end(&progress);
    }
    if (!code && !c->import && !c->set.dequantize) cli_parts_note(c, &run->parts);
    if (!code) return convert_say(run, folder, output, err);
    bool of_input = code == SFT_CAST_VALUE || code == SFT_CAST_DTYPE || code == SFT_IO_READ ||
                    code == SFT_IO_SHRUNK || cli_is_remote_error(code);
    if (!of_input) run->parts.path = output;
    return code;
}

/* ── In another format ── */

static sft_code export_model(convert_run *run, sft_error *err) {
    cli *c = run->c;
    cli_output out;
    const sft_part *parts = run->parts.parts;
    size_t count = run->parts.count;
    sft_code code = cli_output_begin(&out, c, run->input, CLI_TARGET_OTHER, err);
    if (!code) code = cli_output_sources(c, &run->parts, &out, err);
    if (code) {
        run->parts.path = out.blame;
        return code;
    }
    if (c->import && !c->set.dry_run) code = sft_import_verify(c->import, NULL, err);
    if (!code && run->casts) code = plan_and_warn(run, err);
    if (!code && run->casts) { /* tensors as the conversion makes them */
        size_t tensors = sft_set_tensor_count(run->parts.sets[0]);
        sft_part *list = sfti_arena_array(&run->parts.arena, tensors, sizeof *list);
        if (!list) code = sfti_fail_memory(err, tensors * sizeof *list);
        count = 0;
        for (size_t i = 0; list && i < tensors; i++)
            if (sft_conversion_action(run->conversion, i, NULL) != SFT_CONVERT_DROP)
                list[count++] = sft_conversion_part(run->conversion, i);
        parts = list;
    }
    if (!code && !c->import) { /* the formats have no metadata to tell other names of a tensor */
        cli_aliases aliases;
        sfti_arena *arena = &run->parts.arena;
        code = cli_aliases_of(run->parts.sets[0], arena, &aliases, err);
        if (!code) code = cli_aliases_once(&aliases, arena, err);
        if (!code) code = cli_aliases_add(&aliases, arena, &parts, &count, err);
    }
    if (!code) code = export_parts(run, &out, parts, count, err);
    if (!code && run->casts) return convert_say(run, false, out.path, err);
    if (!code) convert_say_file(run, out.path, parts, count);
    if (cli_output_failed(code)) run->parts.path = out.path;
    return code;
}

/* Its records are compared with their checksums before they are cast, or while they are copied. */
static sft_code convert_foreign(convert_run *run, sft_error *err) {
    cli *c = run->c;
    if (c->set.list_branches) {
        convert_list_branches(run);
        return SFT_OK;
    }
    if (c->set.quantize) {
        sft_code code = c->set.dry_run ? SFT_OK : sft_import_verify(c->import, NULL, err);
        return code ? code : convert_quantise(run, err);
    }
    if (is_export(c)) return export_model(run, err);
    if (!run->casts) return convert_import(run, err);
    sft_code code = c->set.dry_run ? SFT_OK : sft_import_verify(c->import, NULL, err);
    if (code) return code;
    cli_parts_drop(&run->parts);
    return convert_opened(run, err);
}

/* Options that need another one, when no --layout renames tensors. */
static bool options_go_together(const convert_run *run, sft_error *err) {
    const cli_settings *set = &run->c->set;
    const char *casting = run->casts || set->quantize ? NULL
                        : set->saturate ? "--saturate" : set->cast_scaled ? "--cast-scaled" : NULL;
    uint64_t most;
    sft_code code = SFT_OK;
    if (cli_is_matching(set) && !run->casts && !set->quantize)
        code = cli_usage_error(err, "expected --dtype or --dequantize with --match or --exclude, "
                               "which say what is cast, found none; \"safetensors select\" keeps "
                               "some tensors");
    else if (casting)
        code = cli_usage_error(err, "expected --dtype or --dequantize with %s, found none",
                               casting);
    else if (set->in_place && set->shared == SFT_IMPORT_COPY)
        code = cli_usage_error(err, "expected -o OUT with --shared copy, found --in-place");
    else if (set->max_size) code = cli_usage_error(err, CLI_NO_SHARDS, "none");
    else if (set->ignore_unmatched || (set->architecture && !set->quantize))
        code = cli_usage_error(err, "expected --layout diffusers, single or comfy with %s, found "
                               "none", set->architecture && !set->quantize
                                           ? "--architecture" : "--ignore-unmatched");
    else if (set->opaque && !cli_ends_with(sft_span_cstr(set->output ? set->output : ""), ".npz"))
        code = cli_usage_error(err, "expected an OUT that ends in .npz with --opaque, found "
                               "another");
    else if (set->max_output)
        code = cli_parse_size(set->max_output, &most, err);
    return code == SFT_OK;
}

static sft_code convert_model(convert_run *run, sft_error *err) {
    cli *c = run->c;
    run->parts.path = run->input;
    sft_code code = cli_output_agrees(c, err);
    if (!code) code = cli_parts_open_one(c, run->input, c->set.in_place != 0, &run->parts, err);
    if (code) return code;
    run->input = run->parts.path; /* the model, not its folder */
    /* F16 is nearer to values of blocks than BF16; one that it does not hold is an error. */
    if (run->casts && !c->set.dtype && c->import
        && sft_import_format_of(c->import) == SFT_IMPORT_GGUF)
        run->to = SFT_F16;
    run->into_folder = is_folder_asked(run);
    if (c->import && c->set.as_dtypes.count > 0 && !c->as_matched && !c->set.recursive
        && !c->set.list_branches)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND, CLI_NO_AS);
    if (c->import && run->into_folder) code = convert_import_shards(run, err);
    if (code) return code;
    if (c->import) return convert_foreign(run, err);
    const char *option = convert_import_option(&c->set);
    if (option) return cli_usage_error(err, CLI_NO_IMPORT, option);
    if (c->set.quantize) return convert_quantise(run, err);
    if (is_export(c)) return export_model(run, err);
    if (!run->casts)
        return cli_usage_error(err, "expected --dtype, --quantize or --dequantize for a model that "
                                    "is in safetensors already, found none");
    if (sft_set_index_path(run->parts.sets[0]) && c->set.in_place && !c->set.output) {
        if (c->set.dequantize)
            return cli_usage_error(err, "expected -o OUT with --dequantize for a model in several "
                                        "files, found --in-place");
        code = cli_fresh_own_index(run->input, err);
        if (!code) code = plan_and_warn(run, err);
        return code ? code : convert_set_in_place(run, err);
    }
    cli_parts_drop(&run->parts); /* the conversion has them */
    return convert_opened(run, err);
}

/* The file is read, and is not what it should be, or has what OUT's format lacks or what nobody
 * here can compute: the answer is no. */
static bool is_refusal(const cli *c, const sft_error *err) {
    sft_code code = err->code;
    return err->hint == SFT_HINT_LOSSY
           || (code >= SFT_FOREIGN_SYNTAX && code <= SFT_FOREIGN_OPAQUE
               && code != SFT_FOREIGN_BRANCH)
           || (code >= SFT_FOREIGN_OUTPUT && code <= SFT_FOREIGN_NESTING)
           || (code == SFT_CAST_VALUE && c->set.quantize)
           || (code == SFT_CAST_DTYPE && (is_export(c) || c->set.dequantize || c->set.quantize));
}

static void convert_one(cli *c, const char *input, void *ctx) {
    const convert_run *all = ctx;
    sft_error err = SFT_ERROR_INIT;
    convert_run run = { .c = c, .to = all->to, .casts = all->casts, .threads = all->threads,
                        .target = all->target, .input = input };
    run.parts.arena.alloc = c->alloc;
    sft_code code = convert_model(&run, &err);
    if (code && err.hint == SFT_HINT_IMPORT_WIDER && cli_is_matching(&c->set)
        && !cli_is_matched(&c->set, (sft_span){ err.tensor, err.tensor_len }))
        cli_hint(&err, CLI_HINT_NOT_CAST);
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, run.input, &err);
    else if (is_refusal(c, &err)) cli_refuse(c, run.parts.path, &err);
    else if (code) cli_fail_input(c, run.parts.path, &err);
    sft_conversion_free(run.conversion);
    cli_parts_free(&run.parts);
}

static void run_convert(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    convert_run run = { .c = c };
    if (!cli_parse_threads(c, &run.threads)) return;
    if (!c->set.threads) run.threads = 1;
    c->imports = true;
    c->joins_shards = !c->set.in_place;
    if (c->set.layout && !c->set.quantize
        && (strcmp(c->set.layout, "diffusers") == 0 || strcmp(c->set.layout, "single") == 0
            || strcmp(c->set.layout, "comfy") == 0)) {
        convert_layouts(c, operands, count);
        return;
    }
    c->others = CLI_AND_OTHERS;
    if (is_export(c) && c->set.shared == SFT_IMPORT_ALIAS)
        c->set.shared = SFT_IMPORT_COPY; /* there are no metadata to record the other names */
    run.casts = c->set.dtype || c->set.dequantize;
    run.parts.arena.alloc = c->alloc;
    if (!convert_quantise_asked(&run, is_export(c), &err) || !options_go_together(&run, &err)) {
        sfti_arena_free(&run.parts.arena);
        cli_fail_usage(c, &err);
        return;
    }
    if (run.casts) {
        /* BF16 is what models are trained in, and has the exponents of any scale */
        const char *text = c->set.dtype ? c->set.dtype : "BF16";
        sft_code code = cli_dtype_read(sft_span_cstr(text), &run.to, &err);
        if (!code && run.to == SFT_C64)
            code = cli_usage_error(&err, "expected a dtype of real numbers for --dtype, found %s",
                                   text);
        if (code) {
            cli_fail_usage(c, &err);
            return;
        }
    }
    cli_write_each(c, operands, count, convert_one, &run);
    sfti_arena_free(&run.parts.arena);
}

const cli_command cli_convert_command = {
    "convert", "IN... -o OUT|--in-place [--dtype DTYPE|--quantize FORMAT|--dequantize]",
    "convert a model to another dtype or format",
    "Without --match, all floating-point tensors become DTYPE if that is a floating-point dtype "
    "(all integer tensors if it is an integer dtype); the others stay as they are. Values are "
    "rounded once, to the nearest; docs/convert.md has a table for every dtype. A value that "
    "does not fit an integer dtype is an error unless --saturate is given; NaN is always an error "
    "for F4 and F6. What became zero, infinite, NaN or saturated is counted: a warning names the "
    "tensors that lost more than 1 % of their values, --json has the figures. Adapters (LoRA and "
    "the like) are not cast to 8 bits or fewer unless --lossy is given. In every model, a cast to "
    "a floating-point dtype of no more bits leaves tensors of rank 0, the alpha and magnitudes "
    "(dora_scale) of adapters and, into 8 bits or fewer, vectors of up to 16 elements as they "
    "are; --match with --lossy casts those that match.\n"
    "Tensors that come with a scale (weight_scale_inv, scale_weight, ...) and these scales are "
    "not converted, with a warning: without the scale the values mean nothing. --dequantize "
    "computes their values (docs/convert.md describes each layout); an unknown layout is an "
    "error, and so is one that is declared (comfy_quant, _quantization_metadata, "
    "quantization_config) and not known. --cast-scaled casts them anyway, with a warning.\n"
    "--quantize writes the matrices of layers as codes with scales: fp8, int8, int8-convrot, mxfp8 "
    "or nvfp4, as ComfyUI (--layout comfy), vLLM (compressed-tensors) or TensorRT-LLM (modelopt) "
    "load them. What the model's record spares (norms, embeddings, first and last layers), parts "
    "other than the denoiser and small matrices stay as they are, and are listed. The error that "
    "this costs is told of all and of the worst; --dry-run computes it, too. Adapters, models that "
    "are quantised already, NaN and infinities are refused. docs/quantise.md says which format is "
    "for what, and how every value is computed.\n"
    "IN may be in another format, which is told from its contents: PyTorch (.pt, .pth, .ckpt, "
    ".bin, also a folder with pytorch_model.bin.index.json), TorchScript, NumPy (.npy, .npz), "
    "GGUF, ONNX, Flax (.msgpack), Paddle (.pdparams), TensorFlow (.index, SavedModel). Nothing "
    "of it is run: what a pickle would have called is named instead. Then --dtype is not needed. "
    "docs/import.md describes each format.\n"
    "An OUT that ends in .npz is written as by numpy.savez, one that ends in .pt or .pth as by "
    "torch.save of a state dict, which torch.load reads with weights_only and mmap. These hold no "
    "metadata; a dtype that the library lacks is an error (F4 and F6, of NumPy also BF16 and "
    "8-bit floats).\n"
    "A model in several files becomes one file if OUT ends in .safetensors or .sft; otherwise OUT "
    "is a new or empty folder for its shards and their index. With --in-place, the shards with "
    "tensors to convert are written under new names, then the index, then the old shards are "
    "removed unless another index in the folder names them. Metadata is kept; digests of the old "
    "data (sshs_model_hash, sshs_legacy_hash, modelspec.hash_*) are dropped. Needs only a few MiB "
    "of memory, whatever the size of the tensors; OUT is written atomically.\n"
    "Several models, or those of a tree with -r, go into the folder OUT/ under their names, in "
    "which '_' takes the place of what cannot stand in names on every system (nul, x:y). Numbered "
    "shards in a folder without their index are one model, refused if one is missing; with "
    "--in-place, each is a file of its own. A model in which no tensor is cast is not written "
    "unless --copy is given or IN is a URL.",
    CLI_EXAMPLES(
        { "safetensors convert model.ckpt -o model.safetensors",
          "from PyTorch, GGUF, ONNX, NumPy, Flax, Paddle or TensorFlow; nothing of it is run" },
        { "safetensors convert training.ckpt --list", "which branches does it have?" },
        { "safetensors convert model.safetensors -o half.safetensors --dtype BF16",
          "half the bytes" },
        { "safetensors convert model.safetensors -o small.safetensors --dtype F8_E4M3 --match "
          "\"*.mlp.*.weight\"",
          "some tensors only" },
        { "safetensors convert model.safetensors -o plain.safetensors --dequantize",
          "values instead of F8 with scales, NVFP4, GPTQ, NF4, ..." },
        { "safetensors convert model.safetensors -o fp8.safetensors --quantize fp8",
          "half the bytes of BF16, for ComfyUI" },
        { "safetensors convert model.safetensors.index.json -o model-bf16 --dtype BF16",
          "a sharded model, into a new folder" },
        { "safetensors convert -r ~/loras -o half/ --dtype F16", "every model in a tree" },
        { "safetensors convert model.safetensors -o model.npz", "for numpy.load; or -o model.pt" },
        { "safetensors convert model.safetensors -o half.safetensors --dtype F16 --dry-run",
          "how large would it be?" }),
    { CLI_OPTIONS(
        CLI_TAKES('d', "dtype", "DTYPE", dtype,
          "the new dtype: BF16, F16, F32, F8_E4M3, ...; " CLI_DTYPE_HELP),
        CLI_ON(0, "dequantize", dequantize,
          "compute the values of quantised tensors (of ComfyUI, GPTQ, AWQ, NF4, ...) instead, by "
          "default as BF16, those of GGUF as F16; drop their scales and declarations and leave all "
          "other tensors alone"),
        CLI_TAKES(0, "quantize", "FORMAT", quantize,
          "quantise matrices instead, to fp8, int8, int8-convrot, mxfp8 or nvfp4"),
        CLI_TAKES(0, "layout", "LAYOUT", layout,
          "with --quantize: as comfy (the default), modelopt or compressed-tensors store it; "
          "without: rename tensors, cut and join them, so that the model is a folder of diffusers "
          "(diffusers), one file (single) or a folder for ComfyUI (comfy)"),
        CLI_TAKES(0, "architecture", "ID", architecture,
          "with --layout or --quantize: what model it is, where tensors do not tell (sdxl, flux.1, "
          "wan, ...)"),
        CLI_ON(0, "ignore-unmatched", ignore_unmatched,
          "with --layout: leave out tensors whose place in the other layout is not known"),
        CLI_TAKES(0, "max-shard-size", "SIZE", max_size,
          "with --layout diffusers: maximum bytes of tensors in a file (default: 10GB)"),
        CLI_TAKES(0, "scale", "SCALE", scale,
          "with --quantize: a scale for each tensor, row or block, where the layout has several"),
        CLI_TAKES_MANY(0, "only", "GLOB", only,
          "with --quantize: exactly the matrices whose whole name matches GLOB, or one of several"),
        CLI_TAKES_MANY(0, "spare", "GLOB", spare,
          "with --quantize: leave those whose whole name matches GLOB as they are, too"),
        CLI_ON(0, "from-quantised", from_quantised,
          "with --quantize: quantise the values of a model that is quantised already"),
        CLI_ON(0, "cast-scaled", cast_scaled,
          "cast tensors with a scale, and the scales, too: their values then mean nothing"),
        CLI_ON(0, "lossy", lossy,
          "cast an adapter to 8 bits or fewer, too, in which many of its values become zero; with "
          "--match, of any model also scalars, short vectors and magnitudes that match"),
        CLI_ON(0, "saturate", saturate,
          "clamp values that are too large to the greatest value; NaN becomes 0 in integers"),
        CLI_TAKES(0, "threads", "N", threads,
          "threads that read and convert while one writes, which is seldom faster; default 1, 0: "
          "one per processor"),
        CLI_ON(0, "copy", copy, "with -o: write OUT even if no tensor is cast"),
        CLI_ON(0, "opaque", opaque,
          "to .npz: write BF16 and 8-bit floats, which NumPy lacks, as bytes without a type, as it "
          "saves arrays of ml_dtypes")),
      cli_import_options_table, cli_match_options, cli_input_options, cli_in_place_options,
      cli_output_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_records_options, cli_remote_options, cli_network_options, cli_common_options },
    { "OUT was written, or there was nothing to change",
      "--match, --only or --spare found no tensor, a model in another format breaks a rule of it "
      "or holds what safetensors does not, the format of OUT lacks a dtype, the values of a "
      "quantised tensor cannot be computed, or --quantize was given an adapter, a quantised model, "
      "NaN or an infinity; nothing was written",
      "IN could not be read, a value does not fit DTYPE, OUT could not be written, or a usage "
      "error" },
    1, SIZE_MAX, run_convert, CLI_URLS_COPY,
};
