/* put: replace a tensor's bytes from standard input. Tests: tests/cli/put. */
#include "commands/commands.h"
#include "os/os.h"
#include "support/edit.h"
#include "support/guard.h"
#include "support/hints.h"

/* ── Standard input ── */

/* A pipe that a signal ends. */
static sft_code read_input(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    sft_code code = sft_source_read(ctx, offset, into, len, got, err);
    return code && sfti_os_stop_signal() ? sfti_fail_cancelled(err) : code;
}

static const sft_source_vtable input_source_vtable = {
    sizeof(sft_source_vtable), read_input, NULL, NULL, NULL
};

/* The size of a pipe is known only once it is read. */
static sft_code check_length(const sft_tensor *tensor, const sft_source *input, sft_error *err) {
    uint64_t len = tensor->end - tensor->begin, at = 0;
    char buffer[8192];
    size_t got = 1;
    sft_code code = SFT_OK;
    for (; !code && got > 0 && at <= len; at += got)
        code = sft_source_read(input, at, buffer, sizeof buffer, &got, err);
    if (code || at == len) return code;
    return sfti_fail_tensor(err, SFT_BUFFER_SIZE, SFT_NO_OFFSET, tensor->name,
                            "expected %llu bytes for the tensor, found %s%llu",
                            (unsigned long long)len, at > len ? "more than " : "",
                            (unsigned long long)(at > len ? len : at));
}

/* ── The command ── */

static sft_code put_file(cli *c, const char *path, const char *name, sft_error *err) {
    sft_edit *edit;
    sft_edit_report report;
    sft_edit_options options = cli_edit_options(c);
    sft_code code = sft_edit_open(path, &options, &edit, err);
    if (code) return code;
    sft_source input = { .ctx = NULL };
    code = sft_source_fd(0, &c->alloc, &input, err);
    sft_source source = input; /* a file: as any other */
    if (input.size == SFT_SIZE_UNKNOWN)
        source = (sft_source){ &input, &input_source_vtable, SFT_SIZE_UNKNOWN, NULL, false };
    if (!code) code = sft_edit_put(edit, sft_span_cstr(name), &source, err);
    if (!code) code = cli_edit_finish(c, path, edit, &report, err);
    if (!code && c->set.dry_run && input.size == SFT_SIZE_UNKNOWN)
        code = check_length(sft_file_find(sft_edit_file(edit), sft_span_cstr(name)), &source, err);
    if (code == SFT_BUFFER_SIZE) cli_hint(err, CLI_HINT_STDIN);
    sft_source_close(&input);
    sft_edit_close(edit);
    if (code) return code;
    cli_edit_result result = { .path = path, .report = &report, .same_header = true,
                               .changed = report.method != SFT_EDIT_NONE };
    cli_edit_say(c, &result);
    return SFT_OK;
}

static void run_put(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = NULL;
    sfti_arena arena = { .alloc = c->alloc };
    const char *file = operands[0];
    (void)count;
    sft_code code = cli_edit_operand(c, &arena, operands[0], &file, &err);
    sft_set_options options = cli_set_options(c);
    sft_span name = sft_span_cstr(operands[1]);
    size_t shard;
    bool several = !code && sft_path_is_index(file); /* the file of it that holds the tensor */
    if (several) code = cli_edit_recover(c, file, &err);
    if (several && !code && !c->set.output) code = cli_guard_lock(c, file, &err);
    if (several && !code) code = sft_set_open(file, &options, &set, &err);
    if (set && !sft_set_find(set, name, &shard))
        code = sfti_fail_tensor(&err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, name,
                                "expected a tensor of this name, found none");
    else if (set)
        file = sft_set_shard_path(set, shard);
    if (!code && set) code = cli_edit_beneath(c, &arena, sft_set_index_path(set), &err);
    if (!code) code = put_file(c, file, operands[1], &err);
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, operands[0], &err);
    else if (code) cli_edit_fail(c, file, &err);
    c->edit_open.beneath = NULL;
    sft_set_close(set);
    sfti_arena_free(&arena);
}

const cli_command cli_put_command = {
    "put", "FILE TENSOR", "replace a tensor's bytes from standard input",
    "Reads exactly as many bytes as the tensor has, as stored: packed, little-endian. Fewer or "
    "more bytes are an error, and nothing is changed.\n"
    "Up to 64 MiB are written in place under a journal next to the file, so that after a crash "
    "\"meta recover\" restores the old bytes or completes the new ones. More than that, and "
    "anything with --safe, is written to a new file that is renamed over the old one; it shares "
    "the unchanged bytes if the file system can, and is a copy otherwise. The method used is "
    "printed. With -o OUT the file stays as it is and a changed copy is written.\n"
    "For a model with an index, only the file that holds the tensor is written. The header, mode "
    "and all other bytes are kept; digests of the old data (sshs_model_hash, sshs_legacy_hash, "
    "modelspec.hash_*) are dropped from the metadata.",
    CLI_EXAMPLES(
        { "safetensors put model.safetensors bias < bias.bin",
          "the exact number of bytes of the tensor" },
        { "safetensors put --safe model.safetensors bias < bias.bin",
          "readers with the file open keep the old one" },
        { "safetensors cat --as raw a.safetensors w | safetensors put b.safetensors w",
          "copy a tensor from one model to another" }),
    { CLI_OPTIONS(
        CLI_ON(0, "safe", safe,
          "write a new file and rename it over the old one, even if the bytes would fit in place")),
      cli_output_path_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_common_options },
    { "the bytes were replaced", "no tensor has this name",
      "FILE could not be read or written, or a usage error" },
    2, 2, run_put, CLI_URLS_NONE,
};
