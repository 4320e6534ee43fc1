/* convert: what its results say, also of values that casts to fewer bits have lost. */
#include "commands/convert/convert.h"
#include "support/output.h"


#include <inttypes.h>

#define LOST_WORST 3

static double lost_share(const sft_conversion *conversion, size_t i) {
    uint64_t of = sft_conversion_lost(conversion, i, SFT_LOSS_OF);
    uint64_t lost = sft_conversion_lost(conversion, i, SFT_LOSS_ZERO)
                    + sft_conversion_lost(conversion, i, SFT_LOSS_INFINITE)
                    + sft_conversion_lost(conversion, i, SFT_LOSS_SATURATED);
    return of > 0 ? (double)lost / (double)of : lost > 0;
}

/* How many tensors lost more than a hundredth of their values; the worst of them, worst first. */
static size_t find_lost(const sft_set *set, const sft_conversion *conversion,
                        size_t worst[LOST_WORST]) {
    size_t count = 0;
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        double share = lost_share(conversion, i);
        if (share <= 0.01) continue;
        size_t at = count < LOST_WORST ? count : LOST_WORST;
        for (; at > 0 && lost_share(conversion, worst[at - 1]) < share; at--)
            if (at < LOST_WORST) worst[at] = worst[at - 1];
        if (at < LOST_WORST) worst[at] = i;
        count++;
    }
    return count;
}

void convert_warn_lost(const convert_run *run) {
    static const struct { sft_convert_loss what; const char *text; } kinds[] = {
        { SFT_LOSS_ZERO, "zero" }, { SFT_LOSS_INFINITE, "infinite" },
        { SFT_LOSS_SATURATED, "saturated" },
    };
    const sft_set *set = run->parts.sets[0];
    const sft_conversion *conversion = run->conversion;
    cli_out *err = &run->c->err;
    if (run->c->set.dry_run) return;
    size_t worst[LOST_WORST], count = find_lost(set, conversion, worst);
    if (count == 0) return;
    cli_flush(&run->c->out);
    cli_text(err, "safetensors: ");
    cli_path(err, run->input, ": %zu tensor%s lost more than 1 %% of the values in %s: ", count,
             count == 1 ? "" : "s", sft_dtype_describe(run->to)->name);
    for (size_t k = 0; k < count && k < LOST_WORST; k++) {
        uint64_t of = sft_conversion_lost(conversion, worst[k], SFT_LOSS_OF);
        if (k > 0) cli_text(err, "; ");
        cli_quoted(err, sft_set_tensor_at(set, worst[k])->name);
        for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
            uint64_t lost = sft_conversion_lost(conversion, worst[k], kinds[n].what);
            if (lost > 0)
                cli_printf(err, ", %" PRIu64 " of %" PRIu64 " became %s", lost, of, kinds[n].text);
        }
    }
    cli_text(err, count > LOST_WORST ? "; ...\n" : "\n");
    cli_flush(err);
}

static void put_lost(const sft_conversion *conversion, sfti_json_writer *w, size_t i) {
    sfti_json_put_uint(w, "values", sft_conversion_lost(conversion, i, SFT_LOSS_OF));
    sfti_json_put_uint(w, "zero", sft_conversion_lost(conversion, i, SFT_LOSS_ZERO));
    sfti_json_put_uint(w, "infinite", sft_conversion_lost(conversion, i, SFT_LOSS_INFINITE));
    sfti_json_put_uint(w, "saturated",
                       sft_conversion_lost(conversion, i, SFT_LOSS_SATURATED));
}

void convert_put_more(void *ctx, sfti_json_writer *w) {
    const convert_run *run = ctx;
    const sft_set *set = run->parts.sets[0];
    const sft_conversion *conversion = run->conversion;
    if (conversion && !run->c->set.dry_run) {
        size_t worst[LOST_WORST], count = find_lost(set, conversion, worst);
        sfti_json_put_open(w, "lost", '{');
        put_lost(conversion, w, SIZE_MAX);
        sfti_json_put_uint(w, "tensors", count);
        sfti_json_put_open(w, "worst", '[');
        for (size_t k = 0; k < count && k < LOST_WORST; k++) {
            sfti_json_open(w, '{');
            sfti_json_put_text(w, "name", sft_set_tensor_at(set, worst[k])->name);
            put_lost(conversion, w, worst[k]);
            sfti_json_close(w, '}');
        }
        sfti_json_close(w, ']');
        sfti_json_close(w, '}');
    }
    if (run->c->import) cli_put_import(run->c, w, run->input, run->c->import);
}

void convert_say_file(convert_run *run, const char *path, const sft_part *parts, size_t count) {
    cli_written_file file = cli_written_parts(path, parts, count, NULL, 0);
    cli_written written = { .input = run->input, .output = path, .files = &file, .file_count = 1,
                            .dtype = SFT_DTYPE_COUNT, .more = convert_put_more, .ctx = run };
    cli_say_written(run->c, &written);
}
