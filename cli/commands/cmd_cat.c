/* cat: one tensor, or a slice of it. Tests: tests/cli/cat. */
#include "base/checked.h"
#include "base/json.h"
#include "base/mem.h"
#include "formats/arrays/npy_head.h"
#include "commands/commands.h"
#include "os/os.h"
#include "support/models.h"
#include "support/hints.h"
#include "support/remote.h"
#include "support/values.h"
#include "support/words.h"
#include "safetensors_io.h"

#include <string.h>

/* ── A selection in pieces ── */

/* Called with packed bytes of `elements` elements; another code than SFT_OK stops. */
typedef sft_code (*piece_fn)(void *ctx, const void *bytes, size_t len, uint64_t elements,
                             sft_error *err);

#define PIECE_BYTES (UINT64_C(1) << 19)
#define ANNOUNCED_MOST 512 /* runs */

/* The selection is cut along dimension `cut` into stretches of `step` places; the
 * dimensions outside of it are counted through, those inside are whole. */
typedef struct piece_walk {
    sft_slice now;
    const sft_slice *all;
    uint32_t cut;
    uint64_t step;
    uint64_t at[SFT_MAX_RANK]; /* place in each dimension up to cut */
} piece_walk;

/* Elements of the largest piece: as many inner dimensions as fit, and part of the next. A
 * dtype under 8 bits is not cut, for pieces might end inside a byte. */
static void choose_cut(piece_walk *k, uint64_t budget, bool whole) {
    uint64_t inner = 1;
    k->cut = k->all->rank ? k->all->rank - 1 : 0;
    k->step = 1;
    if (whole) {
        k->cut = 0;
        k->step = k->all->rank ? k->all->range[0].count : 1;
        return;
    }
    for (uint32_t d = k->all->rank; d-- > 0;) {
        uint64_t next;
        k->cut = d;
        k->step = budget / inner;
        if (!sfti_mul(inner, k->all->range[d].count, &next) || next > budget) break;
        k->step = k->all->range[d].count;
        inner = next;
    }
    if (k->step == 0) k->step = 1;
}

static sft_range part_of(const sft_range *all, uint64_t from, uint64_t count) {
    uint64_t start = all->start + from * (uint64_t)all->step;
    return (sft_range){ start, count, all->step };
}

/* On to the next piece; false behind the last. */
static bool next_piece(piece_walk *k) {
    if (!k->all->rank) return false;
    k->at[k->cut] += k->step;
    for (uint32_t d = k->cut; k->at[d] >= k->all->range[d].count; d--) {
        if (d == 0) return false;
        k->at[d] = 0;
        k->at[d - 1]++;
    }
    return true;
}

static sft_code walk_pieces(const sft_file *file, const sft_tensor *tensor, piece_walk *k,
                            char *buffer, piece_fn piece, void *ctx, sft_error *err) {
    do {
        uint64_t elements, bytes;
        for (uint32_t d = 0; d < k->cut; d++)
            k->now.range[d] = part_of(&k->all->range[d], k->at[d], 1);
        if (k->all->rank) {
            const sft_range *range = &k->all->range[k->cut];
            uint64_t left = range->count - k->at[k->cut];
            k->now.range[k->cut] = part_of(range, k->at[k->cut], left < k->step ? left : k->step);
        }
        sft_code code = sft_slice_size(&k->now, tensor->dtype, &elements, &bytes, err);
        if (!code) code = sft_slice_read(file, tensor, &k->now, buffer, (size_t)bytes, err);
        if (!code) code = piece(ctx, buffer, (size_t)bytes, elements, err);
        if (code) return code;
    } while (next_piece(k));
    return SFT_OK;
}

/* Tell the source what all pieces will read: it may be far away. Slices of very many runs are
 * announced piece by piece. */
static void announce_pieces(const sft_file *file, const sft_tensor *tensor,
                            const sft_slice *slice) {
    sft_source source = sft_file_source(file);
    sft_run ahead[ANNOUNCED_MOST];
    sft_runs runs;
    size_t count = 0;
    if (sft_runs_begin(tensor, slice, &runs, NULL) || runs.left > ANNOUNCED_MOST) return;
    while (count < ANNOUNCED_MOST && sft_runs_next(&runs, &ahead[count]))
        ahead[count++].offset += tensor->offset;
    sft_source_expect(&source, ahead, count);
}

/* The selection, piece by piece in result order, with a few MiB of memory. */
static sft_code read_pieces(cli *c, const sft_file *file, const sft_tensor *tensor,
                            const sft_slice *slice, piece_fn piece, void *ctx, sft_error *err) {
    piece_walk k = { .now = *slice, .all = slice };
    uint32_t bits = sft_dtype_describe(tensor->dtype)->bits;
    uint64_t elements, bytes, buffer_size;
    sft_code code = sft_slice_size(slice, tensor->dtype, &elements, &bytes, err);
    if (code || elements == 0) return code;
    choose_cut(&k, PIECE_BYTES * 8 / bits, bits < 8);
    buffer_size = bits < 8 || bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    char *buffer = sfti_fits_size(buffer_size) ? sfti_take(&c->alloc, (size_t)buffer_size) : NULL;
    if (!buffer) return sfti_fail_memory(err, buffer_size);
    if (bytes > buffer_size) announce_pieces(file, tensor, slice);
    code = walk_pieces(file, tensor, &k, buffer, piece, ctx, err);
    sfti_release(&c->alloc, buffer, (size_t)buffer_size);
    return code;
}

/* ── What is printed ── */

typedef struct selection {
    cli *c;
    const sft_file *file;
    const sft_tensor *tensor;
    sft_slice slice;
    uint32_t rank;                /* of the result */
    uint64_t shape[SFT_MAX_RANK]; /* of the result */
    uint64_t at[SFT_MAX_RANK];    /* place of the next element */
    uint64_t elements, bytes;
    const char *path;
    bool begun; /* the result object */
} selection;

/* ── Which tensor ── */

/* The longest beginning of text that names a tensor and is followed by `[` or the end. */
static const sft_tensor *find_tensor(const sft_set *set, sft_span text, size_t *shard,
                                     sft_span *rest) {
    sft_span name = text;
    const sft_tensor *tensor = sft_set_find(set, name, shard);
    while (!tensor && name.len > 0) {
        do name.len--;
        while (name.len > 0 && text.data[name.len] != '[');
        if (text.data[name.len] == '[') tensor = sft_set_find(set, name, shard);
    }
    if (tensor) *rest = (sft_span){ text.data + name.len, text.len - name.len };
    return tensor;
}

#define NEAR_TENSORS 20000

static sft_code no_tensor(const sft_set *set, sft_span text, sft_error *err) {
    const char *bracket = memchr(text.data, '[', text.len);
    sft_span name = { text.data, bracket ? (size_t)(bracket - text.data) : text.len };
    sfti_guess guess = sfti_guess_begin(name);
    for (size_t i = 0; i < sft_set_tensor_count(set) && i < NEAR_TENSORS; i++)
        sfti_guess_try(&guess, sft_set_tensor_at(set, i)->name);
    const char *near = sfti_guess_text(&guess, "\"", "\"");
    sft_code code = sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, name,
                                     "expected a tensor of this name, found none%s", near);
    if (*near) err->hint = SFT_HINT_NONE;
    return code;
}

/* ── raw and npy ── */

static sft_code put_raw(void *ctx, const void *bytes, size_t len, uint64_t elements,
                        sft_error *err) {
    selection *s = ctx;
    (void)elements;
    cli_put(&s->c->out, bytes, len);
    if (cli_is_over(s->c)) return sfti_fail_cancelled(err);
    return SFT_OK;
}

/* ── text: a row a line, a blank line between matrices ── */

/* Step on; returns how many dimensions came to their end. */
static uint32_t step_on(selection *s) {
    uint32_t ended = 0;
    for (uint32_t d = s->rank; d-- > 0; ended++) {
        if (++s->at[d] < s->shape[d]) break;
        s->at[d] = 0;
    }
    return ended;
}

static sft_code put_text(void *ctx, const void *bytes, size_t len, uint64_t elements,
                         sft_error *err) {
    selection *s = ctx;
    cli_out *out = &s->c->out;
    char buffer[CLI_VALUE_SIZE];
    (void)len;
    for (uint64_t i = 0; i < elements; i++) {
        if (s->rank && s->at[s->rank - 1]) cli_text(out, " ");
        cli_put(out, buffer, cli_value_text(s->tensor->dtype, bytes, i, false, buffer));
        uint32_t ended = step_on(s);
        if (ended || !s->rank) cli_text(out, "\n");
        if (ended >= 2 && ended < s->rank) cli_text(out, "\n");
        if (out->error) return sfti_fail_cancelled(err);
    }
    return put_raw(s, NULL, 0, 0, err);
}

/* ── json ── */

/* The result object, up to its values. They begin with the first piece, so that a tensor that
 * cannot be read is an error's object. */
static sft_code begin_json(selection *s, sft_error *err) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, s->c, s->path);
    s->begun = true;
    sfti_json_put_text(w, "tensor", s->tensor->name);
    sfti_json_put_cstr(w, "dtype", sft_dtype_describe(s->tensor->dtype)->name);
    sfti_json_put_shape(w, "shape", s->shape, s->rank);
    sfti_json_key(w, "values");
    sft_code code = sfti_json_done(w);
    if (code) *err = object.err;
    return code;
}

static sft_code put_json(void *ctx, const void *bytes, size_t len, uint64_t elements,
                         sft_error *err) {
    selection *s = ctx;
    cli_out *out = &s->c->out;
    char buffer[CLI_VALUE_SIZE];
    sft_code code = s->begun ? SFT_OK : begin_json(s, err);
    (void)len;
    if (code) return code;
    for (uint64_t i = 0; i < elements; i++) {
        uint32_t opens = 0; /* dimensions that are at their first place, from the last outwards */
        while (opens < s->rank && s->at[s->rank - 1 - opens] == 0) opens++;
        bool first = true;
        for (uint32_t d = 0; d < s->rank; d++) first = first && s->at[d] == 0;
        if (!first) cli_text(out, ",");
        for (uint32_t d = 0; d < opens; d++) cli_text(out, "[");
        cli_put(out, buffer, cli_value_text(s->tensor->dtype, bytes, i, true, buffer));
        for (uint32_t ended = step_on(s); ended > 0; ended--) cli_text(out, "]");
        if (out->error) return sfti_fail_cancelled(err);
    }
    return put_raw(s, NULL, 0, 0, err);
}

/* ── The command ── */

/* Whether the form asked for can show this dtype, here. */
static sft_code check_form(const selection *s, sft_error *err) {
    const cli_settings *set = &s->c->set;
    const char *dtype = sft_dtype_describe(s->tensor->dtype)->name;
    bool binary = set->as == CLI_AS_RAW || set->as == CLI_AS_NPY;
    if (binary && !set->terminal && sfti_os_is_terminal(1))
        return cli_usage_hint(err, CLI_HINT_REDIRECT,
                              "expected a file or a pipe for binary output, found a terminal");
    if (set->as != CLI_AS_NPY || sfti_npy_code(s->tensor->dtype)) return SFT_OK;
    return cli_usage_hint(err, CLI_HINT_AS_RAW, "expected a dtype that NumPy has, found %s", dtype);
}

static sft_code cat_tensor(cli *c, const sft_set *set, const char *path, const char *what,
                           sft_error *err) {
    selection s = { .c = c };
    sft_span rest = { NULL, 0 };
    size_t shard = 0;
    s.tensor = find_tensor(set, sft_span_cstr(what), &shard, &rest);
    if (!s.tensor) return no_tensor(set, sft_span_cstr(what), err);
    s.file = sft_set_shard_at(set, shard);
    sft_code code = rest.len == 0
        ? sft_slice_resolve(s.tensor->shape, s.tensor->rank, NULL, 0, &s.slice, err)
        : sft_slice_parse(s.tensor->shape, s.tensor->rank, rest, &s.slice, err);
    if (!code) s.rank = sft_slice_shape(&s.slice, s.shape);
    if (!code) code = sft_slice_size(&s.slice, s.tensor->dtype, &s.elements, &s.bytes, err);
    if (code && err) err->offset = SFT_NO_OFFSET;
    if (!code) code = check_form(&s, err);
    if (code) return code;
    if (c->set.as == CLI_AS_JSON) {
        s.path = path;
        code = s.elements == 0 ? begin_json(&s, err)
                               : read_pieces(c, s.file, s.tensor, &s.slice, put_json, &s, err);
        if (!s.begun) return code;
        cli_text(&c->out, s.elements == 0 ? "[]}" : "}");
        cli_result_end(c, path, SFT_OK, NULL);
        return code;
    }
    if (c->set.as == CLI_AS_NPY) {
        char head[SFTI_NPY_SIZE];
        size_t len = sfti_npy_head(sfti_npy_code(s.tensor->dtype), s.shape, s.rank, head);
        cli_put(&c->out, head, len);
    }
    return read_pieces(c, s.file, s.tensor, &s.slice,
                       c->set.as == CLI_AS_TEXT ? put_text : put_raw, &s, err);
}

static void run_cat(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    cli_inputs inputs;
    sft_set *set = NULL;
    const cli_input *input;
    size_t results = c->results;
    (void)count;
    if (c->set.as == CLI_AS_JSON) c->set.format = CLI_JSON;
    /* whatever the values' name replaces, only the last part differs */
    c->values_within = sft_span_cstr(operands[1]);
    c->values_within.len = strcspn(operands[1], "[");
    while (c->values_within.len > 0 && operands[1][c->values_within.len - 1] != '.')
        c->values_within.len--;
    sft_code code = cli_open_operand(c, operands[0], &inputs, &input, &set, &err);
    if (!code) code = cat_tensor(c, set, input->path, operands[1], &err);
    sft_set_close(set);
    bool begun = c->results != results;
    if (err.hint == SFT_HINT_CHOOSE_TENSORS) err.hint = SFT_HINT_NONE; /* one is chosen */
    if (code == SFT_TENSOR_NOT_FOUND) cli_refuse(c, operands[0], &err);
    else if (code && begun) cli_complain(c, operands[0], &err);
    else if (code) cli_fail_input(c, operands[0], &err);
    cli_inputs_free(&inputs);
}

const cli_command cli_cat_command = {
    "cat", "FILE TENSOR[SLICE]", "print a tensor, or a slice of it",
    "Reads only the bytes asked for. SLICE has the syntax of NumPy: integers, start:stop:step, "
    "negative numbers from the end, an ellipsis. The longest exact tensor name wins before [ "
    "begins a slice. FILE may be an index: the tensor is read from the shard that holds it.\n"
    "Text prints the last dimension on one line and a blank line between matrices. JSON gives "
    "nested arrays under \"values\" ([] if there are no elements), NaN and infinities as "
    "strings, complex numbers as pairs. Use --as raw for dtypes NumPy lacks.\n"
    CLI_VALUES_TEXT,
    CLI_EXAMPLES(
        { "safetensors cat model.safetensors lm_head.weight", "all values" },
        { "safetensors cat model.safetensors \"w[0, :8]\"", "eight values of the first row" },
        { "safetensors cat model.safetensors \"w[::-1, ..., -1]\"", "NumPy slice syntax" },
        { "safetensors cat --as npy model.safetensors w >w.npy", "for numpy.load" },
        { "safetensors cat --values quantised.safetensors \"layers.0.mlp.weight[0]\"",
          "a row of a quantised tensor" },
        { "safetensors cat hf://openai-community/gpt2/model.safetensors \"wte.weight[0]\"",
          "of a URL, only the bytes asked for" }),
    { CLI_OPTIONS(
        { 0, "as", "text|raw|npy|json", CLI_CHOICE, 0, offsetof(cli_settings, as),
          "output format: numbers as text, the bytes as stored, a NumPy file, JSON" },
        CLI_VALUES,
        CLI_ON(0, "to-terminal", terminal, "write binary output even to a terminal")),
      cli_reading_options, cli_remote_options, cli_network_options, cli_common_options },
    { "the values were written", "no tensor has this name",
      "the model could not be read, or a usage error" },
    2, 2, run_cat, CLI_URLS_FIRST,
};
