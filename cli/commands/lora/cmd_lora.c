/* lora: what adapters hold, and models with adapters merged into them. Tests: tests/cli/lora. */
#include "commands/commands.h"
#include "commands/lora/lora.h"
#include "support/hints.h"
#include "support/output.h"
#include "support/remote.h"

#include <string.h>

static void run_lora(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    bool merges = strcmp(operands[0], "merge") == 0, tells = strcmp(operands[0], "info") == 0;
    bool converts = strcmp(operands[0], "convert") == 0;
    sft_code code = SFT_OK;
    if (!merges && !tells && !converts)
        code = cli_usage_hint(&err, CLI_HINT_HELP_LORA,
                              "expected info, merge or convert, found another word");
    else if (count < (merges ? 3u : 2u))
        code = cli_usage_hint(&err, CLI_HINT_HELP_LORA, "expected %s",
                              merges ? "MODEL and ADAPTER..., found less" : "IN, found none");
    else if (tells && c->set.output)
        code = cli_usage_error(&err, "expected -o with merge only, found info");
    else if (converts && count > 2)
        code = cli_usage_error(&err, "expected one adapter to convert, found %zu", count - 1);
    if (code) cli_fail_usage(c, &err);
    else if (converts) lora_convert(c, operands + 1, count - 1);
    else if (merges) lora_merge(c, operands + 1, count - 1);
    else lora_info(c, operands + 1, count - 1);
}

const cli_command cli_lora_command = {
    "lora", "info IN...|merge MODEL ADAPTER[:STRENGTH]... -o OUT|convert IN -o OUT --to FORMAT",
    "tell what adapters hold, merge them into a model, rename them",
    "info tells the modules of an adapter by groups of layers: method, rank, alpha and the norm of "
    "what they add, which is computed from the factors.\n"
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
    "No alpha counts as the rank, an alpha of 0 as no effect. Of PEFT, adapter_config.json is read "
    "beside adapter_model.safetensors.\n"
    "The header of OUT records the recipe: names, strengths and SHA-256 of the adapters "
    "(sft_lora_merge, modelspec.merged_from). Digests of the old data are dropped. A model in "
    "several files becomes one file if OUT ends in .safetensors or .sft; otherwise OUT is a new or "
    "empty folder for its shards and their index. OUT is written atomically.\n"
    "convert writes an adapter under the names of another program, by the maps of docs/layouts.md; "
    "names are looked up in the layout of its model, which --architecture or --model tells where "
    "the adapter does not. Where the other layout divides a layer, up is cut by rows and down "
    "repeated; where it fuses several, they are stacked, which the way back undoes, bit for bit. "
    "Different alphas of layers that are fused go into the matrices, which is told. --to peft "
    "writes adapter_config.json beside OUT, --to diffusers has it in the header.",
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
        { "safetensors lora convert kohya.safetensors -o peft.safetensors --to diffusers",
          "names of diffusers, fused layers divided" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "to", "FORMAT", to, "convert: names of kohya, peft, diffusers or comfy"),
        CLI_TAKES(0, "architecture", "ID", architecture,
          "convert: what model the adapter is for, where it does not tell"),
        CLI_TAKES(0, "model", "MODEL", model, "convert: the model that it is for, to the same end"),
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
          "GLOB=NUMBER,... for tensors of MODEL; once for all adapters, or once for each"),
        CLI_TAKES(0, "threads", "N", threads,
          "merge: N threads compute while one writes; default one for each processor")),
      cli_output_options, cli_writing_options, cli_json_options, cli_reading_options,
      cli_remote_options, cli_network_options, cli_common_options },
    { "OUT was written; info: all were told",
      "an adapter does not fit the model, has modules that it has no tensors for, or is of a "
      "method that cannot be merged; nothing was written",
      "an input could not be read, OUT could not be written, or a usage error" },
    1, SIZE_MAX, run_lora, CLI_URLS_COPY,
};
