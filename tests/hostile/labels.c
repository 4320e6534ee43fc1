#include "labels.h"

#include "safetensors_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ── Values: JSON in a JSON string, all quotes escaped ── */

static void make_tags(text *t, size_t bytes) { /* one folder, every tag another */
    text_str(t, "{\\\"10_a\\\":{");
    for (uint64_t i = 0; t->len + 64 < bytes; i++) {
        text_str(t, i ? ",\\\"tag " : "\\\"tag ");
        text_number(t, i);
        text_str(t, "\\\":5");
    }
    text_str(t, "}}");
}

static void make_tag_folders(text *t, size_t bytes) {
    text_str(t, "{");
    for (uint64_t i = 0; t->len + 64 < bytes; i++) {
        text_str(t, i ? ",\\\"1_c" : "\\\"1_c");
        text_number(t, i);
        text_str(t, "\\\":{\\\"zxc\\\":1,\\\"zxc man\\\":1}");
    }
    text_str(t, "}");
}

static void make_captions(text *t, size_t bytes) {
    text_str(t, "{\\\"10_a\\\":{");
    for (uint64_t i = 0; t->len + 200 < bytes; i++) {
        text_str(t, i ? ",\\\"a photo of zxc man who stands in front of house " : "\\\"");
        text_number(t, i);
        text_str(t, " and looks at the sea, the sun is setting behind him\\\":1");
    }
    text_str(t, "}}");
}

static void make_one_tag(text *t, size_t bytes) {
    text_str(t, "{\\\"10_a\\\":{\\\"");
    memset(text_more(t, bytes), 'x', bytes);
    text_str(t, "\\\":5}}");
}

static void make_commas(text *t, size_t bytes) { /* words that no table knows, declared */
    for (uint64_t i = 0; t->len + 32 < bytes; i++) {
        text_str(t, i ? ",w" : "w");
        text_number(t, i * 7919);
    }
}

static void make_nested(text *t, size_t bytes) {
    memset(text_more(t, bytes), '[', bytes);
}

static void make_markup(text *t, size_t bytes) {
    static const char piece[] = "<b>x</b>&amp;<a href='https://civitai.com/models/1'>y</a><br>";
    while (t->len + sizeof piece < bytes) text_str(t, piece);
}

static void make_links(text *t, size_t bytes) {
    for (uint64_t i = 0; t->len + 80 < bytes; i++) {
        text_str(t, " https://civitai.com/models/");
        text_number(t, i);
    }
}

static void make_base64(text *t, size_t bytes) {
    text_str(t, "data:image/png;base64,iVBORw0KGgo");
    memset(text_more(t, bytes), 'A', bytes);
}

static void make_graph(text *t, size_t bytes) {
    text_str(t, "{");
    for (uint64_t i = 0; t->len + 160 < bytes; i++) {
        text_str(t, i ? ",\\\"" : "\\\"");
        text_number(t, i);
        text_str(t, "\\\":{\\\"class_type\\\":\\\"LoraLoader\\\",\\\"inputs\\\":"
                    "{\\\"lora_name\\\":\\\"a\\\",\\\"strength_model\\\":1}}");
    }
    text_str(t, "}");
}

const label_case label_cases[] = {
    { "tags, each another", make_tags, "ss_tag_frequency" },
    { "tags of many folders", make_tag_folders, "ss_tag_frequency" },
    { "tags that are sentences", make_captions, "ss_tag_frequency" },
    { "one tag", make_one_tag, "ss_tag_frequency" },
    { "tags, open brackets", make_nested, "ss_tag_frequency" },
    { "data sets", make_tag_folders, "ss_dataset_dirs" },
    { "trigger words", make_commas, "modelspec.trigger_phrase" },
    { "tags of modelspec", make_commas, "modelspec.tags" },
    { "a description of markup", make_markup, "modelspec.description" },
    { "a description of links", make_links, "modelspec.description" },
    { "a thumbnail", make_base64, "modelspec.thumbnail" },
    { "a graph", make_graph, "prompt" },
};
const size_t label_case_count = sizeof label_cases / sizeof *label_cases;

/* ── One label ── */

typedef struct held {
    size_t now, peak;
} held;

static void *held_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    held *h = ctx;
    h->now += new_size - old_size;
    if (h->now > h->peak) h->peak = h->now;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* A sink that counts. */
static sft_code count_bytes(void *ctx, uint64_t offset, const void *bytes, size_t len,
                            sft_error *err) {
    (void)offset, (void)bytes, (void)err;
    *(size_t *)ctx += len;
    return SFT_OK;
}

static const sft_sink_vtable count_bytes_sink_vtable = {
    sizeof(sft_sink_vtable), NULL, count_bytes, NULL, NULL, NULL, NULL
};

static void make_label(label_measure *m, sft_file *file, const sft_allocator *alloc) {
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    sft_sink sink = { &m->json, &count_bytes_sink_vtable, false };
    sft_set *set;
    sft_info *info;
    options.alloc = alloc;
    m->code = (int)sft_set_from_file(file, "m", &set, NULL);
    if (m->code) return;
    m->code = (int)sft_info_open(set, NULL, NULL, &options, &info, NULL);
    if (m->code == 0) {
        m->words = sft_info_trigger_count(info);
        m->code = (int)sft_info_json(info, "m", false, &sink, NULL);
        sft_info_close(info);
    }
    sft_set_close(set);
}

label_measure label_once(const label_case *one, size_t bytes) {
    label_measure m;
    text t = { 0 };
    held h = { 0, 0 };
    sft_allocator alloc = { held_resize, &h };
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    memset(&m, 0, sizeof m);
    text_put(&t, "\0\0\0\0\0\0\0\0", 8);
    text_str(&t, "{\"__metadata__\":{\"ss_output_name\":\"zxc\",\"");
    text_str(&t, one->key);
    text_str(&t, "\":\"");
    one->make(&t, bytes);
    text_str(&t, "\"}}");
    for (int i = 0; i < 8; i++) t.at[i] = (char)((uint64_t)(t.len - 8) >> 8 * i);
    options.alloc = &alloc;
    clock_t start = clock();
    m.code = (int)sft_open_memory(t.at, t.len, &options, &file, NULL);
    if (m.code == 0) make_label(&m, file, &alloc);
    m.seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    m.peak = h.peak;
    m.left = h.now;
    text_free(&t);
    return m;
}
