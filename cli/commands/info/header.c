/* What stands in the headers, for info -v: sizes, dtypes, shards, metadata. */
#include "commands/info/label.h"
#include "support/files.h"

#include <inttypes.h>
#include <string.h>

#define PAIRS_SHOWN 20
#define SHARDS_SHOWN 8
#define VALUE_COLUMNS 64

/* ── Lines ── */

/* "14.5 GB", and with -v also "(14484731904 bytes)". */
static void size_words(cli *c, uint64_t bytes) {
    char buffer[CLI_NUMBER_SIZE];
    cli_text(&c->out, cli_size_text(bytes, buffer));
    if (c->set.verbose && bytes >= 1000) cli_printf(&c->out, " (%" PRIu64 " bytes)", bytes);
}

/* ── dtypes: name, tensors, parameters, bytes, share ── */

/* Most bytes first; of equals the earlier in the table. */
static void dtype_lines(cli *c, const sft_set *set) {
    char count_text[CLI_NUMBER_SIZE], size[CLI_NUMBER_SIZE];
    sft_dtype_sum sums[SFT_DTYPE_COUNT];
    size_t count = sft_set_dtypes(set, sums, SFT_DTYPE_COUNT);
    uint64_t all = sft_set_data_bytes(set);
    for (size_t shown = 0; shown < count; shown++) {
        size_t best = 0;
        for (size_t i = 0; i < count; i++) {
            if (sums[i].tensors == 0) continue;
            if (sums[best].tensors == 0 || sums[i].bytes > sums[best].bytes) best = i;
        }
        const sft_dtype_sum *sum = &sums[best];
        uint64_t part = sum->bytes, whole = all;
        for (; whole > (UINT64_C(1) << 50); whole >>= 1) part >>= 1; /* so that the product fits */
        uint64_t permille = whole ? (part * 1000 + whole / 2) / whole : 0;
        cli_label_key(c, shown == 0 ? "dtypes" : "");
        cli_printf(&c->out, "%-11s %6" PRIu64 " tensor%s  %8s  %8s  ",
                   sft_dtype_describe(sum->dtype)->name, sum->tensors,
                   sum->tensors == 1 ? " " : "s", cli_count_text(sum->parameters, count_text),
                   cli_size_text(sum->bytes, size));
        cli_printf(&c->out, "%3" PRIu64 ".%" PRIu64 " %%", permille / 10, permille % 10);
        if (c->set.verbose)
            cli_printf(&c->out, "  (%" PRIu64 " in %" PRIu64 " byte%s)", sum->parameters,
                       sum->bytes, sum->bytes == 1 ? "" : "s");
        cli_text(&c->out, "\n");
        sums[best].tensors = 0;
    }
}

/* ── Metadata ── */

void cli_metadata_lines(cli *c, const sft_set *set) {
    const sft_file *file = NULL; /* the first that has any */
    for (size_t i = 0; i < sft_set_shard_count(set) && !file; i++)
        if (sft_file_metadata_count(sft_set_shard_at(set, i))) file = sft_set_shard_at(set, i);
    size_t count = file ? sft_file_metadata_count(file) : 0;
    size_t shown = c->set.verbose || count <= PAIRS_SHOWN ? count : PAIRS_SHOWN;
    cli_label_key(c, c->set.verbose ? "pairs" : "metadata");
    if (!count) {
        cli_text(&c->out, "none\n");
        return;
    }
    const char *unit = c->set.verbose ? "" : count == 1 ? " pair" : " pairs";
    cli_printf(&c->out, "%zu%s\n", count, unit);
    size_t width = 0;
    for (size_t i = 0; i < shown; i++) {
        size_t w = cli_escaped_width(sft_file_metadata_at(file, i).key);
        if (w > width) width = w < 32 ? w : 32;
    }
    for (size_t i = 0; i < shown; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        cli_pad(&c->out, 4);
        size_t used = c->set.verbose ? cli_escaped_width(pair.key) : 0;
        if (c->set.verbose) cli_escaped(&c->out, pair.key);
        else used = cli_escaped_cut(&c->out, pair.key, width);
        cli_pad(&c->out, (used < width ? width - used : 0) + 2);
        sft_span rest = pair.value;
        if (!c->set.verbose) {
            if (cli_escaped_cut(&c->out, rest, VALUE_COLUMNS) == VALUE_COLUMNS
                && rest.len > VALUE_COLUMNS)
                cli_printf(&c->out, " (%zu bytes)", rest.len);
            cli_text(&c->out, "\n");
            continue;
        }
        do { /* whole, its lines below one another */
            const char *end = rest.len ? memchr(rest.data, '\n', rest.len) : NULL;
            size_t len = end ? (size_t)(end - rest.data) : rest.len;
            cli_fill(&c->out, "%\n", { rest.data, len });
            len += end != NULL;
            if (len) rest.data += len;
            rest.len -= len;
            if (rest.len) cli_pad(&c->out, 6);
        } while (rest.len);
    }
    if (shown < count) cli_printf(&c->out, "    ... %zu more (-v shows all)\n", count - shown);
}

/* ── All ── */

void cli_header_lines(cli *c, const sft_set *set, const sft_node *root) {
    cli_label_key(c, "tensors");
    cli_printf(&c->out, "%zu\n", sft_set_tensor_count(set));
    char buffer[CLI_NUMBER_SIZE];
    uint64_t parameters = sft_set_parameters(set), weights;
    /* What is packed, and what accompanies it, are no parameters. */
    bool same = parameters == 0
             || (sft_node_uint(root, "model.parameters", &weights) && weights == parameters);
    cli_label_key(c, same ? "parameters" : "elements");
    cli_text(&c->out, cli_count_text(parameters, buffer));
    if (c->set.verbose && parameters >= 1000) cli_printf(&c->out, " (%" PRIu64 ")", parameters);
    cli_text(&c->out, "\n");
    uint64_t bytes;
    bool whole = true;
    for (size_t i = 0; i < sft_set_shard_count(set); i++)
        whole = whole && sft_file_complete(sft_set_shard_at(set, i));
    if (!sft_node_uint(root, "import.input_bytes", &bytes)) bytes = sft_set_file_bytes(set);
    cli_label_key(c, "size");
    if (bytes == SFT_SIZE_UNKNOWN) {
        cli_text(&c->out, "header and tensors ask for ");
        bytes = sft_set_header_bytes(set) + 8 + sft_set_data_bytes(set);
    }
    size_words(c, bytes);
    cli_text(&c->out, whole ? "\n" : ", data not seen (read from a pipe)\n");
    dtype_lines(c, set);
    if (c->set.verbose && !sft_node_find(root, "import")) { /* which has no such header */
        uint32_t alignment = sft_set_alignment(set);
        uint64_t unaligned = sft_set_unaligned_count(set);
        cli_label_key(c, "header");
        size_words(c, sft_set_header_bytes(set));
        cli_printf(&c->out, sft_set_shard_count(set) > 1
                       ? " in all, data aligned to %" PRIu32 " byte%s or more"
                       : ", data aligned to %" PRIu32 " byte%s",
                   alignment, alignment == 1 ? "" : "s");
        if (unaligned)
            cli_printf(&c->out, "; %" PRIu64 " tensor%s not aligned for the dtype",
                       unaligned, unaligned == 1 ? "" : "s");
        cli_text(&c->out, "\n");
    }
    if (!sft_set_index_path(set)) return;
    size_t count = sft_set_shard_count(set);
    size_t shown = c->set.verbose || count <= SHARDS_SHOWN ? count : SHARDS_SHOWN;
    cli_label_key(c, "shards");
    cli_printf(&c->out, "%zu\n", count);
    for (size_t i = 0; i < shown; i++) {
        const sft_file *file = sft_set_shard_at(set, i);
        cli_pad(&c->out, 4);
        cli_escaped(&c->out, cli_name_of(sft_set_shard_path(set, i)));
        cli_printf(&c->out, "  %zu tensor%s, ", sft_file_tensor_count(file),
                   sft_file_tensor_count(file) == 1 ? "" : "s");
        size_words(c, sft_file_size(file));
        cli_text(&c->out, "\n");
    }
    if (shown < count) cli_printf(&c->out, "    ... %zu more (-v shows all)\n", count - shown);
}
