/* Trigger words: what is declared, what data sets tell, what is merged, and what near it is
 * no word at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "label/records.h"
#include "label/words/triggers.h"

/* ── A model of nothing but metadata ── */

static sft_info info;
static sft_set *set;
static sft_buffer file_bytes;
static char got[8192];

static void open_pairs(const sft_pair *pairs, size_t count) {
    sft_plan *plan;
    sft_writer *writer;
    sft_file *file;
    memset(&info, 0, sizeof info);
    memset(&file_bytes, 0, sizeof file_bytes);
    info.arena.alloc = sfti_allocator(NULL);
    info.records = sfti_records_built_in();
    assert_int_equal(sft_plan_new(NULL, 0, pairs, count, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_writer_begin(plan, sft_sink_memory(&file_bytes), &writer, NULL),
                     SFT_OK);
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_OK);
    sft_plan_free(plan);
    assert_int_equal(sft_open_memory(file_bytes.data, file_bytes.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    info.set = set;
}

static void put(const char *format, ...) {
    va_list args;
    size_t at = strlen(got);
    va_start(args, format);
    vsnprintf(got + at, sizeof got - at, format, args);
    va_end(args);
}

/* "text:trust[@folder];…|tag=count;…" */
static const char *finish(void) {
    got[0] = 0;
    sfti_info_header(&info); /* the data sets */
    sfti_info_words(&info);
    assert_int_equal(info.code, SFT_OK);
    for (size_t i = 0; i < info.triggers.count; i++) {
        const sfti_trigger *t = info.ordered[i];
        put("%s%.*s:%d", i ? ";" : "", (int)t->text.len, t->text.data, t->trust);
        if (t->folder.len) put("@%.*s", (int)t->folder.len, t->folder.data);
    }
    return got;
}

static void close_all(void) {
    sfti_arena_free(&info.arena);
    sft_set_close(set);
    sft_buffer_free(&file_bytes);
}

static sft_span span(const char *text) {
    return sft_span_cstr(text);
}

/* ── Tables: metadata in, words out ── */

typedef struct word_case {
    const char *what, *tags, *dirs, *more_key, *more, *output, *words;
} word_case;

#define TEN " {\"n_repeats\":1,\"img_count\":10}"

static const word_case word_cases[] = {
    { "nothing", NULL, NULL, NULL, NULL, NULL, "" },
    { "broken", "{\"1_a\":{\"x\":", NULL, NULL, NULL, NULL, "" },
    { "no object", "[1,2]", NULL, NULL, NULL, NULL, "" },
    { "one tag in all", "{\"10_x\":{\"mikumo\":10,\"rain\":3}}", "{\"10_x\":" TEN "}", NULL, NULL,
      NULL, "mikumo:75" },
    { "in nearly all", "{\"10_x\":{\"mikumo\":19}}", "{\"10_x\":{\"img_count\":20}}", NULL, NULL,
      NULL, "mikumo:75" },
    { "in too few", "{\"10_x\":{\"mikumo\":18}}", "{\"10_x\":{\"img_count\":20}}", NULL, NULL,
      NULL, "" },
    { "a generic one", "{\"10_x\":{\"1girl\":10,\"solo\":10}}", "{\"10_x\":" TEN "}", NULL, NULL,
      NULL, "" },
    { "generic by shape", "{\"10_x\":{\"teal hair\":10,\"5girls\":10}}", "{\"10_x\":" TEN "}",
      NULL, NULL, NULL, "" },
    { "what boards note", "{\"10_x\":{\"year 1999\":10,\"year2024\":10,\"2023\":10,"
      "\"rating:e\":10,\"rating_safe\":10,\"score_8\":10,\"bad pixiv id\":10,\"age\":10,"
      "\"hetero\":10,\"english commentary\":10}}", "{\"10_x\":" TEN "}", NULL, NULL, NULL, "" },
    { "what is only like it", "{\"10_x\":{\"yearling\":10,\"3023\":10,\"agent\":10}}",
      "{\"10_x\":" TEN "}", NULL, NULL, NULL, "3023:79;yearling:75;agent:75" },
    { "a class", "{\"10_x\":{\"woman\":10,\"dog\":10}}", "{\"10_x\":" TEN "}", NULL, NULL, NULL,
      "" },
    { "the folder has its name", "{\"10_mikumo\":{\"mikumo\":10,\"rain\":10}}",
      "{\"10_mikumo\":" TEN "}", NULL, NULL, NULL, "mikumo:79" },
    { "a part of its name is none", "{\"10_mikumos\":{\"mikumo\":10,\"rain\":10}}",
      "{\"10_mikumos\":" TEN "}", NULL, NULL, NULL, "mikumo:75;rain:75" },
    { "the output has its name", "{\"10_x\":{\"rain\":10,\"mikumo\":10}}", "{\"10_x\":" TEN "}",
      NULL, NULL, "mikumo_v2", "mikumo:79" },
    { "with a version on it", "{\"10_x\":{\"rain\":10,\"mikumo\":10}}", "{\"10_x\":" TEN "}",
      NULL, NULL, "mikumoV2", "mikumo:79" },
    { "everyone's name", "{\"10_x\":{\"ink style\":10,\"rain\":10}}", "{\"10_x\":" TEN "}", NULL,
      NULL, "my_style_lora", "ink style:75;rain:75" },
    { "short names", "{\"10_x\":{\"ab\":10,\"rain\":10}}", "{\"10_x\":" TEN "}", NULL, NULL,
      "ab", "ab:75;rain:75" },
    { "no word of a dictionary", "{\"10_x\":{\"rain\":10,\"m1k4n\":10}}", "{\"10_x\":" TEN "}",
      NULL, NULL, NULL, "m1k4n:79;rain:75" },
    { "no vowel", "{\"10_x\":{\"rain\":10,\"sks\":10}}", "{\"10_x\":" TEN "}", NULL, NULL, NULL,
      "sks:79;rain:75" },
    { "kept tokens", "{\"10_x\":{\"rain\":19,\"mikumo\":20}}", "{\"10_x\":{\"img_count\":20}}",
      "ss_keep_tokens", "1", NULL, "mikumo:79;rain:75" },
    { "two kept tokens", "{\"10_x\":{\"rain\":19,\"mikumo\":20}}",
      "{\"10_x\":{\"img_count\":20}}", "ss_keep_tokens", "2", NULL, "rain:79;mikumo:79" },
    { "no kept tokens", "{\"10_x\":{\"rain\":19,\"mikumo\":20}}", "{\"10_x\":{\"img_count\":20}}",
      "ss_keep_tokens", "None", NULL, "rain:75;mikumo:75" },
    { "order of the text", "{\"10_x\":{\"zeta\":10,\"alpha\":10,\"mosaic\":10}}",
      "{\"10_x\":" TEN "}", NULL, NULL, NULL, "zeta:75;alpha:75;mosaic:75" },
    { "the marker", "{\"1_p3rs0n\":{\"p3rs0n\":1}}", NULL, NULL, NULL, NULL, "p3rs0n:88" },
    { "the marker with capitals", "{\"1_Hatsu MIKU\":{\"hatsu miku\":1}}", NULL, NULL, NULL,
      NULL, "Hatsu MIKU:88" },
    { "no marker: two tags", "{\"1_p3rs0n\":{\"p3rs0n\":1,\"x\":1}}", NULL, NULL, NULL, NULL,
      "p3rs0n:79" },
    { "no marker: counted twice", "{\"1_p3rs0n\":{\"p3rs0n\":2}}", NULL, NULL, NULL, NULL,
      "p3rs0n:79" },
    { "no marker: another tag", "{\"1_p3rs0n\":{\"other\":1}}", NULL, NULL, NULL, NULL, "" },
    { "no marker: repeated", "{\"2_p3rs0n\":{\"p3rs0n\":1}}", NULL, NULL, NULL, NULL,
      "p3rs0n:79" },
    { "two concepts", "{\"1_ink\":{\"inkling\":10,\"rain\":4},\"1_oil\":{\"oilpaint\":10,"
      "\"rain\":5}}", "{\"1_ink\":" TEN ",\"1_oil\":" TEN "}", NULL, NULL, NULL,
      "inkling:65@1_ink;oilpaint:65@1_oil" },
    { "two concepts share it", "{\"1_ink\":{\"inkling\":10},\"1_oil\":{\"inkling\":3}}",
      "{\"1_ink\":" TEN ",\"1_oil\":" TEN "}", NULL, NULL, NULL, "" },
    { "two folders of one concept", "{\"1_ink\":{\"sunny\":10},\"4_ink\":{\"rain\":10}}",
      "{\"1_ink\":" TEN ",\"4_ink\":" TEN "}", NULL, NULL, NULL, "" },
    { "a concept named so", "{\"1_chibi\":{\"chibi\":10},\"1_oil\":{\"rain\":3}}",
      "{\"1_chibi\":" TEN ",\"1_oil\":" TEN "}", NULL, NULL, NULL, "chibi:75@1_chibi" },
    { "regularisation", "{\"10_x\":{\"rain\":3},\"1_reg\":{\"mikumo\":10}}",
      "{\"10_x\":" TEN ",\"1_reg\":" TEN "}", "ss_reg_dataset_dirs", "{\"1_reg\":{}}", NULL, "" },
    { "regularisation of a data set", "{\"x\":{\"mikumo\":9},\"reg\":{\"oddity\":10}}", NULL,
      "ss_datasets", "[{\"subsets\":[{\"image_dir\":\"reg\",\"is_reg\":true,\"img_count\":10},"
      "{\"image_dir\":\"x\",\"is_reg\":false,\"img_count\":9}]}]", NULL, "mikumo:75" },
    { "images of a data set", "{\"x\":{\"mikumo\":9}}", NULL, "ss_datasets",
      "[{\"subsets\":[{\"image_dir\":\"x\",\"img_count\":20}]}]", NULL, "" },
    { "only in data sets", NULL, NULL, "ss_datasets",
      "[{\"tag_frequency\":{\"x\":{\"mikumo\":9,\"rain\":2}},\"subsets\":[{\"image_dir\":\"x\","
      "\"img_count\":9}]}]", NULL, "mikumo:75" },
    { "images by repeats", "{\"10_x\":{\"mikumo\":12,\"rain\":3}}", NULL, "ss_num_train_images",
      "200", NULL, "" },
    { "as many as the commonest", "{\"10_x\":{\"mikumo\":12,\"rain\":3}}", NULL, NULL, NULL,
      NULL, "mikumo:75" },
    { "more than one a picture", "{\"10_x\":{\"mikumo\":14}}", "{\"10_x\":" TEN "}", NULL, NULL,
      NULL, "mikumo:75" },
    { "without folders", "{\"mikumo\":12,\"rain\":3}", NULL, NULL, NULL, NULL, "mikumo:75" },
    { "counts as texts", "{\"1_x\":{\"mikumo\":\"12\",\"rain\":\"x\",\"snow\":1.5}}", NULL, NULL,
      NULL, NULL, "mikumo:75" },
    { "two pictures are no custom", "{\"1_x\":{\"mikumo\":2,\"rain\":2}}", NULL, NULL, NULL,
      NULL, "" },
    { "brackets freed", "{\"1_x\":{\"smart falcon \\\\(uma\\\\)\":12,\"rain\":3}}", NULL, NULL,
      NULL, NULL, "smart falcon (uma):75" },
    { "a longer name is another", "{\"1_x\":{\"mikumo\":12,\"rain\":3}}", NULL, NULL, NULL,
      "MiKumos_final", "mikumo:75" },
    { "spelled as the output", "{\"1_x\":{\"mikumo\":12,\"rain\":3}}", NULL, NULL, NULL,
      "Mikumo_final", "Mikumo:79" },
    { "no captions", "{\"10_ohwx man\":{\"ohwx man\":10}}", "{\"10_ohwx man\":" TEN "}", NULL,
      NULL, NULL, "ohwx man:79" },
    { "no captions, long name", "{\"10_beautiful mikumo ink style\":"
      "{\"beautiful mikumo ink style\":10}}", NULL, NULL, NULL, NULL,
      "beautiful mikumo ink style:79" },
    { "no captions, only a class", "{\"10_man\":{\"man\":10}}", "{\"10_man\":" TEN "}", NULL,
      NULL, NULL, "" },
    { "sentences", "{\"1_x\":{\"a photo of ohwx man in a park\":1,\"a photo of ohwx man at sea\":"
      "1,\"a photo of ohwx man with a red hat\":1,\"a photo of ohwx man reading a book\":1}}",
      "{\"1_x\":{\"img_count\":4}}", NULL, NULL, NULL, "a photo of ohwx man:70;ohwx:65" },
    { "sentences of a class", "{\"1_x\":{\"a photo of a man in a park\":1,\"a photo of a man at "
      "the sea\":1,\"a photo of a man with a red hat\":1,\"a photo of a man reading\":1}}",
      "{\"1_x\":{\"img_count\":4}}", NULL, NULL, NULL, "" },
    { "sentences without a beginning", "{\"1_x\":{\"the zorgbot stands in rain\":1,\"here a "
      "zorgbot on the roof\":1,\"old zorgbot with flowers\":1,\"snow falls upon zorgbot\":1}}",
      "{\"1_x\":{\"img_count\":4}}", NULL, NULL, NULL, "zorgbot:65" },
    { "words of few sentences", "{\"1_x\":{\"the zorgbot stands in rain\":1,\"here a robot on "
      "the roof\":1,\"old zorgbot with flowers\":1,\"snow falls upon zorgbot\":1}}",
      "{\"1_x\":{\"img_count\":4}}", NULL, NULL, NULL, "" },
    { "more sentences than pictures", "{\"1_x\":{\"the zorgbot stands in rain\":1,\"here is a red "
      "house with roses\":1,\"old zorgbot with flowers\":1,\"snow falls upon hills\":1}}",
      "{\"1_x\":{\"img_count\":2}}", NULL, NULL, NULL, "" },
    { "folders of other names",
      "{\"x_a\":{\"mikumo\":9},\"10\":{\"mikumo\":9},\"10-x\":{\"mikumo\":9},"
      "\"99999999999999999999_x\":{\"mikumo\":9}}", NULL, NULL, NULL, NULL, "mikumo:75" },
    { "a folder twice", "{\"1_x\":{\"mikumo\":9},\"1_x\":{\"rain\":90}}", NULL, NULL, NULL, NULL,
      "rain:75" },
    { "a second folder so called", "{\"10_x\":{\"mikumo\":18}}",
      "{\"10_x (2)\":{\"img_count\":20}}", NULL,
      NULL, NULL, "" },
    { "another's number", "{\"10_x\":{\"mikumo\":18}}",
      "{\"10_x (22)\":{\"img_count\":20},\"(2)\":{\"img_count\":"
      "20},\"10_x.(2)\":{\"img_count\":20}}", NULL, NULL, NULL, "mikumo:75" },
    { "counts beyond all",
      "{\"1_x\":{\"mikumo\":18446744073709551615,\"rain\":\"99999999999\",\"snow\":0}}", NULL,
      NULL, NULL, NULL, "mikumo:75;rain:75" },
    { "blank tags", "{\"1_x\":{\" \":9,\"\":9,\"mikumo\":9}}", NULL, NULL, NULL, NULL,
      "mikumo:75" },
    { "what separates", "{\"1_x\":{\"mikumo BREAK sks|||zeta\":9,\"BREAK\":3}}", NULL, NULL, NULL,
      NULL,
      "sks:79;mikumo:75;zeta:75" },
    { "what does not", "{\"1_x\":{\"mikuBREAK\":9,\"BREAKing\":9,\"Bing\":9,\"a||b\":9}}", NULL,
      NULL, NULL, NULL,
      "mikuBREAK:75;BREAKing:75;Bing:75;a||b:75" },
    { "the training's own", "{\"x\":{\"mikumo @@ rain\":9,\"sunny@day\":9}}", NULL, "ss_datasets",
      "[{\"subsets\":[{\"image_dir\":\"x\",\"img_count\":9,\"keep_tokens_separator\":\"@@\"}]}]",
      NULL,
      "mikumo:75;rain:75;sunny@day:75" },
    { "told twice", "{\"x\":{\"mikumo\":9},\"r\":{\"rain\":9}}", NULL, "ss_datasets",
      "[{\"subsets\":[{\"image_dir\":"
      "\"x\",\"img_count\":0},{\"image_dir\":\"x\"},{\"image_dir\":\"x\",\"img_count\":9999999999"
      "},{\"image_dir\":"
      "\"x\",\"img_count\":9},{\"image_dir\":\"r\",\"is_reg\":true},{\"image_dir\":\"r\"},{\"img_"
      "count\":4}]}]",
      NULL, "" },
    { "images no number", "{\"10_x\":{\"mikumo\":12}}", NULL, "ss_num_train_images", "x", NULL,
      "mikumo:75" },
    { "images with a remainder", "{\"10_x\":{\"mikumo\":12}}", NULL, "ss_num_train_images", "205",
      NULL,
      "mikumo:75" },
    { "fewer images than tags", "{\"10_x\":{\"mikumo\":12}}", NULL, "ss_num_train_images", "50",
      NULL, "mikumo:75" },
    { "images of two folders", "{\"10_x\":{\"mikumo\":12},\"5_x\":{\"mikumo\":12}}", NULL,
      "ss_num_train_images",
      "400", NULL, "mikumo:75" },
    { "folders without tags", "{\"1_x\":{},\"1_y\":{\"mikumo\":9}}", NULL, NULL, NULL, NULL,
      "mikumo:75" },
    { "only regularisation", "{\"1_reg\":{\"rain\":9}}", NULL, "ss_reg_dataset_dirs",
      "{\"1_reg\":{}}", NULL, "" },
    { "no pairs", "{\"1_x\":{\"rain\":\"x\"}}", NULL, NULL, NULL, NULL, "" },
    { "no marker: regularisation", "{\"1_p3rs0n\":{\"p3rs0n\":1}}", NULL, "ss_reg_dataset_dirs",
      "{\"1_p3rs0n\":{}}", NULL, "" },
    { "a digit, no version", "{\"1_x\":{\"rain\":9,\"mikumo\":9}}", NULL, NULL, NULL,
      "123 mikumo3", "mikumo:79" },
    { "a part of the output", "{\"1_x\":{\"mikumo\":9}}", NULL, NULL, NULL,
      "xMIKUMO MIKUMOx MIKUMO9", "mikumo:79" },
    { "sentences beside others",
      "{\"1_x\":{\"a photo of ohwx man in a park\":1,\"a photo of ohwx man at sea\":1,"
      "\"a photo of ohwx man with a red hat\":1,\"a photo of ohwx man reading a book\":1},\"1_reg"
      "\":"
      "{\"the man is standing somewhere\":1}}",
      "{\"1_x\":{\"img_count\":4},\"1_reg\":{\"img_count\":1}}",
      "ss_reg_dataset_dirs", "{\"1_reg\":{}}", "ohwx", "a photo of ohwx man:70;ohwx:65" },
    { "sentences alike",
      "{\"1_x\":{\"zorg one two three four five six seven eight nine ten eleven twelve a\":2,"
      "\"zorg one two three four five six seven eight nine ten eleven twelve b\":2}}", NULL, NULL,
      NULL, NULL,
      "zorg one two three four five six seven eight nine ten eleven:70;zorg:65;four:65;five:65;"
      "six:65;seven:65;eight:65;nine:65;ten:65;eleven:65" },
    { "a sentence of two pictures", "{\"1_x\":{\"ohwx man standing in a wide park\":2}}",
      "{\"1_x\":{\"img_count\":2}}", NULL, NULL, NULL, "" },
};

static const char *run_case(const word_case *one) {
    sft_pair pairs[4];
    size_t count = 0;
    const char *const keys[] = { "ss_tag_frequency", "ss_dataset_dirs", one->more_key,
                                 "ss_output_name" };
    const char *const values[] = { one->tags, one->dirs, one->more, one->output };
    for (size_t i = 0; i < 4; i++)
        if (values[i]) pairs[count++] = (sft_pair){ span(keys[i]), span(values[i]) };
    open_pairs(pairs, count);
    return finish();
}

static void words_of_data_sets(void **state) {
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof word_cases / sizeof *word_cases; i++) {
        const char *words = run_case(&word_cases[i]);
        if (strcmp(words, word_cases[i].words) != 0) {
            print_error("%s: expected \"%s\", found \"%s\"\n", word_cases[i].what,
                        word_cases[i].words, words);
            wrong++;
        }
        close_all();
    }
    assert_int_equal(wrong, 0);
}

/* ── Declared words ── */

typedef struct declared_case {
    const char *text;
    int trust;
    const char *source, *words, *prompt;
} declared_case;

static const declared_case declared_cases[] = {
    { "neoncty", 100, "sidecar:x", "neoncty:100", "neoncty" },
    { "  neoncty, night ", 95, "sidecar:x", "neoncty, night:95", "neoncty, night" },
    { "<lora:x:0.8>, neoncty,", 95, "sidecar:x", "neoncty:95", "neoncty" },
    { "neoncty <lora:x:1> rain", 95, "sidecar:x", "neoncty  rain:95", "neoncty  rain" },
    { "<neoncty>", 90, "sidecar:x", "<neoncty>:90", "<neoncty>" },
    { "a,, b , ,c", 90, "sidecar:x", "a, b, c:90", "a, b, c" },
    { "a,b", 90, "sidecar:x", "a,b:90", "a,b" },
    { "miku (vocaloid)", 90, "sidecar:x", "miku (vocaloid):90", "miku \\(vocaloid\\)" },
    { "miku \\(vocaloid\\)", 90, "sidecar:x", "miku (vocaloid):90", "miku \\(vocaloid\\)" },
    { "(miku:1.2), rain", 90, "sidecar:x", "(miku:1.2), rain:90", "(miku:1.2), rain" },
    { "one\ntwo", 90, "sidecar:x", "one two:90", "one two" },
    { "None", 90, "sidecar:x", "", NULL },
    { ", ,", 90, "sidecar:x", "", NULL },
    { "<lora:x:1>", 90, "sidecar:x", "", NULL },
    { "weak", 59, "header:x", "", NULL },
    { "demoted", 10, "sidecar:x", "demoted:10", "demoted" },
    { "demoted", 10, "header:x", "", NULL },
    { "a <b <lora:x:1> c", 90, "sidecar:x", "a <b  c:90", "a <b  c" },
    { "a <lora\n:x:1> c", 90, "sidecar:x", "a <lora :x:1> c:90", "a <lora :x:1> c" },
    { "a <lora:x", 90, "sidecar:x", "a <lora:x:90", "a <lora:x" },
    { "a\\\\b\\", 90, "sidecar:x", "a\\\\b\\:90", "a\\\\b\\" },
    { "miku (a:1.2", 90, "sidecar:x", "miku (a:1.2:90", "miku \\(a:1.2" },
    { "miku (a:/) (b:) c:", 90, "sidecar:x", "miku (a:/) (b:) c::90",
      "miku \\(a:/\\) \\(b:\\) c:" },
    { "(a:1.2x)", 90, "sidecar:x", "(a:1.2x):90", "\\(a:1.2x\\)" },
    { "", 90, "sidecar:x", "", NULL },
};

static void declared_words(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof declared_cases / sizeof *declared_cases; i++) {
        const declared_case *one = &declared_cases[i];
        open_pairs(NULL, 0);
        sfti_info_trigger(&info, span(one->text), span(one->source), one->trust, 0);
        assert_string_equal(finish(), one->words);
        if (one->prompt) {
            sft_span prompt = info.ordered[0]->prompt;
            assert_int_equal(prompt.len, strlen(one->prompt));
            assert_memory_equal(prompt.data, one->prompt, prompt.len);
        }
        close_all();
    }
}

static void equal_words_are_one(void **state) {
    (void)state;
    open_pairs(NULL, 0);
    sfti_info_trigger(&info, span("Neon_City"), span("header:a"), 80, 0);
    sfti_info_trigger(&info, span("neon city"), span("sidecar:b"), 95, 0);
    sfti_info_trigger(&info, span("NEON CITY"), span("header:c"), 70, 0);
    sfti_info_trigger(&info, span("neon cit"), span("header:d"), 70, 0);
    sfti_info_trigger(&info, span("\xC3\x89toile"), span("header:e"), 90, 0);
    sfti_info_trigger(&info, span("\xC3\xA9toile"), span("header:f"), 60, 0);
    assert_string_equal(finish(), "neon city:95;\xC3\x89toile:90;neon cit:70");
    assert_int_equal(info.ordered[0]->others->trust, 80);
    assert_int_equal(info.ordered[0]->others->next->trust, 70);
    assert_null(info.ordered[0]->others->next->next);
    assert_null(info.ordered[2]->others);
    sft_trigger_word word;
    assert_int_equal(sft_info_trigger_count(&info), 3);
    assert_true(sft_info_trigger_at(&info, 0, &word));
    assert_true(sft_span_equal(word.text, span("neon city")));
    assert_true(sft_span_equal(word.source, span("sidecar:b")));
    assert_int_equal(word.trust, 95);
    assert_false(sft_info_trigger_at(&info, 3, &word));
    close_all();
}

static void declared_words_send_the_others_away(void **state) {
    const sft_pair pairs[] = {
        { { "ss_tag_frequency", 16 }, span("{\"x\":{\"neonscape\":60,\"night city\":58}}") },
    };
    (void)state;
    open_pairs(pairs, 1);
    sfti_info_trigger(&info, span("neonscape"), span("header:modelspec.trigger_phrase"), 90, 0);
    assert_string_equal(finish(), "neonscape:90");
    assert_int_equal(info.ordered[0]->others->trust, 75);
    assert_int_equal(info.tags.count, 2);
    close_all();
    open_pairs(pairs, 1);
    sfti_info_trigger(&info, span("neonscapes"), span("header:modelspec.trigger_phrase"), 90, 0);
    assert_string_equal(finish(), "neonscapes:90;neonscape:75;night city:75");
    close_all();
    open_pairs(pairs, 1);
    sfti_info_trigger(&info, span("neonscape, rain"), span("sidecar:x"), 95, 0);
    assert_string_equal(finish(), "neonscape, rain:95");
    close_all();
}

/* ── Bounds ── */

static void never_more_than_ten_and_five_hundred(void **state) {
    char text[1024] = "{\"1_x\":{";
    sft_pair pair = { { "ss_tag_frequency", 16 }, { text, 0 } };
    (void)state;
    for (int i = 0; i < 30; i++)
        snprintf(text + strlen(text), 32, "%s\"word%c%c\":9", i ? "," : "", 'a' + i / 26,
                 'a' + i % 26);
    strncat(text, "}}", 3);
    pair.value = span(text);
    open_pairs(&pair, 1);
    finish();
    assert_int_equal(info.triggers.count, 10);
    assert_int_equal(info.tags.count, 30);
    close_all();
    open_pairs(NULL, 0);
    for (int i = 0; i < 700; i++)
        sfti_info_trigger(&info, sfti_info_text(&info, "w%d", i), span("sidecar:x"), 95, i);
    finish();
    assert_int_equal(info.triggers.count, 500);
    assert_int_equal(info.ordered[499]->group, 499);
    close_all();
}

/* Folders beyond those that are told apart, long words, words that are told often. */
static void more_than_is_kept(void **state) {
    static char text[1 << 18];
    sft_pair pair = { { "ss_tag_frequency", 16 }, { text, 0 } };
    (void)state;
    for (size_t folders = 70; folders < 5000; folders += 4500) {
        size_t at = 0;
        for (size_t i = 0; i < folders; i++)
            at += (size_t)snprintf(text + at, sizeof text - at,
                   "%s\"%zu_x\":{\"mikumo\":9,\"rain%zu\":1}", i ? "," : "{", i, i);
        memcpy(text + at, "}", 2);
        pair.value.len = at + 1;
        open_pairs(&pair, 1);
        assert_string_equal(finish(), "mikumo:75");
        const sfti_tag *tag = info.tags.first;
        assert_int_equal(tag->count, 9 * (folders < 4096 ? folders : 4096));
        close_all();
    }
    for (int len = 199; len < 202; len++) {
        size_t at = (size_t)snprintf(text, sizeof text, "{\"1_x\":{\"%0*d\":9,\"rain\":9,\"sun\":9,"
                                     "\"%01000d\":9", len, 0, 0);
        for (int i = 0; i < 200; i++)
            at += (size_t)snprintf(text + at, sizeof text - at, ",\"%c%d\":1", 'a' + i % 26, i);
        memcpy(text + at, "}}", 2);
        pair.value.len = at + 2;
        open_pairs(&pair, 1);
        finish();
        assert_int_equal(info.triggers.count, 2 + (len <= 200));
        assert_int_equal(info.tags.count, 199); /* without the longest */
        close_all();
    }
    open_pairs(NULL, 0);
    for (int i = 0; i < 20; i++) sfti_info_trigger(&info, span("fox"), span("header:a"), 60 + i, 0);
    assert_string_equal(finish(), "fox:79");
    int others = 0;
    for (const sfti_trigger *t = info.ordered[0]->others; t; t = t->next) others++;
    assert_int_equal(others, 19);
    close_all();
    char *long_word = malloc((1 << 20) + 9);
    memset(long_word, 'w', (1 << 20) + 9);
    open_pairs(NULL, 0);
    sfti_info_trigger(&info, (sft_span){ long_word, (1 << 20) + 9 }, span("header:a"), 60, 0);
    got[0] = 0;
    sfti_info_words(&info);
    assert_int_equal(info.ordered[0]->text.len, 1 << 20);
    close_all();
    free(long_word);
}

/* Two million tags and a sentence of megabytes are read in a second or so. */
static void large_texts_are_linear(void **state) {
    size_t count = 600000, cap = count * 24, at;
    char *text = malloc(cap);
    sft_pair pair = { { "ss_tag_frequency", 16 }, { text, 0 } };
    (void)state;
    assert_non_null(text);
    at = (size_t)snprintf(text, cap, "{\"1_x\":{");
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, cap - at, "%s\"w%zu\":9", i ? "," : "", i);
    at += (size_t)snprintf(text + at, cap - at, "}}");
    pair.value.len = at;
    open_pairs(&pair, 1);
    finish();
    assert_int_equal(info.triggers.count, 10);
    assert_int_equal(info.tags.count, 200);
    close_all();
    memset(text, 'x', cap);
    for (size_t i = 5; i < cap; i += 9) text[i] = ' ';
    memcpy(text, "{\"1_x\":{\"", 9);
    memcpy(text + cap - 6, "\":3 }}", 6);
    pair.value.len = cap;
    open_pairs(&pair, 1);
    finish();
    assert_int_equal(info.code, SFT_OK);
    close_all();
    free(text);
}

static void example_a(void **state) {
    const sft_pair pairs[] = {
        { span("ss_keep_tokens"), span("1") },
        { span("ss_output_name"), span("mikumo_v2") },
        { span("ss_dataset_dirs"),
          span("{\"10_mikumo style\": {\"n_repeats\": 10, \"img_count\": 30}, "
               "\"5_mikumo chibi\": {\"n_repeats\": 5, \"img_count\": 10}}") },
        { span("ss_reg_dataset_dirs"),
          span("{\"1_girl\": {\"n_repeats\": 1, \"img_count\": 20}}") },
        { span("ss_tag_frequency"),
          span("{\"10_mikumo style\": {\"mikumo\": 30, \"1girl\": 28, \"solo\": 27, "
               "\"watercolor\": 30, \"long hair\": 18, \"blue eyes\": 12, "
               "\"looking at viewer\": 15, \"flower\": 6}, \"5_mikumo chibi\": {\"mikumo\": 10, "
               "\"chibi\": 10, \"1girl\": 9, \"simple background\": 8}, "
               "\"1_girl\": {\"girl\": 20}}") },
    };
    (void)state;
    open_pairs(pairs, sizeof pairs / sizeof *pairs);
    assert_string_equal(finish(), "mikumo:79;chibi:75@5_mikumo chibi;"
                                  "watercolor:65@10_mikumo style");
    const sfti_tag *tag = info.tags.first;
    assert_memory_equal(tag->text.data, "mikumo", 6);
    assert_int_equal(tag->count, 40);
    tag = tag->next;
    assert_memory_equal(tag->text.data, "1girl", 5);
    assert_true(tag->coverage > 0.924 && tag->coverage < 0.926);
    close_all();
}

/* Lists of data/words.txt are searched by halves. */
static void lists_are_sorted(void **state) {
    static const sfti_producer lists[] = { SFTI_SAYS_GENERIC, SFTI_SAYS_FUNCTION, SFTI_SAYS_COMMON,
                                           SFTI_SAYS_NOUN, SFTI_SAYS_WEAK };
    size_t rows = 0;
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(lists); i++)
        for (const sfti_record_row *row = sfti_rows(sfti_records_built_in(), SFTI_SAYS, lists[i]);
             row; row = sfti_rows_next(sfti_records_built_in(), row), rows++) {
            sft_span rest = sfti_row_text(row), before = { "", 0 }, word;
            while (sfti_next_piece(&rest, ',', &word)) {
                word = sfti_trim(word);
                char key[SFTI_WORD_MOST];
                assert_true(sfti_bytes_compare(before, word) < 0);
                assert_int_equal(sfti_word_key(word, key), word.len);
                assert_memory_equal(key, word.data, word.len);
                before = word;
            }
        }
    assert_int_equal(rows, 9);
    assert_true(sfti_is_generic_tag(span("1boy")) && sfti_is_generic_tag(span("zettai ryouiki")));
    assert_true(sfti_is_generic_tag(span("worst score")) && sfti_is_weak_name(span("xl")));
    assert_true(sfti_is_function_word(span("a")) && sfti_is_common_word(span("young")));
    assert_true(sfti_is_class_noun(span("animal")) && sfti_is_class_noun(span("women")));
    assert_true(sfti_is_function_word(span("The")) && sfti_is_common_word(span("SHOWS")));
    assert_true(sfti_is_generic_tag(span("Source_Anime")) && sfti_is_weak_name(span("V2")));
    assert_false(sfti_is_generic_tag(span("1bo")) || sfti_is_generic_tag(span("zz")));
    assert_false(sfti_is_common_word(span("")) || sfti_is_weak_name(span(",")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_sorted),
        cmocka_unit_test(words_of_data_sets),
        cmocka_unit_test(declared_words),
        cmocka_unit_test(equal_words_are_one),
        cmocka_unit_test(declared_words_send_the_others_away),
        cmocka_unit_test(never_more_than_ten_and_five_hundred),
        cmocka_unit_test(more_than_is_kept),
        cmocka_unit_test(large_texts_are_linear),
        cmocka_unit_test(example_a),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
