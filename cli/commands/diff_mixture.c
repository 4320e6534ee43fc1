/* diff --merge-of: which mixture of other models a model is. Tests: tests/cli/diff. */
#include "base/number.h"
#include "commands/commands.h"
#include "merge/merge.h"
#include "support/models.h"
#include "support/print.h"

#include <string.h>

typedef struct mixture_run {
    cli *c;
    sfti_arena arena;
    cli_inputs inputs[SFTI_MERGE_MODELS];
    sft_set *sets[SFTI_MERGE_MODELS];
    sfti_merge_model models[SFTI_MERGE_MODELS];
    size_t count;
    sfti_mixture mixture;
} mixture_run;

static bool is_known(double value) { return value == value; }

static void print_block(const mixture_run *run, const sft_mixture_block *block, bool all) {
    cli *c = run->c;
    cli_text(&c->out, all ? "all" : "");
    if (!all && block->name.len == 0) cli_text(&c->out, "(no layer)");
    else if (!all) cli_escaped(&c->out, block->name);
    for (size_t m = 0; m + 1 < run->count; m++) {
        double weight = block->weights[m];
        bool none = weight < 1e-9 && weight > -1e-9;
        if (is_known(weight)) cli_printf(&c->out, "\t%.6g", none ? 0 : weight);
        else cli_text(&c->out, "\t?");
    }
    cli_printf(&c->out, "\t%.3g\t%.3g\t%.3g\t%s\n", block->change, block->residual, block->rounding,
               block->fits ? "yes" : "no");
}

static void put_block(const mixture_run *run, sfti_json_writer *w,
                      const sft_mixture_block *block) {
    sfti_json_put_uint(w, "tensors", block->tensors);
    sfti_json_put_uint(w, "elements", block->elements);
    sfti_json_put_open(w, "weights", '[');
    for (size_t m = 0; m + 1 < run->count; m++) {
        char text[SFTI_DOUBLE_SIZE];
        if (!is_known(block->weights[m])) sfti_json_null(w);
        else sfti_json_raw(w, (sft_span){ text, sfti_double_text(block->weights[m], text) });
    }
    sfti_json_close(w, ']');
    sfti_json_put_double(w, "change", block->change);
    sfti_json_put_double(w, "residual", block->residual);
    sfti_json_put_double(w, "rounding", block->rounding);
    sfti_json_put_bool(w, "fits", block->fits);
}

/* Whether it is one mixture, or one of each block. */
static bool fit_blocks(const sfti_mixture *mixture) {
    bool fits = true;
    for (size_t i = 0; i + 1 < mixture->count; i++) fits = fits && mixture->blocks[i].fits;
    return fits;
}

static void tell(mixture_run *run, char **operands) {
    cli *c = run->c;
    const sfti_mixture *mixture = &run->mixture;
    const sft_mixture_block *all = &mixture->blocks[mixture->count - 1];
    bool blocks = fit_blocks(mixture);
    if (cli_is_json(c)) {
        cli_object object;
        sfti_json_writer *w = cli_object_begin(&object, c, operands[0]);
        sfti_json_put_open(w, "models", '[');
        for (size_t m = 1; m < run->count; m++) sfti_json_cstr(w, operands[m]);
        sfti_json_close(w, ']');
        sfti_json_put_bool(w, "mixture", all->fits);
        sfti_json_put_bool(w, "mixture_by_block", blocks);
        sfti_json_put_uint(w, "left_out", mixture->left_out);
        put_block(run, w, all);
        sfti_json_put_open(w, "blocks", '[');
        for (size_t i = 0; i + 1 < mixture->count; i++) {
            sfti_json_open(w, '{');
            sfti_json_put_text(w, "name", mixture->blocks[i].name);
            put_block(run, w, &mixture->blocks[i]);
            sfti_json_close(w, '}');
        }
        sfti_json_close(w, ']');
        cli_object_end(&object);
    } else {
        cli_text(&c->out, "block");
        for (size_t m = 1; m < run->count; m++) {
            cli_text(&c->out, "\t");
            cli_escaped(&c->out, sft_span_cstr(operands[m]));
        }
        cli_text(&c->out, "\tchange\tresidual\trounding\tfits\n");
        for (size_t i = 0; i + 1 < mixture->count && (c->set.verbose || !all->fits); i++)
            print_block(run, &mixture->blocks[i], false);
        print_block(run, all, true);
        if (mixture->left_out)
            cli_printf(&c->out, "%zu tensor%s not looked at: not in all models, or no floats\n",
                       mixture->left_out, mixture->left_out == 1 ? "" : "s");
        cli_text(&c->out, all->fits ? "one mixture explains it, but for rounding\n"
                          : blocks ? "a mixture in each block explains it, but for rounding\n"
                                   : "no mixture of these models\n");
    }
    if (!all->fits && !blocks) cli_status(c, CLI_NO);
}

void cli_diff_mixture(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    mixture_run run = { .c = c, .arena = { .alloc = c->alloc } };
    sft_code code = SFT_OK;
    size_t who = 0;
    c->imports_exact = true;
    if (count < 2 || count > SFTI_MERGE_MODELS) {
        (void)cli_usage_error(&err, "expected RESULT and 1 to %d models for --merge-of, found %zu",
                              SFTI_MERGE_MODELS - 1, count);
        cli_fail_usage(c, &err);
        return;
    }
    for (size_t i = 0; !code && i < count; i++) {
        const cli_input *input;
        who = i;
        code = cli_open_operand(c, operands[i], &run.inputs[i], &input, &run.sets[i], &err);
        run.count = i + 1;
        if (!code)
            code = sfti_merge_model_open(&run.sets[i], NULL, input->path, c->open.files, &run.arena,
                                         &run.models[i], &err);
        if (!code && i > 0)
            code = sfti_merge_model_rename(&run.sets[i], run.models[0].set, &run.arena,
                                           &run.models[i], &err);
    }
    if (!code) {
        cli_progress progress;
        sft_job job = cli_progress_begin(&progress, c, operands[0]);
        code = sfti_mixture_new(&run.models[0], run.models + 1, count - 1, &job, &c->alloc,
                                &run.mixture, &who, &err);
        cli_progress_end(&progress);
        if (!code && run.mixture.blocks[run.mixture.count - 1].elements == 0)
            code = sfti_fail(&err, SFT_TENSOR_NOT_FOUND,
                             "expected tensors that all models have, found none");
    }
    if (!code) tell(&run, operands);
    else cli_fail_input(c, operands[who < count ? who : 0], &err);
    sfti_mixture_free(&run.mixture);
    for (size_t i = 0; i < run.count; i++) {
        sft_set_close(run.sets[i]);
        cli_inputs_free(&run.inputs[i]);
    }
    sfti_arena_free(&run.arena);
}
