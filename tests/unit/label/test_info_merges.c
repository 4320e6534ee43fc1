/* What a header says of merged models and of the data of a training: told, wrong, too much. */
#include "unit/header_case.h"

#define MODELS "sd_merge_models"
#define RECIPE "sd_merge_recipe"
#define SHC "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"

static char told[4096];

static void say(const char *format, ...) {
    size_t at = strlen(told);
    va_list args;
    va_start(args, format);
    vsnprintf(told + at, sizeof told - at, format, args);
    va_end(args);
}

#define TEXT(span) (int)(span).len, (span).data ? (span).data : ""

/* Pairs of a case: keys with their values, up to a NULL. */
static void open_case(model *m, const char *const *pairs) {
    sft_pair list[8];
    size_t count = 0;
    for (; pairs[2 * count]; count++)
        list[count] = (sft_pair){ s(pairs[2 * count]), s(pairs[2 * count + 1]) };
    open_pairs(m, list, count);
    read_header(m);
    *told = 0;
}

/* ── Merges ── */

/* "tool method;" and of each model "name digest autov1 weight method<made from", d: of the recipe,
 * a: of another's. */
static const struct { const char *pairs[7], *told; } merges[] = {
    { { MODELS, "{\"" SHA "\":{\"name\":\"dir/a.safetensors\",\"legacy_hash\":\"1A2B3C4D\"},\"x\""
        ":{\"name\":"
        "\"no\",\"legacy_hash\":\"11111111\"},\"" SHB "\":7}" },
        " ;a.safetensors 1234 1a2b3c4d  <" },
    { { MODELS, "{\"" SHA "\":{\"name\":5,\"legacy_hash\":\"xyz\",\"sd_merge_recipe\":\"no\"}}" },
        " ; 1234   <" },
    { { MODELS, "{\"" SHA "\":{\"name\":\"a\"},\"" SHB "\":{\"name\":\"b\",\"sd_merge_recipe\":{"
        "\"merge_mode\":"
        "\"sum\",\"mode\":\"later\",\"interp_method\":3,\"model_a\":\"" SHA "\",\"model_b\":\""
        "" SHC "\",\"model_c\":"
        "null,\"primary_model_hash\":\"short\",\"models\":[{\"model\":\"q/c\"},{\"model\":4}]}}}",
        RECIPE, "{\"type\":\"SD-WebUI-SuperMerger\",\"primary_model_hash\":\"" SHB "\"}" },
      "supermerger ;a 1234 a   <;b abab d   sum<a, cdcdcdcdcd, c" },
    { { RECIPE, "{\"type\":\"mine\",\"interp_method\":\"Weighted\",\"merge_mode\":\"other\",\"mod"
        "el_a\":\"" SHA
        "\",\"model_b\":\"" SHB "\",\"model_c\":\"\",\"multiplier\":0.25,\"alpha\":\"0.5\"}" },
      "mine Weighted; 1234 d   <; abab d  0.25 <" },
    { { RECIPE, "{\"type\":7,\"mode\":null,\"multiplier\":\"x\",\"models\":[{\"sha256\":\""
        "" SHA "\",\"parameters\":"
        "{\"weight\":0.75}},{\"sha256\":\"no\",\"parameters\":{\"weight\":9}},{\"sha256\":5},{\"s"
        "ha256\":\"" SHB
        "\",\"parameters\":{\"weight\":\"w\"}}]}" }, " ; 1234 d  0.75 <; abab d   <" },
    { { RECIPE, "[1]" }, " ;" },
    { { "sshs_cp0", "{\"ss_output_name\":\"a\"}", "sshs_cp1", "{\"ss_output_name\":\"b\"}",
        "sshs_ratio",
        "[\"0.5\", '0.25']" }, "supermerger ;a   0.5 <;b   0.25 <" },
    { { "sshs_cp0", "{}", "sshs_cp1", "no", "sshs_ratio", "(x )" }, "supermerger ;    <;    <" },
};

static void merged_models(void **state) {
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(merges); i++) {
        model m;
        open_case(&m, merges[i].pairs);
        say("%.*s %.*s;", TEXT(m.info.merge_tool), TEXT(m.info.merge_method));
        for (const sfti_merge_source *one = m.info.merge_sources.first; one; one = one->next)
            say("%s%.*s %.4s %s%.*s %.*s %.*s<%.*s", one == m.info.merge_sources.first ? "" : ";",
                 TEXT(one->name), one->sha256.len ? one->sha256.data : "", one->direct ? "d "
                      : one->ancestor ? "a " : "", TEXT(one->autov1), TEXT(one->weight),
                      TEXT(one->method),
                 TEXT(one->made_from));
        if (strcmp(told, merges[i].told) != 0)
            fail_msg("%zu: \"%s\"", i, told);
        done(&m);
    }
}

/* No more than 64 of them, and made of no more than a line holds. */
static void many_models(void **state) {
    static char text[1 << 16], made[4096];
    model m;
    (void)state;
    size_t at = (size_t)snprintf(text, sizeof text, "{");
    for (int i = 0; i < 70; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%064x\":{\"name\":\"n%d\"}",
                               i ? "," : "", i + 1, i);
    snprintf(text + at, sizeof text - at, "}");
    make(&m, MODELS, text, RECIPE, "{\"model_b\":\"" SHB "\"}", "sshs_cp0", "{}", NULL);
    assert_int_equal(m.info.merge_sources.count, 64);
    SAME(((sfti_merge_source *)m.info.merge_sources.last)->name, "n63");
    assert_int_equal(m.info.merge_tool.len, 0);
    done(&m);
    at = (size_t)snprintf(made, sizeof made, "{\"" SHA "\":{\"sd_merge_recipe\":{\"models\":[");
    for (int i = 0; i < 9; i++)
        at += (size_t)snprintf(made + at, sizeof made - at, "%s{\"model\":\"%0100d\"}", i ? ","
               : "", i);
    snprintf(made + at, sizeof made - at, "]}}}");
    make(&m, MODELS, made, NULL);
    assert_int_equal(((sfti_merge_source *)m.info.merge_sources.first)->made_from.len, 5 * 102 - 2);
    done(&m);
}

/* ── Data of a training ── */

/* Of each folder "name images repeats regularisation size class", of each bucket "size count"; then
 * the sums: images, with repeats, of regularisation, batch, size. */
static const struct { const char *pairs[7], *told; } trainings[] = {
    { { "ss_datasets", "[{\"resolution\":[512,768],\"num_train_images\":100,\"num_reg_images\":5,"
        "\"batch_size_per_device\":2,\"subsets\":[{\"img_count\":10,\"num_repeats\":3,"
        "\"image_dir\":\"/d/1_a\",\"class_tokens\":\"a b\",\"caption_prefix\":\"p, ,\",\"is_reg\":"
        "false},{\"image_dir\":7,\"class_tokens\":8,\"caption_prefix\":9,\"is_reg\":\"x\","
        "\"img_count\":\"y\"},8,{\"image_dir\":\"r\",\"is_reg\":true,\"img_count\":4,"
        "\"class_tokens\":\"c\"}],\"bucket_info\":{\"buckets\":{\"0\":{\"resolution\":[640,512],"
        "\"count\":7},\"1\":{\"resolution\":[0,512]},\"2\":9,\"3\":{\"resolution\":[512,0],"
        "\"count\":\"z\"}}}}]" },
      "1_a 10 3 0 512x768 a b; ? ? -1 512x768 ;r 4 ? 1 512x768 c;|640x512 7; 0;512x512 0;|"
      "10 100 5 2 512x768" },
    { { "ss_datasets", "[3,{\"subsets\":{\"a\":{\"image_dir\":\"x\",\"img_count\":1}}},"
        "{\"image_directory\":\"d/v\",\"num_repeats\":2,\"resolution\":1024},{\"video_directory\""
        ":5,"
        "\"num_repeats\":4},{\"resolution\":[2000000,1]},{\"resolution\":[1,2000000]}]" },
      "x 1 ? -1  ;v ? 2 -1 1024x1024 ; ? 4 -1  ;||1    1024x1024" },
    { { "ss_datasets", "[]", "ss_dataset_dirs", "{\"1_a\":{\"img_count\":3,\"n_repeats\":2},"
        "\"1_b\":4,\"1_c\":{\"img_count\":-1}}", "ss_reg_dataset_dirs",
        "{\"1_a\":{\"img_count\":9}}" }, "1_a 3 2 0  ;1_c ? ? 0  ;1_a 9 ? 1  ;||3" },
    { { "ss_datasets", "[{\"num_train_images\":18446744073709551615,\"num_reg_images\":"
        "18446744073709551615},{\"num_train_images\":2,\"num_reg_images\":3},"
        "{\"num_train_images\":4,\"num_reg_images\":5}]" }, "||" },
    { { "ss_dataset_dirs", "{\"a\":{\"img_count\":18446744073709551614},\"b\":{\"img_count\":5}}" },
      "a 18446744073709551614 ? 0  ;b 5 ? 0  ;||" },
    { { "ss_bucket_info", "{\"buckets\":[{\"resolution\":[64,96],\"count\":1}]}" }, "|64x96 1;|" },
};

static void tell_number(uint64_t number) {
    if (number == UINT64_MAX) say("? ");
    else say("%llu ", (unsigned long long)number);
}

static void training_data(void **state) {
    static const sfti_training_key keys[] = { TRAIN_IMAGES, TRAIN_IMAGES_WITH_REPEATS,
                                              TRAIN_REGULARISATION_IMAGES, TRAIN_BATCH_SIZE,
                                              TRAIN_RESOLUTION };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(trainings); i++) {
        model m;
        open_case(&m, trainings[i].pairs);
        for (const sfti_dataset *one = m.info.datasets.first; one; one = one->next) {
            say("%.*s ", TEXT(one->folder));
            tell_number(one->images);
            tell_number(one->repeats);
            say("%d %.*s %.*s;", one->regularisation, TEXT(one->resolution),
                 TEXT(one->class_tokens));
        }
        say("|");
        for (const sfti_bucket *one = m.info.buckets.first; one; one = one->next)
            say("%.*s %llu;", TEXT(one->resolution), (unsigned long long)one->count);
        say("|");
        for (size_t k = 0; k < SFTI_COUNT(keys); k++)
            say("%s%.*s", k ? " " : "", TEXT(m.info.training[keys[k]].text));
        size_t len = strlen(told);
        while (len > 0 && told[len - 1] == ' ') told[--len] = 0;
        if (strcmp(told, trainings[i].told) != 0)
            fail_msg("%zu: \"%s\"", i, told);
        done(&m);
    }
}

/* As many folders and buckets as are told, no more. */
static void much_data(void **state) {
    static char dirs[1 << 16], buckets[1 << 16], sets[1 << 16];
    size_t d = 0, b = 0, n = 0;
    model m;
    (void)state;
    for (int i = 0; i < 1100; i++) {
        if (i < 300) d += (size_t)snprintf(dirs + d, sizeof dirs - d, "%s\"%d\":{\"img_count\":1}",
            i ? "," : "{", i);
        if (i < 300) n += (size_t)snprintf(sets + n, sizeof sets - n,
            "%s{\"image_directory\":\"%d\",\"subsets\":[%s]}",
                                           i ? "," : "[", i, i % 2 ? "{}" : "");
        b += (size_t)snprintf(buckets + b, sizeof buckets - b,
              "%s\"%d\":{\"resolution\":[1,2],\"count\":%d}", i ? "," : "{\"buckets\":{", i, i);
    }
    memcpy(dirs + d, "}", 2);
    memcpy(sets + n, "]", 2);
    memcpy(buckets + b, "}}", 3);
    make(&m, "ss_dataset_dirs", dirs, "ss_bucket_info", buckets, NULL);
    assert_int_equal(m.info.datasets.count, 256);
    TRAIN(&m, IMAGES, ""); /* not all are read */
    assert_int_equal(m.info.buckets.count, 1024);
    assert_int_equal(((sfti_bucket *)m.info.buckets.last)->count, 1023);
    done(&m);
    make(&m, "ss_datasets", sets, "ss_reg_dataset_dirs", dirs, NULL);
    assert_int_equal(m.info.datasets.count, 256);
    done(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merged_models), cmocka_unit_test(many_models),
        cmocka_unit_test(training_data), cmocka_unit_test(much_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
