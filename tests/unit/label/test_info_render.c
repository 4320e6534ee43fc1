/* The result object: every key there, values as docs/json-info.md says, nothing that harms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/digests.h"
#include "label/info.h"

static sft_set *set;
static sft_buffer file_bytes, json;

static void open_pairs(const sft_pair *pairs, size_t count) {
    sft_plan *plan;
    sft_writer *writer;
    sft_file *file;
    memset(&file_bytes, 0, sizeof file_bytes);
    memset(&json, 0, sizeof json);
    assert_int_equal(sft_plan_new(NULL, 0, pairs, count, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_writer_begin(plan, sft_sink_memory(&file_bytes), &writer, NULL), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_OK);
    sft_plan_free(plan);
    assert_int_equal(sft_open_memory(file_bytes.data, file_bytes.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
}

static sft_info *open_info(void) {
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    sft_info *info;
    options.header_only = true;
    assert_int_equal(sft_info_open(set, NULL, NULL, &options, &info, NULL), SFT_OK);
    return info;
}

static void render(sft_info *info, bool full, const char *computed) {
    sft_hashes hashes = digests_of(computed);
    assert_int_equal(sft_info_set_computed(info, hashes.asked, &hashes, NULL), SFT_OK);
    sft_sink sink = sft_sink_memory(&json);
    sft_buffer_free(&json);
    memset(&json, 0, sizeof json);
    sink = sft_sink_memory(&json);
    assert_int_equal(sft_info_json(info, "m", full, &sink, NULL), SFT_OK);
    assert_int_equal(sft_sink_write(&sink, json.len, "", 1, NULL), SFT_OK); /* a string now */
}

static void close_all(sft_info *info) {
    sft_info_close(info);
    sft_set_close(set);
    sft_buffer_free(&file_bytes);
    sft_buffer_free(&json);
}

static void has(const char *part) {
    if (strstr(json.data, part)) return;
    print_error("not there: %s\nin: %s\n", part, json.data);
    fail();
}

static void has_not(const char *part) {
    if (!strstr(json.data, part)) return;
    print_error("there: %s\nin: %s\n", part, json.data);
    fail();
}

/* ── Every key ── */

static void every_key_is_there(void **state) {
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    render(info, false, "");
    has("{\"path\":\"m\",\"ok\":true,\"complete\":true,\"file\":{");
    has("},\"metadata\":{},\"metadata_cut\":{},\"model\":{\"kind\":");
    has("\"variant\":null,\"base_model\":null,\"base_checkpoint\":null,\"repo\":null,"
        "\"name\":null,\"version_name\":null,\"description\":null,\"version_description\":null,"
        "\"author\":null,\"license\":null,\"tags\":null,\"date\":null,\"usage_hint\":null,"
        "\"notes\":[],\"rating\":null,\"favourite\":null,\"prediction_type\":null,"
        "\"resolution\":null,"
        "\"clip_skip\":null,\"preferred_weight\":null,\"negative_prompt\":null,\"nsfw\":null,"
        "\"nsfw_level\":null,\"language\":null,\"components\":[],\"quantization\":null,"
        "\"family\":null,");
    has("\"size\":null,\"vectors\":null,\"negative\":null,"
        "\"preferred_weight_range\":null,\"llm\":null,\"evidence\":[]},"
        "\"adapter\":null,\"trigger_words\":[],\"prompts\":{\"a1111\":null,\"comfy\":null},"
        "\"frequent_tags\":[],\"example_prompts\":[],"
        "\"civitai\":null,\"links\":[],\"training\":null,\"merge\":null,\"provenance\":null,"
        "\"hashes\":{\"recorded\":[],\"computed\":{},\"mismatches\":[],\"lookup_url\":null},"
        "\"previews\":[],\"sidecars\":[],\"privacy\":[],\"conflicts\":[]}");
    has_not("\"set\":");
    has_not("\"parts\":");
    close_all(info);
}

/* ── Facts ── */

static void facts_have_source_trust_and_others(void **state) {
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    sfti_info_add_text(info, SFT_FACT_NAME, sft_span_cstr("low"), sft_span_cstr("filename"), 30);
    sfti_info_add_text(info, SFT_FACT_NAME, sft_span_cstr("a\"b\x1b\xE2\x80\xAE"),
                       sft_span_cstr("header:name"), 75);
    sfti_info_add_commas(info, SFT_FACT_TAGS, sft_span_cstr("x, y"), sft_span_cstr("header:t"), 60);
    sfti_info_add(info, SFT_FACT_NSFW, sfti_bool_value(true), sft_span_cstr("s"), 90);
    sfti_info_add(info, SFT_FACT_CLIP_SKIP, sfti_number_value(sft_span_cstr("2")),
                  sft_span_cstr("s"), 70);
    sfti_info_add(info, SFT_FACT_PREFERRED_WEIGHT, sfti_number_value(sft_span_cstr("0x1")),
                  sft_span_cstr("s"), 70);
    sfti_info_resolve(info);
    render(info, false, "");
    has("\"name\":{\"value\":\"a\\\"b\\u001b\\u202e\",\"source\":\"header:name\",\"trust\":75,"
        "\"others\":[{\"value\":\"low\",\"source\":\"filename\",\"trust\":30}]}");
    has("\"tags\":{\"value\":[\"x\",\"y\"],\"source\":\"header:t\",\"trust\":60,\"others\":[]}");
    has("\"nsfw\":{\"value\":true,");
    has("\"clip_skip\":{\"value\":2,");
    has("\"preferred_weight\":{\"value\":\"0x1\",");
    sft_span value, source;
    int trust;
    assert_true(sft_info_fact(info, SFT_FACT_TAGS, &value, &source, &trust));
    assert_true(sft_span_equal(value, sft_span_cstr("x, y")));
    assert_int_equal(trust, 60);
    assert_false(sft_info_fact(info, SFT_FACT_AUTHOR, &value, NULL, NULL));
    assert_false(sft_info_fact(info, (sft_fact)99, &value, NULL, NULL));
    close_all(info);
}

static void others_are_sixteen(void **state) {
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    for (int i = 0; i < 40; i++)
        sfti_info_add_text(info, SFT_FACT_AUTHOR, sfti_info_text(info, "n%d", i),
                           sft_span_cstr("s"), i);
    sfti_info_resolve(info);
    render(info, false, "");
    has("\"author\":{\"value\":\"n39\"");
    has("{\"value\":\"n23\",\"source\":\"s\",\"trust\":23}]}");
    has_not("\"n22\"");
    close_all(info);
}

/* ── Metadata ── */

static void long_values_are_cut(void **state) {
    static char text[5001];
    memset(text, 'x', 5000);
    memcpy(text + 4095, "\xC3\xA9", 2);
    const sft_pair pairs[] = {
        { sft_span_cstr("long"), { text, 5000 } },
        { sft_span_cstr("modelspec.thumbnail"),
          sft_span_cstr("data:image/jpeg;base64,/9j/4AAQSkZJRg==") },
        { sft_span_cstr("short"), { text, 4095 } },
    };
    (void)state;
    open_pairs(pairs, 3);
    sft_info *info = open_info();
    render(info, false, "");
    has("xx\",\"modelspec.thumbnail\":\"data:image/jpeg;base64,\",\"short\":\"xx");
    has("\"metadata_cut\":{\"long\":5000,\"modelspec.thumbnail\":39}");
    has_not("\xC3\xA9");
    has_not("/9j/");
    render(info, true, "");
    has("xx\xC3\xA9xx");
    has("\"metadata_cut\":{\"modelspec.thumbnail\":39}");
    has_not("/9j/");
    close_all(info);
}

static void json_from_files_is_masked(void **state) {
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    info->has_merge = true;
    info->merge_recipe = sft_span_cstr("{ \"a b\" :\n[1, \"\\\" x\xE2\x80\xA8\xC2\x9B\"] }");
    render(info, false, "");
    has("\"recipe\":{\"a b\":[1,\"\\\" x\\u2028\\u009b\"]},\"sources\":[]}");
    info->merge_recipe = sft_span_cstr("{\"a\":1} x");
    render(info, false, "");
    has("\"recipe\":null");
    close_all(info);
}

/* ── Hashes ── */

static void mismatches_and_look_up(void **state) {
    const char *sha = "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef";
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    sfti_info_claim(info, "sshs_model", sft_span_cstr(sha), sft_span_cstr("header:h"), NULL);
    render(info, false, "");
    has("\"lookup_url\":\"https://civitai.com/api/v1/model-versions/by-hash/1234567890ab\"");
    sfti_info_claim(info, "autov3", sft_span_cstr("AAAAAAAAAAA1"), sft_span_cstr("sidecar:x"),
                    NULL);
    render(info, false, "{\"sha256\":\"ff\",\"autov3\":\"aaaaaaaaaaa1\",\"sshs_model\":\"00\"}");
    has("\"recorded\":[{\"algo\":\"sshs_model\",\"value\":\"1234567890abcdef");
    has("\"computed\":{\"sha256\":\"ff\",\"autov3\":\"aaaaaaaaaaa1\",\"sshs_model\":\"00\"},"
        "\"mismatches\":[{\"algo\":\"sshs_model\",\"recorded\":\"1234567890");
    has("\"computed\":\"00\",\"source\":\"header:h\",\"known\":null}],"
        "\"lookup_url\":\"https://civitai.com/api/v1/model-versions/by-hash/ff\"");
    close_all(info);
}

/* ── CivitAI ── */

static void civitai_of_the_sidecar(void **state) {
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    sfti_sidecar *sidecar = SFTI_PUSH(info, &info->sidecars, sfti_sidecar, .error = { "", 0 });
    sidecar->path = sft_span_cstr("dir/x.civitai.info");
    sidecar->kind = "civitai.info";
    sidecar->match = "weights";
    sfti_info_civitai(info, 0, 234567, sft_span_cstr("filename"), 20);
    sfti_info_civitai(info, 123456, 0, sft_span_cstr("sidecar:x.civitai.info:/modelId"), 90);
    sfti_info_resolve(info);
    render(info, false, "");
    has("\"civitai\":{\"model_id\":123456,\"version_id\":null,\"air\":null,"
        "\"url\":\"https://civitai.com/models/123456\","
        "\"source\":\"sidecar:x.civitai.info:/modelId\",\"trust\":90,\"match\":\"weights\","
        "\"matches_file\":true,\"published_at\":null,\"permissions\":null}");
    close_all(info);
    open_pairs(NULL, 0);
    info = open_info();
    sfti_info_civitai(info, 7, 8, sft_span_cstr("header:ssmd_source"), 60);
    sfti_info_resolve(info);
    render(info, false, "");
    has("\"url\":\"https://civitai.com/models/7?modelVersionId=8\"");
    has("\"match\":null,\"matches_file\":null");
    close_all(info);
}

/* ── Numbers ── */

static void numbers_of_an_adapter(void **state) {
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    info->adapter.present = true;
    info->adapter.type = "lora";
    info->adapter.rank = (sfti_bounds){ true, 4, 32, 16 };
    info->adapter.alpha = (sfti_bounds){ true, 0.5, 1e300, 8 };
    info->adapter.scale = 0.5;
    render(info, false, "");
    has("\"rank\":{\"min\":4,\"max\":32,\"mode\":16},"
        "\"alpha\":{\"min\":0.5,\"max\":null,\"mode\":8,\"sampled\":false},\"scale\":0.5,"
        "\"conv_rank\":null,\"modules\":0,");
    info->adapter.rank.known = false;
    info->adapter.scale = -1;
    render(info, false, "");
    has("\"rank\":null,");
    has("\"scale\":null,");
    close_all(info);
}

/* A sink that fails at a given byte. */
static sft_code fail_after(void *ctx, uint64_t offset, const void *bytes, size_t len,
                           sft_error *err) {
    uint64_t *left = ctx;
    (void)bytes;
    if (offset + len <= *left) return SFT_OK;
    return sft_error_set(err, SFT_IO_WRITE, 28, "disk full");
}

static const sft_sink_vtable fail_after_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, fail_after, NULL, NULL, NULL, NULL
};

static void failed_writes_are_told(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    open_pairs(NULL, 0);
    sft_info *info = open_info();
    render(info, false, "");
    for (uint64_t cap = 0; cap + 1 < json.len; cap += 7) {
        sft_sink sink = { &cap, &fail_after_sink_vtable, false };
        assert_int_equal(sft_info_json(info, "m", false, &sink, &err), SFT_IO_WRITE);
    }
    close_all(info);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_there),
        cmocka_unit_test(facts_have_source_trust_and_others),
        cmocka_unit_test(others_are_sixteen),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(json_from_files_is_masked),
        cmocka_unit_test(mismatches_and_look_up),
        cmocka_unit_test(civitai_of_the_sidecar),
        cmocka_unit_test(numbers_of_an_adapter),
        cmocka_unit_test(failed_writes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
