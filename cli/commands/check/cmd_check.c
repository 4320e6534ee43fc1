/* check: check that models are valid; silent if they are. */
#include "commands/check/check.h"
#include "commands/commands.h"
#include "support/remote.h"
#include "support/words.h"

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
    bool valid = sft_scan_error(scan) == NULL, look = valid && c->set.deep;
    sft_code code = look ? cli_open_model(c, input, &set, &err) : SFT_OK;
    if (look && !code) code = cli_check_values(c, input->path, set, &deep, &err);
    if (code) {
        cli_fail_input(c, input->path, &err);
    } else if (cli_is_json(c)) {
        sft_sink sink = cli_result_begin(c);
        code = sft_scan_json(scan, input->path, look ? &deep : NULL, &sink, &err);
        cli_result_end(c, input->path, code, &err);
    } else {
        if (c->set.explain) cli_explain(c, input->path, scan);
        else if (!valid) cli_verdict_line(c, input->path, sft_scan_error(scan));
        if (look) cli_deep_line(c, input->path, set, &deep, c->set.explain != 0);
    }
    if (!valid) cli_status(c, CLI_NO);
    sft_set_close(set);
}

/* ── The command ── */

static void check_input(cli *c, const cli_input *input) {
    sft_error err = SFT_ERROR_INIT;
    sft_scan *scan = NULL;
    if (input->kind == CLI_INDEX) {
        cli_check_set(c, input);
        return;
    }
    if (scan_input(c, input, &scan, &err)) {
        cli_fail_input(c, input->path, &err);
        return;
    }
    const sft_error *found = sft_scan_error(scan);
    sft_span path = sft_span_cstr(input->path);
    bool claims = input->kind == CLI_STDIN || cli_ends_with(path, ".safetensors")
                  || cli_ends_with(path, ".sft"); /* what is called so must be so */
    if (found && found->code == SFT_FOUND_INDEX && input->kind == CLI_FILE) {
        if (!cli_check_import(c, input->path)) cli_check_set(c, input);
    } else if (!found || claims || !cli_check_import(c, input->path)) {
        judge_file(c, input, scan);
    }
    sft_scan_close(scan);
}

static void run_check(cli *c, char **operands, size_t count) {
    c->others = CLI_AND_OTHERS;
    c->tells_reading = true;
    cli_each_input(c, operands, count, check_input);
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
    "Checks every rule of the format that a reader relies on: the lengths, the header's JSON, "
    "each tensor's dtype, shape and offsets, and that the data is complete and nothing follows "
    "it. Prints one line per invalid file. A model in another format that convert reads is "
    "checked by that format's rules, with --deep also against its checksums, and named in a line, "
    "unless it is called .safetensors; other files are identified: Git LFS or Xet pointer, HTML "
    "page, HDF5, gzip, zstd, truncated download.\n"
    "A model with an index is checked shard by shard, then as a whole. - reads standard input to "
    "its end. In a folder a file is judged as if it were named: all that is called .ckpt, .pt, "
    ".pth, .gguf, .onnx or .pdparams, or as models of PyTorch, Flax and TensorFlow are, and of "
    "other "
    "names (.bin, .npz, .msgpack, .pkl, .index, .h5, ...) what is a model by its contents, or a "
    "pointer or web page in its place. Sound files of another kind are not checked (archives and "
    "pickles without tensors, HDF5, unknown data in a .bin); a line on standard error counts "
    "them.\n"
    "Of a URL the header and the length of the file are checked; a note on standard error says "
    "that no data was read. With --deep it is, all of it.\n"
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
    { "every model is valid", "a model is not valid, or --deep found NaN or infinities",
      "a model could not be read, or a usage error" },
    1, SIZE_MAX, run_check, CLI_URLS_ALL,
};
