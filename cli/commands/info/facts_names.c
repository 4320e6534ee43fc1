/* What other programs call our ids: rows "says" with "write". Only what follows for certain: an
 * SDXL file may be Pony's, so that no CivitAI label follows from its tensors.
 * tests/cli/info/save-as-names.txt reads each back. */
#include "commands/info/facts.h"

#include "support/records.h"
#include "support/models.h"
#include "support/words.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* A value for finding rows: it is not written itself. */
static sft_span peek(cli_saving *saving, const char *fact) {
    size_t count = saving->count;
    sft_span text = cli_known_text(saving, fact);
    saving->count = count;
    return text;
}

static sft_span written(cli_saving *saving, sfti_producer producer) {
    const sfti_records *records = cli_records();
    sft_span architecture = peek(saving, "model.architecture");
    const sfti_record *of = sfti_record_find(records, SFTI_MODEL, architecture);
    return of ? sfti_written(records, of, producer, peek(saving, "model.variant"),
                             peek(saving, "model.prediction_type"))
              : (sft_span){ "", 0 };
}

/* ── CivitAI ── */

/* A label that is told, even if it is not trusted, is more than what the tensors show. */
sft_span cli_civitai_base(cli_saving *saving) {
    sft_span label = cli_known_text(saving, "model.base_model");
    const sft_node *told = sft_node_find(saving->root, "model.base_model");
    if (label.len > 0 || (told && told->type != SFT_NODE_NULL)) return label;
    label = written(saving, SFTI_SAYS_CIVITAI);
    if (label.len > 0) saving->count++;
    return label;
}

sft_span cli_civitai_type(cli_saving *saving) {
    sft_span kind = peek(saving, "model.kind"), none = { "", 0 };
    const sft_node *adapter = sft_node_get(saving->root, "adapter");
    if (cli_is(kind, "adapter")) {
        if (!cli_is(sft_node_text(adapter, "type"), "lora")) return sft_span_cstr("LoCon");
        return sft_span_cstr(sft_node_true(adapter, "dora") ? "DoRA" : "LORA");
    }
    const sfti_records *records = cli_records();
    const sfti_record *of = sfti_record_find(records, SFTI_KIND, kind);
    return of ? sfti_written(records, of, SFTI_SAYS_CIVITAI, none, none) : none;
}

/* ── A1111 ── */

sft_span cli_a1111_version(cli_saving *saving) {
    sft_span version = written(saving, SFTI_SAYS_A1111), none = { "", 0 };
    return version.len > 0 && cli_known(saving, "model.architecture") ? version : none;
}

/* ── ModelSpec ── */

/* An empty suffix: none; no row: the spec has no id for such a file. */
static const char *const spec_suffixes[][2] = {
    { "checkpoint", "" }, { "diffusion_model", "" }, { "adapter", "/lora" },
    { "embedding", "/textual-inversion" }, { "controlnet", "/controlnet" },
    { "control_lora", "/control-lora" },
};

sft_span cli_modelspec_architecture(cli_saving *saving) {
    sft_span none = { "", 0 }, kind = peek(saving, "model.kind");
    sft_span id = written(saving, SFTI_SAYS_MODELSPEC);
    const char *suffix = NULL;
    for (size_t i = 0; i < COUNT(spec_suffixes); i++)
        if (cli_is(kind, spec_suffixes[i][0])) suffix = spec_suffixes[i][1];
    if (id.len == 0 || !suffix) return none;
    char *text = sfti_arena_join(&saving->arena, id, sft_span_cstr(suffix));
    saving->is_full = saving->is_full || !text;
    if (!text) return none;
    saving->count++;
    return sft_span_cstr(text);
}

/* How its tensors are named. */
const char *cli_modelspec_implementation(cli_saving *saving) {
    static const char prefix[] = "model.diffusion_model.";
    sft_span architecture = peek(saving, "model.architecture");
    const sft_node *evidence = cli_first(saving->root, "model.evidence");
    if (cli_is(sft_node_text(saving->root, "adapter.format"), "diffusers")) return "diffusers";
    const sfti_records *records = cli_records();
    const sfti_record *of = sfti_record_find(records, SFTI_MODEL, architecture);
    bool is_sgm = false;
    for (; evidence; evidence = evidence->next)
        is_sgm = is_sgm || (evidence->text.len > sizeof prefix
                            && memcmp(evidence->text.data, prefix, sizeof prefix - 1) == 0);
    return is_sgm && of && sfti_record_row_of(records, of, SFTI_SGM, NULL) ? "sgm" : NULL;
}
