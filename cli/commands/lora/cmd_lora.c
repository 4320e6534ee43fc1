/* lora: what adapters hold, and models with adapters merged into them. Tests: tests/cli/lora. */
#include "commands/commands.h"
#include "commands/lora/lora.h"
#include "support/hints.h"
#include "support/remote.h"

#include <string.h>

/* A verb: its operands, and how they are called. */
static const struct lora_verb {
    const char *name;
    size_t least;
    const char *operands;
    bool writes;
    void (*run)(cli *c, char **operands, size_t count);
} verbs[] = {
    { "info", 1, "IN", false, lora_info },
    { "merge", 2, "MODEL and ADAPTER...", true, lora_merge },
    { "resize", 1, "IN", true, lora_resize },
    { "stack", 1, "ADAPTER...", true, lora_stack },
    { "extract", 2, "TUNED and BASE", true, lora_extract },
    { "simplify", 1, "IN", true, lora_simplify },
    { "convert", 1, "IN", true, lora_convert },
};

static sft_code check_options(const cli_settings *set, const char *verb, sft_error *err) {
    static const char ranked[] = "resize stack extract simplify";
    const cli_verb_option rows[] = {
        { set->dora != SFTI_DORA_EXACT, "dora", "merge" },
        { set->stochastic != NULL, "stochastic", "merge" },
        { set->blocks.count > 0, "blocks", "merge" },
        { set->rank != NULL, "rank", ranked },
        { set->conv_rank != NULL, "conv-rank", ranked },
        { set->sv_ratio != NULL, "sv-ratio", ranked },
        { set->sv_fro != NULL, "sv-fro", ranked },
        { set->sv_cumulative != NULL, "sv-cumulative", ranked },
        { set->error != NULL, "error", ranked },
        { set->compat != 0, "compat", ranked },
        { set->dtype != NULL, "dtype", ranked },
        { set->min_diff != NULL, "min-diff", "extract" },
        { set->clamp_quantile != NULL, "clamp-quantile", "extract" },
        { set->norms != 0, "norms", "extract" },
        { set->to != 0, "to", "convert extract stack" },
        { set->model != NULL, "model", "convert simplify stack" },
        { set->architecture != NULL, "architecture", "convert stack" },
        { set->spectrum != 0, "spectrum", "info" },
        { set->threads != NULL, "threads", "merge resize stack extract simplify" },
    };
    return cli_verb_options(rows, SFTI_COUNT(rows), verb, err);
}

static void run_lora(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    const struct lora_verb *verb = NULL;
    sft_code code = SFT_OK;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(operands[0], verbs[i].name) == 0) verb = &verbs[i];
    if (!verb)
        code = cli_usage_hint(&err, CLI_HINT_HELP_LORA,
                              "expected info, merge, resize, stack, extract, simplify or "
                              "convert, found \"%s\"", operands[0]);
    else if (count <= verb->least)
        code = cli_usage_hint(&err, CLI_HINT_HELP_LORA, "expected %s, found %s", verb->operands,
                              count > 1 ? "only one" : "none");
    else if (!verb->writes && c->set.output)
        code = cli_usage_error(&err, "expected -o with a verb that writes, found %s", verb->name);
    else
        code = check_options(&c->set, verb->name, &err);
    char *model = (char *)(uintptr_t)c->set.model;
    if (!code)
        code = cli_remote_take(c, operands + 1, count - 1,
                               verb->writes ? CLI_URLS_COPY : CLI_URLS_ALL, "lora", &err);
    if (!code && model) code = cli_remote_take(c, &model, 1, CLI_URLS_ALL, "lora", &err);
    c->set.model = model;
    if (code) cli_fail_usage(c, &err);
    else verb->run(c, operands + 1, count - 1);
}

const cli_command cli_lora_command = {
    "lora", "info IN...|merge MODEL ADAPTER[:STRENGTH]... -o OUT|resize IN -o OUT|"
            "stack ADAPTER[:STRENGTH]... -o OUT|extract TUNED BASE -o OUT|"
            "simplify IN [--model M] -o OUT|convert IN -o OUT --to FORMAT",
    "describe adapters; merge, extract, resize, stack, rename",
    "info lists the modules of an adapter by groups of layers: method, rank, alpha and the norm of "
    "what they add, which is computed from the factors; --spectrum adds the singular values, as "
    "bars of the group's mean, each to its layer's greatest.\n"
    "merge writes MODEL with the adapters merged into it, in the order given, each at its STRENGTH "
    "(1 without it; what follows the last colon is one if it is a number and no file has the whole "
    "name). LoRA, LoCon (Tucker too), LoHa, LoKr, GLoRA, OFT, BOFT, (IA)^3, full differences, "
    "norms and DoRA are merged, as kohya, LyCORIS, PEFT, diffusers and ComfyUI write them; "
    "docs/adapters.md has the formulas, and what other programs do. Layers are found by the names "
    "that the model's tensors have in every layout that is known, fused ones by rows. Sums are "
    "computed in F32 and rounded once, to the dtype of the tensor; all other tensors are copied. "
    "NaN and values that the dtype cannot hold are errors.\n"
    "A module that the model has no tensor for is named, and nothing is written, unless "
    "--ignore-unmatched is given. A warning tells of an adapter that was made for another model. "
    "A quantised tensor is changed by its values, which are quantised again in its own layout, "
    "with new scales, if convert --quantize writes that; another layout is an error. Plain FP8 has "
    "no scales: a warning tells how much of the change was lost to rounding, which --stochastic "
    "keeps on average.\n"
    "--blocks takes vectors as block weights are known by: the text encoders, then of 26 numbers "
    "IN00 to IN11, M00, OUT00 to OUT11; of 20 IN00 to IN08, M00, OUT00 to OUT08 (LoCon of SDXL); "
    "of 17 IN01, 02, 04, 05, 07, 08, M00, OUT03 to OUT11 (SD 1); of 12 IN04, 05, 07, 08, M00, "
    "OUT00 to OUT05 (SDXL). Blocks that a vector lacks keep the strength. Of GLOB=NUMBER the first "
    "that matches a tensor's name counts.\n"
    "No alpha counts as the rank, an alpha of 0 as no effect (of DoRA but that of its "
    "magnitudes). Of PEFT, adapter_config.json is read "
    "beside adapter_model.safetensors.\n"
    "resize gives each LoRA module the best factors of a lower rank: --rank at most N, or as many "
    "as --sv-ratio, --sv-fro, --sv-cumulative or --error ask for, with --rank as their limit. The "
    "product is never formed; names and all other tensors stay.\n"
    "stack adds up adapters, each at its STRENGTH: exactly, by joining the factors, or the best of "
    "the rank that the same options ask for. Layers are found by their names; --to gives adapters "
    "of different programs the names of one first, as convert does (kohya with --model or "
    "--architecture alone).\n"
    "extract takes the difference of two models apart into a LoRA, layer by layer, by a randomised "
    "range finder; linear layers, with --conv-rank convolutions with kernels too.\n"
    "simplify makes a plain LoRA of LoHa, LoKr, GLoRA, OFT, BOFT, (IA)^3, full differences and "
    "DoRA, and tells the error of each layer; --rank exact refuses any. Methods that change a "
    "layer by its own weight need --model.\n"
    "These four round once, to the dtype that the factors had, and tell the error that is left "
    "out, as a part of the change's Frobenius norm, before that rounding.\n"
    "The header of OUT records the recipe: names, strengths and SHA-256 of the adapters "
    "(sft_lora_merge, modelspec.merged_from). Digests of the old data are dropped. A model in "
    "several files becomes one file if OUT ends in .safetensors or .sft; otherwise OUT is a new or "
    "empty folder for its shards and their index. OUT is written atomically.\n"
    "convert writes an adapter under the names of another program, by the maps of docs/layouts.md; "
    "names are looked up in the layout of its model, which --architecture or --model tells where "
    "the adapter does not. Where the other layout divides a layer, up is cut by rows and down "
    "repeated; where it fuses several, they are stacked, which the way back undoes, bit for bit. "
    "Different alphas of layers that are fused go into the matrices, which is reported. --to peft "
    "writes adapter_config.json beside OUT, called adapter_model.safetensors; --to diffusers "
    "has it in the header.",
    CLI_EXAMPLES(
        { "safetensors lora info style.safetensors", "methods, ranks, alphas, norms" },
        { "safetensors lora merge sdxl.safetensors style.safetensors:0.8 -o styled.safetensors",
          "a LoRA at strength 0.8" },
        { "safetensors lora merge flux.safetensors a.safetensors b.safetensors:-0.5 -o "
          "both.safetensors",
          "two, one of them taken away" },
        { "safetensors lora merge model-folder peft-folder -o merged/",
          "shards, and the folder of PEFT" },
        { "safetensors lora merge sdxl.safetensors style.safetensors -o x.safetensors --dry-run",
          "do they fit?" },
        { "safetensors lora resize style.safetensors -o small.safetensors --rank 8 --error 0.05",
          "rank 8 at most, less where 5 % of a layer's change may go" },
        { "safetensors lora stack a.safetensors:0.7 b.safetensors:0.3 -o both.safetensors",
          "two adapters as one" },
        { "safetensors lora extract tuned.safetensors base.safetensors -o lora.safetensors "
          "--rank 32",
          "what a fine-tuning changed" },
        { "safetensors lora simplify lokr.safetensors -o lora.safetensors --rank 16",
          "for programs that read LoRA alone" },
        { "safetensors lora convert kohya.safetensors -o peft.safetensors --to diffusers",
          "names of diffusers, fused layers divided" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "architecture", "ID", architecture,
          "convert, stack: what model the adapters are for, where they do not tell"),
        CLI_ON(0, "ignore-unmatched", ignore_unmatched,
          "leave out modules and tensors of adapters that the model has no tensor for, or whose "
          "other names are not known"),
        { 0, "dora", "exact|comfy", CLI_CHOICE, SFTI_DORA_EXACT, offsetof(cli_settings, dora),
          "merge: the norm of DoRA: of the changed weight (exact, default) or, for rows, of that "
          "of the model (comfy)" },
        CLI_TAKES(0, "stochastic", "SEED", stochastic,
          "merge: round up or down at random, so that small changes are kept on average; the same "
          "SEED gives the same bytes"),
        CLI_TAKES_MANY(0, "blocks", "LIST", blocks,
          "merge: strengths by block, times STRENGTH: 12, 17, 20 or 26 numbers for a U-Net, or "
          "GLOB=NUMBER,... for tensors of MODEL; once for all adapters, or once for each")),
      CLI_OPTIONS(
        CLI_TAKES(0, "rank", "N", rank,
          "the rank, or the most that a rule gives; of simplify also \"exact\""),
        CLI_TAKES(0, "conv-rank", "N", conv_rank, "the same of convolutions with a kernel"),
        CLI_TAKES(0, "sv-ratio", "X", sv_ratio,
          "keep singular values above the greatest / X"),
        CLI_TAKES(0, "sv-fro", "X", sv_fro,
          "keep the fewest that have X of the Frobenius norm, X up to 1"),
        CLI_TAKES(0, "sv-cumulative", "X", sv_cumulative,
          "keep the fewest whose sum is X of that of all"),
        CLI_TAKES(0, "error", "X", error,
          "keep the fewest that leave out at most X of the Frobenius norm"),
        { 0, "compat", "none|kohya", CLI_CHOICE, 0, offsetof(cli_settings, compat),
          "kohya: as its scripts count, one singular value more than the rule says; all of them "
          "are in the up matrix" },
        CLI_TAKES(0, "min-diff", "X", min_diff,
          "extract: leave out layers of which no element differs by more than X"),
        CLI_TAKES(0, "clamp-quantile", "X", clamp_quantile,
          "extract: clamp both factors at this quantile of their values, as sd-scripts does by "
          "default (0.99); it costs error, which is reported"),
        CLI_ON(0, "norms", norms,
          "extract: write the differences of norms and biases, too (.diff, .diff_b)"),
        { 0, "to", "kohya|peft|comfy|diffusers", CLI_CHOICE, 1, offsetof(cli_settings, to),
          "convert, extract, stack: how layers are named; default of extract: peft for language "
          "models, else kohya; of stack: as they are" },
        CLI_TAKES(0, "model", "MODEL", model,
          "simplify: the model that the adapter is for; convert, stack: the same, where adapters "
          "do not tell"),
        CLI_TAKES('d', "dtype", "DTYPE", dtype,
          "of factors that are computed: F32, F16 or BF16; default: as they, or the model, had"),
        CLI_ON(0, "spectrum", spectrum, "info: tell singular values"),
        CLI_FILES_FROM,
        CLI_ON('v', "verbose", verbose, "tell every module, and all that is not matched"),
        CLI_TAKES(0, "threads", "N", threads,
          "merge, resize, stack, extract, simplify: N threads compute; default: one for each "
          "processor")),
      cli_output_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "OUT was written; info: all were reported",
      "an adapter does not fit the model, has modules that it has no tensors for, or is of a "
      "method that cannot be merged; nothing was written",
      "an input could not be read, OUT could not be written, or a usage error" },
    1, SIZE_MAX, run_lora, CLI_URLS_OWN,
};
