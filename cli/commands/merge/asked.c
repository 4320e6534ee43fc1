/* What options and operands of merge ask for, as a recipe. */
#include "commands/merge/merge.h"
#include "base/glob.h"
#include "os/path.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/remote.h"
#include "support/words.h"

#include <string.h>

static sft_code ask_by_options(merge_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    sfti_merge_recipe *recipe = &run->recipe;
    sft_code code = SFT_OK;
    recipe->base = SIZE_MAX;
    recipe->weights_required = true;
    recipe->method = sfti_merge_method_of(sft_span_cstr(c->set.method));
    if (!recipe->method) return sfti_merge_method_unknown(sft_span_cstr(c->set.method), err);
    if (c->set.base && recipe->method->base == SFTI_BASE_NONE)
        return cli_usage_error(err, "expected no --base for %s, whose models are equals, found "
                               "one", recipe->method->name);
    if (count + (c->set.base != NULL) > SFTI_MERGE_MODELS)
        return cli_usage_error(err, "expected at most %d models, found more", SFTI_MERGE_MODELS);
    for (size_t i = 0; !code && i < count; i++) {
        const char *number;
        double weight;
        code = cli_cut_number(c, operands[i], &number, &weight, err);
        run->paths[i] = operands[i];
        if (!code && number)
            code = sfti_merge_weight_add(recipe, &run->arena, (uint32_t)i, number, err);
    }
    recipe->count = count;
    if (c->set.base) {
        recipe->base = recipe->count;
        run->paths[recipe->count++] = sfti_arena_copy(&run->arena, c->set.base,
                                                      strlen(c->set.base));
        if (!run->paths[recipe->base]) return sfti_fail_memory(err, strlen(c->set.base));
    }
    for (int patterns = 1; !code && patterns >= 0; patterns--)
        for (size_t i = 0; !code && i < c->set.params.count; i++)
            code = sfti_merge_param_add(recipe, &run->arena, c->set.params.items[i], patterns != 0,
                                        err);
    if (!code) code = sfti_merge_weight_add(recipe, &run->arena, SFTI_MERGE_ALL, "1", err);
    if (code) return code;
    code = sfti_merge_recipe_settle(recipe, err);
    if (code && !c->set.base && recipe->method->base == SFTI_BASE_MUST)
        cli_hint(err, CLI_HINT_MERGE_BASE);
    return code;
}

/* The models of a recipe are where it says, seen from the recipe, unless operands name them in its
 * order. */
static sft_code ask_by_recipe(merge_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    run->blame = c->set.recipe;
    sft_code code = cli_read_file(c, c->set.recipe, SFTI_MERGE_RECIPE_MOST + 1, &run->text, err);
    if (!code)
        code = sfti_merge_recipe_read(cli_read_text(&run->text), &run->arena, &run->recipe, err);
    if (code) return code;
    if (count > 0 && count != run->recipe.count)
        return cli_usage_error(err, "expected no models beside --recipe, or all %zu that it names, "
                               "in its order, found %zu", run->recipe.count, count);
    for (size_t i = 0; i < run->recipe.count; i++) {
        sft_span name = run->recipe.models[i];
        char *path = sfti_arena_copy(&run->arena, name.data, name.len);
        bool beside = path && sfti_root_len(path) == 0 && !strstr(path, "://");
        if (beside) path = cli_join_path(&run->arena, cli_folder_of(c->set.recipe), path);
        if (path && count == 0)
            code = cli_remote_take(c, &path, 1, CLI_URLS_ALL, "--recipe", err);
        if (code) return code;
        run->paths[i] = count > 0 ? operands[i] : path;
        if (!run->paths[i]) return sfti_fail_memory(err, name.len);
    }
    return SFT_OK;
}

sft_code merge_asked(merge_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    uint64_t seed;
    int ways = (c->set.method != NULL) + (c->set.recipe != NULL) + (c->set.replay != NULL);
    run->recipe.settings.glob = sfti_glob_match;
    run->paths = sfti_arena_array(&run->arena, SFTI_MERGE_MODELS + 1, sizeof *run->paths);
    if (!run->paths) return sfti_fail_memory(err, SFTI_MERGE_MODELS * sizeof *run->paths);
    if (ways > 1)
        return cli_usage_error(err, "expected one of --method, --recipe and --replay, found "
                               "several");
    if (!c->set.method && (c->set.base || c->set.params.count > 0))
        return cli_usage_error(err, "expected --base and --param with --method only, found others");
    if (c->set.replay) return merge_replay(run, operands, count, err);
    sft_code code = c->set.recipe ? ask_by_recipe(run, operands, count, err)
                                  : ask_by_options(run, operands, count, err);
    if (code) return code;
    if (c->set.seed && !cli_parse_number(c->set.seed, UINT64_MAX, &seed))
        return cli_usage_error(err, "expected --seed of 0 to 18446744073709551615, found \"%s\"",
                               c->set.seed);
    if (c->set.seed) run->recipe.seed = seed;
    if (c->set.dtype) run->recipe.dtype = sft_span_cstr(c->set.dtype);
    if (c->set.ignore_missing) run->recipe.ignore_missing = true;
    return SFT_OK;
}
