/* Keys of producers: every row of data/keys is read, by a take that there is; rows in full. */
#include "unit/records_case.h"

#include "label/header/header.h"
#include "label/reads.h"
#include "label/sidecars/sidecars.h"

#include <stdio.h>

static const sfti_keys *const all[] = {
    &sfti_kohya_keys, &sfti_modelspec_keys, &sfti_trainer_keys, &sfti_ssmd_keys, &sfti_merge_keys,
    &sfti_recipe_keys, &sfti_graph_keys, &sfti_gguf_keys, &sfti_generic_keys, &sfti_a1111_keys,
    &sfti_tips_keys, &sfti_lora_manager_keys, &sfti_matrix_keys, &sfti_swarm_keys,
    &sfti_rgthree_keys, &sfti_recipe_file_keys, &sfti_civitai_model_keys,
    &sfti_civitai_version_keys, &sfti_civitai_choice_keys, &sfti_readme_keys, &sfti_json_keys,
    &sfti_adapter_config_keys, &sfti_quantiser_keys, &sfti_header_quantiser_keys,
    &sfti_dataset_keys, &sfti_dirs_keys, &sfti_reg_dirs_keys, &sfti_bucket_keys,
    &sfti_merge_model_keys, &sfti_prompt_keys, &sfti_workflow_keys, &sfti_config_keys,
    &sfti_png_keys, &sfti_own_keys, &sfti_merge_made_keys,
};

/* A row that cannot be read is left out, and room that is too small leaves texts empty. */
static void every_row(void **state) {
    const sfti_records *records = sfti_records_built_in();
    size_t lists = 0;
    (void)state;
    sfti_header_keys_ready();
    sfti_keys_read(&sfti_png_keys, NULL);
    sfti_sidecar_keys_ready();
    for (size_t i = 0; i < SFTI_COUNT(all); i++) {
        const sfti_record *of = sfti_record_find(records, SFTI_KEYS, s(all[i]->id));
        if (!of || of->count == 0) fail_msg("no keys %s", all[i]->id);
        size_t at = 0;
        for (const sfti_record_row *row = NULL;
             (row = sfti_record_row_of(records, of, SFTI_KEY, row)); at++) {
            const sfti_row *read = &all[i]->made->rows[at];
            if (at == all[i]->made->row_count || !sfti_is(sfti_row_word(row), read->pattern))
                fail_msg("keys %s: row %.*s", all[i]->id, (int)row->len, sfti_row_text(row).data);
            assert_non_null(read->take);
            assert_true(read->trust >= 0 && read->trust <= 100);
            assert_true(!read->word || *read->word);
        }
        assert_int_equal(at, all[i]->made->row_count);
    }
    for (size_t i = 0; i < sfti_record_count(records); i++)
        lists += sfti_record_at(records, i)->type == SFTI_KEYS;
    assert_int_equal(lists, SFTI_COUNT(all));
}

/* No key of a row is passed over, and few others are taken for one. */
static void keys_that_tell(void **state) {
    const sfti_records *records = sfti_records_built_in();
    size_t taken = 0;
    char key[16];
    (void)state;
    for (const sfti_record_row *row = sfti_rows(records, SFTI_KEY, 0); row;
         row = sfti_rows_next(records, row)) {
        sft_span word = sfti_row_word(row), rest = word, first;
        if (word.len == 0 || *word.data == '/') continue;
        assert_true(sfti_records_may_have_key(word));
        if (sfti_next_piece(&rest, ':', &first)) assert_true(sfti_records_may_have_key(first));
    }
    assert_true(sfti_header_reads(s("ss_seed")));
    assert_true(sfti_header_reads(s("modelspec.title")));
    assert_true(sfti_header_reads(s("Activation Text")));
    assert_true(sfti_header_reads(s("<s1>")));
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        taken += sfti_header_reads(s(key));
    }
    assert_true(taken < 100 || sfti_header_reads(s("none of ours")));
}

static const sfti_row *row_at(const sfti_keys *keys, const char *pattern) {
    for (size_t i = 0; i < keys->made->row_count; i++)
        if (strcmp(keys->made->rows[i].pattern, pattern) == 0) return &keys->made->rows[i];
    fail_msg("no row %s", pattern);
    return NULL;
}

static void some_rows(void **state) {
    (void)state;
    const sfti_row *row = row_at(&sfti_modelspec_keys, "description");
    assert_true(row->take == sfti_take_prose && row->field == SFT_FACT_DESCRIPTION);
    assert_int_equal(row->trust, 85);
    assert_string_equal(row->word, "words");
    row = row_at(&sfti_kohya_keys, "ss_new_vae_hash");
    assert_int_equal(row->field, TRAIN_VAE_SHA256);
    assert_int_equal(row->trust, 64);
    assert_null(row->word);
    assert_int_equal(row_at(&sfti_kohya_keys, "ss_network_alpha")->field, 1);
    assert_int_equal(row_at(&sfti_kohya_keys, "ss_sd_model_name")->field, TRAIN_BASE_FILE);
    assert_string_equal(row_at(&sfti_generic_keys, "comment")->word, "comment");
    assert_int_equal(row_at(&sfti_generic_keys, "comment")->field, 0);
    assert_string_equal(row_at(&sfti_a1111_keys, "/description")->word, "plain");
    assert_non_null(row_at(&sfti_a1111_keys, "/activation text"));
    assert_int_equal(row_at(&sfti_civitai_version_keys, "/images/*/meta/steps")->field, 3);
    assert_string_equal(row_at(&sfti_recipe_keys, "")->pattern, "");
    row = row_at(&sfti_kohya_keys, "ss_tag_frequency");
    assert_true(row->field == 1 && strcmp(row->word, "folder-names") == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(keys_that_tell),
        cmocka_unit_test(some_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
