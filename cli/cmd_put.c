/* put: other bytes for one tensor, from standard input. */
#include "output.h"
#include "parts.h"

#include "os/os.h"

#include <string.h>

/* Standard input as a source of exactly so many bytes. */
typedef struct exact_input {
    sft_source inner;
    uint64_t bytes;
} exact_input;

static sft_code wrong_size(const exact_input *in, const char *found, uint64_t bytes,
                           sft_error *err) {
    sfti_fail(err, SFT_BUFFER_SIZE, SFT_NO_OFFSET,
              "expected %llu bytes for the tensor on standard input, found %s%llu",
              (unsigned long long)in->bytes, found, (unsigned long long)bytes);
    err->hint = NULL;
    return SFT_BUFFER_SIZE;
}

static sft_code probe_end(const exact_input *in, sft_error *err) {
    char more;
    size_t got = 0;
    sft_code code = in->inner.read_at(in->inner.ctx, in->bytes, &more, 1, &got, err);
    return code || got == 0 ? code : wrong_size(in, "more than ", in->bytes, err);
}

static sft_code read_exact(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    const exact_input *in = ctx;
    sft_code code = in->inner.read_at(in->inner.ctx, offset, into, len, got, err);
    if (code && os_stop_signal()) {
        return sfti_fail(err, SFT_CANCELLED, SFT_NO_OFFSET, "stopped by a signal");
    }
    if (code) return code;
    if (*got < len) return wrong_size(in, "", offset + *got, err);
    return offset + len == in->bytes ? probe_end(in, err) : SFT_OK;
}

/* *out is one over `in`, which must outlive it. */
static sft_code open_exact(cli *c, uint64_t bytes, exact_input *in, sft_source *out,
                           sft_error *err) {
    sft_code code = sft_source_fd(0, &c->alloc, &in->inner, err);
    if (code) return code;
    in->bytes = bytes;
    *out = (sft_source){ in, bytes, NULL, read_exact, NULL };
    if (in->inner.size == SFT_SIZE_UNKNOWN) return bytes == 0 ? probe_end(in, err) : SFT_OK;
    if (in->inner.size == bytes) {
        *out = in->inner; /* a file of the right length: as any other */
        return SFT_OK;
    }
    return wrong_size(in, "", in->inner.size, err);
}

/* ── The command ── */

static sft_code find_tensor_part(const cli_parts *parts, sft_span name, size_t *at,
                                 sft_error *err) {
    for (*at = 0; *at < parts->count; ++*at) {
        if (sft_span_equal(parts->parts[*at].spec.name, name)) return SFT_OK;
    }
    sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, name,
                     "expected a tensor of this name, found none");
    err->hint = "safetensors ls shows the names";
    return SFT_TENSOR_NOT_FOUND;
}

/* The file that holds the tensor: of a model in several files that one alone is written. */
static sft_code find_file(cli *c, char **operands, cli_parts *parts, char **file,
                          sft_error *err) {
    size_t shard;
    *file = operands[0];
    sft_code code = cli_parts_open(c, operands, 1, parts, err);
    if (code) return code;
    if (parts->set_count == 1 && sft_set_find(parts->sets[0], sft_span_cstr(operands[1]), &shard)) {
        const char *path = sft_set_shard_path(parts->sets[0], shard);
        size_t len = strlen(path) + 1;
        *file = sfti_arena_take(&parts->arena, len);
        if (!*file) return sfti_fail_memory(err, len);
        memcpy(*file, path, len);
        return SFT_OK;
    }
    return find_tensor_part(parts, sft_span_cstr(operands[1]), &shard, err);
}

static sft_code put_bytes(cli *c, char *file, const char *name, cli_parts *parts,
                          exact_input *in, sft_error *err) {
    cli_output out;
    sft_source source;
    size_t at;
    uint64_t bytes = 0;
    sft_code code = cli_output_begin(&out, c, file, CLI_TARGET_EDIT, err);
    parts->path = out.blame;
    if (code) return code;
    code = cli_parts_open(c, &file, 1, parts, err);
    if (!code) code = find_tensor_part(parts, sft_span_cstr(name), &at, err);
    if (code) return code;
    sft_part *part = &parts->parts[at];
    parts->path = out.path;
    code = sft_shape_size(part->spec.dtype, part->spec.shape, part->spec.rank, NULL, &bytes, err);
    if (!code) code = open_exact(c, bytes, in, &source, err);
    if (code) return code;
    part->source = &source;
    part->begin = 0;
    return cli_output_parts(&out, c, parts->parts, parts->count, parts->metadata,
                            parts->metadata_count, parts->has_metadata, err);
}

static int run_put(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    cli_parts model, parts = { .arena = { .alloc = c->alloc } };
    exact_input in = { .bytes = 0 };
    char *file;
    const char *path;
    (void)count;
    sft_code code = find_file(c, operands, &model, &file, &err);
    path = model.path;
    if (!code) {
        code = put_bytes(c, file, operands[1], &parts, &in, &err);
        path = parts.path;
    }
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, operands[0], &err);
    else if (code) cli_complain(c, path, &err);
    if (in.inner.close) in.inner.close(in.inner.ctx);
    cli_parts_free(&parts);
    cli_parts_free(&model);
    return c->status;
}

static const cli_example put_examples[] = {
    { "safetensors put model.safetensors bias < bias.bin", "as many bytes as the tensor has" },
    { "safetensors cat --as raw a.safetensors w | safetensors put b.safetensors w",
      "from one model to another" },
    { NULL, NULL },
};

const cli_command cli_put_command = {
    "put", "FILE TENSOR", "replace the bytes of a tensor by standard input",
    "Reads exactly as many bytes as the tensor has (as stored: packed, little-endian) and puts "
    "the model written anew in FILE's place, at once and whole; with -o it goes to OUT instead. "
    "Fewer or more bytes are refused, and nothing is changed. Of a model in several files, only "
    "the one that holds the tensor is written. Dtype, shape, mode, metadata and all other "
    "tensors are kept.",
    put_examples,
    { cli_writing_options, cli_reading_options, cli_common_options, NULL },
    { "the bytes were replaced", "there is no tensor of that name",
      "FILE could not be read, the result not be written, or the usage was wrong" },
    2, 2, run_put,
};
