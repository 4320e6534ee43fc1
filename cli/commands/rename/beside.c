/* What adapter_config.json and config.json tell of modules by their names, when these change.
 * Tests: tests/cli/rename/beside.txt. */
#include "adapter/adapter.h"
#include "commands/rename/rename.h"
#include "quant/beside.h"
#include "support/adapters.h"
#include "support/files.h"

/* The module that a factor is of; data NULL: the name is of none. */
static sft_span module_of_factor(sft_span factor) {
    static const char *const leaves[] = { "lora_", "hada_", "lokr_", "oft_", "ia3_" };
    for (size_t i = factor.len; i-- > 0;) {
        if (factor.data[i] != '.') continue;
        sft_span leaf = { factor.data + i + 1, factor.len - i - 1 };
        for (size_t k = 0; k < sizeof leaves / sizeof *leaves; k++)
            if (sfti_starts_with(leaf, leaves[k])) return (sft_span){ factor.data, i };
    }
    return (sft_span){ NULL, 0 };
}

static bool reads_alike(const sfti_lora *lora, sft_span old, sft_span now) {
    double alphas[2] = { 0, 0 };
    const sfti_lora_config *config = &lora->configs[0];
    bool tells = sfti_lora_config_alpha(config, old, &alphas[0]);
    if (!now.data) return !tells;
    return sfti_lora_config_alpha(config, now, &alphas[1]) == tells
        && !(alphas[0] < alphas[1] || alphas[0] > alphas[1])
        && sfti_lora_on_inputs(lora, old) == sfti_lora_on_inputs(lora, now);
}

static sft_code check_quantiser(cli *c, const char *path, const cli_rename_names *names,
                                sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    const sft_pair *torn = NULL;
    sft_code code = sfti_beside_follows(path, c->open.files, names->coded, names->coded_count,
                                        &arena, &torn, err);
    if (!code && torn)
        code = sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, torn->key,
                                "expected a new name of whose layer the quantization_config beside "
                                "the model tells the same, found \"%.*s\": take that file away "
                                "first, then change names in both", SFTI_CLIP(torn->value, 150));
    sfti_arena_free(&arena);
    return code;
}

static sft_code check_adapter(cli *c, const char *path, const cli_rename_names *names,
                              sft_error *err) {
    sfti_lora lora = { .arena = { .alloc = c->alloc } };
    sft_buffer text = { .alloc = c->alloc };
    sft_code code = cli_read_adapter_config(c, path, &text, err);
    /* By what cannot be read, nothing is computed. */
    bool read = !code && !sfti_lora_config_read(&lora, cli_read_text(&text), false, NULL)
             && !sfti_lora_config_work(&lora, names->tensors, NULL);
    for (size_t i = 0; read && !code && lora.config_count > 0 && i < names->tensors; i++) {
        sft_pair pair = names->pairs[i];
        sft_span old = module_of_factor(pair.key);
        if (!old.data || reads_alike(&lora, old, module_of_factor(pair.value))) continue;
        code = sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, pair.key,
                                "expected a new name of which " CLI_ADAPTER_CONFIG " beside the "
                                "adapter tells the same, found \"%.*s\": take that file away "
                                "first, then change names in both", SFTI_CLIP(pair.value, 150));
    }
    sft_buffer_free(&text);
    sfti_arena_free(&lora.arena);
    return code;
}

sft_code cli_rename_beside(cli *c, const char *path, const cli_rename_names *names,
                           sft_error *err) {
    if (names->tensors == 0 || (c->set.output && !cli_in_one_folder(c, path, c->set.output)))
        return SFT_OK;
    sft_code code = check_adapter(c, path, names, err);
    if (!code && names->coded_count > 0) code = check_quantiser(c, path, names, err);
    return code;
}
