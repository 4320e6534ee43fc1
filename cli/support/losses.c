/* What is told of values that a result's dtype cannot hold. Tests: tests/cli/convert, merge. */
#include "support/output.h"

#include "support/words.h"

#include <inttypes.h>

#define LOST_WORST 3

static double lost_share(const cli_losses *losses, size_t i) {
    cli_loss loss = losses->at(losses->ctx, i);
    uint64_t lost = loss.zero + loss.infinite + loss.saturated;
    return loss.values > 0 ? (double)lost / (double)loss.values : 0; /* lost ones are among them */
}

/* How many tensors lost more than a hundredth of their values; the worst of them, worst first. */
static size_t find_lost(const cli_losses *losses, size_t worst[LOST_WORST]) {
    size_t count = 0;
    for (size_t i = 0; i < losses->count; i++) {
        double share = lost_share(losses, i);
        if (share <= 0.01) continue;
        size_t at = count < LOST_WORST ? count : LOST_WORST;
        for (; at > 0 && lost_share(losses, worst[at - 1]) < share; at--)
            if (at < LOST_WORST) worst[at] = worst[at - 1];
        if (at < LOST_WORST) worst[at] = i;
        count++;
    }
    return count;
}

static void say_lost(cli_out *err, uint64_t lost, uint64_t of, const char *what) {
    if (lost > 0) cli_printf(err, ", %" PRIu64 " of %" PRIu64 " became %s", lost, of, what);
}

void cli_warn_lost(cli *c, const char *path, const char *dtype, const cli_losses *losses) {
    cli_out *err = &c->err;
    size_t worst[LOST_WORST], count = c->set.dry_run ? 0 : find_lost(losses, worst);
    if (count == 0) return;
    cli_flush(&c->out);
    cli_text(err, "safetensors: ");
    cli_path(err, path, ": %zu tensor%s lost more than 1 %% of the values in %s: ", count,
             count == 1 ? "" : "s", dtype);
    for (size_t k = 0; k < count && k < LOST_WORST; k++) {
        cli_loss loss = losses->at(losses->ctx, worst[k]);
        if (k > 0) cli_text(err, "; ");
        cli_quoted(err, losses->name(losses->ctx, worst[k]));
        say_lost(err, loss.zero, loss.values, "zero");
        say_lost(err, loss.infinite, loss.values, losses->as_nan ? "NaN" : "infinite");
        say_lost(err, loss.saturated, loss.values, "saturated");
    }
    cli_text(err, count > LOST_WORST ? "; ...\n" : "\n");
    cli_flush(err);
}

static void put_loss(const cli_losses *losses, sfti_json_writer *w, size_t i) {
    cli_loss loss = losses->at(losses->ctx, i);
    sfti_json_put_uint(w, "values", loss.values);
    sfti_json_put_uint(w, "zero", loss.zero);
    sfti_json_put_uint(w, "infinite", loss.infinite);
    sfti_json_put_uint(w, "saturated", loss.saturated);
}

void cli_put_lost(const cli_losses *losses, sfti_json_writer *w) {
    size_t worst[LOST_WORST], count = find_lost(losses, worst);
    sfti_json_put_open(w, "lost", '{');
    put_loss(losses, w, SIZE_MAX);
    sfti_json_put_uint(w, "tensors", count);
    sfti_json_put_open(w, "worst", '[');
    for (size_t k = 0; k < count && k < LOST_WORST; k++) {
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", losses->name(losses->ctx, worst[k]));
        put_loss(losses, w, worst[k]);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_close(w, '}');
}
