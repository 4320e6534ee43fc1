/* Digests that were computed: sidecars held against them, trust lowered and restored, claims
 * that agree and that do not. */
#define _GNU_SOURCE
#include "label/sidecars/sidecars.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "unit/digests.h"
#include "unit/temp_model.h"

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2"
#define SIDECAR \
    "{\"id\":2,\"modelId\":1,\"model\":{\"name\":\"N\"},\"trainedWords\":[\"w\"],\"files\":[" \
    "{\"sizeKB\":100,\"type\":\"Model\",\"hashes\":{\"SHA256\":\"" SHA_A "\"," \
    "\"AutoV3\":\"22D8CB95B807\",\"CRC32\":\"01020304\"}}]}"
#define WITH_TITLE \
    "{\"__metadata__\":{\"modelspec.title\":\"T\",\"modelspec.architecture\":\"flux-1-dev\"," \
    "\"ss_base_model_version\":\"sdxl_base_v1-0\",\"sshs_model_hash\":\"0x" SHA_B "\"," \
    "\"ss_network_module\":\"lycoris.kohya\"}," \
    "\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}"

static temp_folder temp;
static sft_set *set;
static sft_info *info;
static sft_buffer json;

static void open_one(const sft_info_options *options) {
    temp_begin(&temp);
    const char *path = temp_model(&temp, "x.safetensors", WITH_TITLE, "12345678", 8);
    (void)temp_text(&temp, "x.civitai.info", SIDECAR);
    memset(&json, 0, sizeof json);
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_info_open(set, path, NULL, options, &info, NULL), SFT_OK);
}

static void close_one(void) {
    sft_info_close(info);
    sft_set_close(set);
    sft_buffer_free(&json);
    temp_end(&temp);
}

static const char *rendered(void) {
    sft_buffer_free(&json);
    memset(&json, 0, sizeof json);
    sft_sink sink = sft_sink_memory(&json);
    assert_int_equal(sft_info_json(info, "x", false, &sink, NULL), SFT_OK);
    assert_int_equal(sft_sink_write(&sink, json.len, "", 1, NULL), SFT_OK);
    return json.data;
}

static void has(const char *part) {
    if (strstr(rendered(), part)) return;
    print_error("not there: %s\nin: %s\n", part, json.data);
    fail();
}

static void set_digests(const char *computed) {
    sft_hashes hashes = digests_of(computed);
    assert_int_equal(sft_info_set_computed(info, hashes.asked, &hashes, NULL), SFT_OK);
}

static int trust_of_sidecar(void) {
    const char *at = strstr(rendered(), "\"value\":\"N\",\"source\":\"sidecar:x.civitai.info:"
                                        "/model/name\",\"trust\":");
    assert_non_null(at);
    return atoi(strstr(at, "trust\":") + 7);
}

/* ── Matching ── */

static const struct match_step {
    const char *computed, *match, *matches;
    int trust;
} steps[] = {
    { "{}", "\"match\":\"size-differs\"", "\"matches_file\":null", 65 },
    { "{\"sha256\":\"" SHA_A "\"}", "\"match\":\"sha256\"", "\"matches_file\":true", 95 },
    { "{\"sha256\":\"" SHA_B "\",\"autov3\":\"000000000001\"}", "\"match\":\"differs\"",
      "\"matches_file\":false", 10 },
    { "{\"sha256\":\"" SHA_B "\",\"autov3\":\"22d8cb95b807\"}", "\"match\":\"weights\"",
      "\"matches_file\":true", 95 },
    /* AutoV3 is recorded and not computed: it may be the same model */
    { "{\"sha256\":\"" SHA_B "\"}", "\"match\":null", "\"matches_file\":null", 95 },
    { "{\"autov3\":\"000000000001\"}", "\"match\":null", "\"matches_file\":null", 95 },
    { "{\"crc32_civitai\":\"04030201\"}", "\"match\":\"sha256\"", "\"matches_file\":true", 95 },
    { "{\"sha256\":null}", "\"match\":\"size-differs\"", "\"matches_file\":null", 65 },
};

static size_t count_of(const char *text, const char *part) {
    size_t n = 0;
    for (; (text = strstr(text, part)) != NULL; text++) n++;
    return n;
}

/* Whatever came before, in any order: nothing is doubled, nothing is lost. */
static void trust_follows_digests(void **state) {
    size_t count = sizeof steps / sizeof *steps, size = 0;
    (void)state;
    open_one(NULL);
    for (size_t i = 0; i < 3 * count; i++) {
        const struct match_step *step = &steps[i * 5 % count];
        set_digests(step->computed);
        has(step->match);
        has(step->matches);
        assert_int_equal(trust_of_sidecar(), step->trust);
        assert_int_equal(count_of(json.data, "\"text\":\"w\""), 1);
        assert_int_equal(count_of(json.data, "{\"field\":\"architecture\""), 1);
        assert_int_equal(sft_info_trigger_count(info), 1);
        if (step != &steps[0]) continue;
        if (size > 0) assert_int_equal(json.len, size);
        size = json.len;
    }
    close_one();
}

static void best_name_changes(void **state) {
    sft_span before, now;
    (void)state;
    open_one(NULL);
    assert_true(sft_info_fact(info, SFT_FACT_NAME, &before, NULL, NULL));
    assert_true(sft_span_equal(before, sft_span_cstr("T")));
    set_digests("{\"sha256\":\"" SHA_A "\"}");
    assert_true(sft_info_fact(info, SFT_FACT_NAME, &now, NULL, NULL));
    assert_true(sft_span_equal(now, sft_span_cstr("N")));
    assert_true(sft_span_equal(before, sft_span_cstr("T"))); /* borrowed until the end */
    close_one();
}

/* ── Claims ── */

static void claims_are_told(void **state) {
    static const char *const algos[] = { "sshs_model", "sha256", "autov3", "crc32_civitai" };
    sft_info_claim claim;
    (void)state;
    open_one(NULL);
    assert_int_equal(sft_info_claim_count(info), 4);
    assert_false(sft_info_claim_at(info, 4, &claim));
    for (size_t i = 0; i < 4; i++) {
        assert_true(sft_info_claim_at(info, i, &claim));
        size_t at = 0;
        while (at < 4 && strcmp(claim.algo, algos[at]) != 0) at++;
        assert_true(at < 4);
        if (at > 0) assert_null(claim.known);
        else assert_string_equal(claim.known, "LyCORIS module order");
        if (at == 2) assert_true(sft_span_equal(claim.value, sft_span_cstr("22d8cb95b807")));
    }
    close_one();
}

static void mismatches_are_told(void **state) {
    (void)state;
    open_one(NULL);
    set_digests("{\"sha256\":\"" SHA_A "\",\"autov3\":null,\"crc32_civitai\":\"04030201\"}");
    has("\"computed\":{\"sha256\":\"" SHA_A "\",\"autov3\":null,\"crc32_civitai\":\"04030201\"},"
        "\"mismatches\":[],\"lookup_url\":\"https://civitai.com/api/v1/model-versions/by-hash/"
        SHA_A "\"");
    set_digests("{\"autov3\":\"000000000001\",\"sshs_model\":\"" SHA_A "\","
                "\"crc32_civitai\":\"04030202\"}");
    has("{\"algo\":\"sshs_model\",\"recorded\":\"" SHA_B "\",\"computed\":\"" SHA_A "\","
        "\"source\":\"header:sshs_model_hash\",\"known\":\"LyCORIS module order\"}");
    has("{\"algo\":\"autov3\",\"recorded\":\"22d8cb95b807\",\"computed\":\"000000000001\","
        "\"source\":\"sidecar:x.civitai.info:/files/0/hashes/AutoV3\",\"known\":null}");
    has("{\"algo\":\"crc32_civitai\",\"recorded\":\"01020304\",\"computed\":\"04030202\",");
    assert_int_equal(count_of(json.data, "\"known\":"), 3);
    close_one();
}

/* ── Memory ── */

typedef struct failing { size_t calls, fail_on, held; } failing;

static void *resize_failing(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    if (new_size == 0) {
        f->held -= old_size;
        free(ptr);
        return NULL;
    }
    if (++f->calls == f->fail_on) return NULL;
    f->held += new_size - old_size;
    return realloc(ptr, new_size);
}

/* A failure leaves all as it was, and the next try may succeed. */
static void memory_may_run_out(void **state) {
    sft_code code = SFT_OUT_OF_MEMORY;
    size_t failures = 0;
    (void)state;
    for (size_t n = 1; code == SFT_OUT_OF_MEMORY; n++) {
        failing f = { 0, 0, 0 };
        sft_allocator alloc = { resize_failing, &f };
        sft_info_options options = SFT_INFO_OPTIONS_INIT;
        options.alloc = &alloc;
        open_one(&options);
        f.fail_on = f.calls + n;
        sft_hashes hashes = digests_of(steps[1].computed);
        code = sft_info_set_computed(info, hashes.asked, &hashes, NULL);
        f.fail_on = 0;
        assert_true(code == SFT_OK || code == SFT_OUT_OF_MEMORY);
        assert_int_equal(trust_of_sidecar(), code ? 65 : 95);
        failures += code != SFT_OK;
        set_digests(steps[1].computed);
        assert_int_equal(trust_of_sidecar(), 95);
        close_one();
        assert_int_equal(f.held, 0);
    }
    assert_int_equal(code, SFT_OK);
    assert_true(failures > 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trust_follows_digests), cmocka_unit_test(best_name_changes),
        cmocka_unit_test(claims_are_told),       cmocka_unit_test(mismatches_are_told),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
