#include "faults.h"
#include "unit/make_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ── Files ── */

typedef struct text {
    char at[32768];
    size_t len;
} text;

static void say(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int len = vsnprintf(t->at + t->len, sizeof t->at - t->len, format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof t->at - t->len);
    t->len += (size_t)len;
}

static test_file model_a, model_many, model_big, shards[3];

#define METADATA "\"__metadata__\":{\"format\":\"pt\",\"note\":\"a \\\"quoted\\\" word\"," \
                 "\"sshs_legacy_hash\":\"0\"},"

/* F32 [2,3] with a NaN in it, F16 [4], U8 [] and one without elements, I64 [2]. */
static test_file make_a(void) {
    static unsigned char data[49];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 3);
    memcpy(data + 20, "\0\0\xC0\x7F", 4); /* element [0,1] of w */
    return make_file("{" METADATA
                     "\"b.ids\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                     "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[16,40]},"
                     "\"b.half\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[40,48]},"
                     "\"none\":{\"dtype\":\"F64\",\"shape\":[0,7],\"data_offsets\":[48,48]},"
                     "\"c\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[48,49]}}",
                     data, sizeof data);
}

static test_file make_many(void) {
    static text t;
    say(&t, "{");
    for (int i = 0; i < 300; i++) {
        say(&t, "%s\"layers.%d.weight\":{\"dtype\":\"BF16\",\"shape\":[2,2],"
                "\"data_offsets\":[%d,%d]}", i ? "," : "", (i * 7) % 300, i * 8, i * 8 + 8);
    }
    say(&t, "}");
    return make_file(t.at, NULL, 2400);
}

static test_file make_big(void) {
    return make_file("{\"__metadata__\":{\"a\":\"1\"},"
                     "\"p\":{\"dtype\":\"F32\",\"shape\":[300,300],\"data_offsets\":[0,360000]},"
                     "\"q\":{\"dtype\":\"U8\",\"shape\":[40000],\"data_offsets\":[360000,400000]}"
                     "}", NULL, 400000);
}

static test_file make_shard(int i) {
    char header[512];
    snprintf(header, sizeof header,
             "{\"__metadata__\":{\"format\":\"pt\",\"n\":\"x\"},"
             "\"s%d.b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
             "\"s%d.a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[12,16]}}", i, i);
    return make_file(header, NULL, 16);
}

static void make_models(void) {
    if (model_a.bytes) return;
    model_a = make_a();
    model_many = make_many();
    model_big = make_big();
    for (int i = 0; i < 3; i++) shards[i] = make_shard(i);
}

/* ── Placing them ── */

static void add(const char *path, const test_file *f) {
    os_fake_add_file(path, f->bytes, f->len);
}

static void add_header(const char *path, const char *header, size_t data) {
    test_file f = make_file(header, NULL, data);
    add(path, &f);
    free_file(&f);
}

static void add_text(const char *path, const char *text) {
    os_fake_add_file(path, text, strlen(text));
}

#define SHARD(n) "m-0000" #n "-of-00003.safetensors"
#define INDEX(first) "{\"metadata\":{\"total_size\":48},\"weight_map\":{\"s0.a\":\"" first \
    "\",\"s0.b\":\"" SHARD(0) "\",\"s1.a\":\"" SHARD(1) "\",\"s1.b\":\"" SHARD(1) \
    "\",\"s2.a\":\"" SHARD(2) "\",\"s2.b\":\"" SHARD(2) "\"}}"

static void add_set(const char *folder, const char *index, int shard_count) {
    char path[128];
    for (int i = 0; i < shard_count; i++) {
        snprintf(path, sizeof path, "%s/m-0000%d-of-00003.safetensors", folder, i);
        add(path, &shards[i]);
    }
    snprintf(path, sizeof path, "%s/m.safetensors.index.json", folder);
    add_text(path, index);
}

static void add_tree(void) {
    add("/tree/one.safetensors", &model_a);
    add_set("/tree/set", INDEX(SHARD(0)), 3);
    add("/tree/set/other.safetensors", &shards[1]);
    os_fake_add_link("/tree/link.safetensors", "../m/a.safetensors");
    os_fake_add_link("/tree/lost.safetensors", "nowhere");
    add("/tree/deep/er/x.SFT", &shards[2]);
    add_text("/tree/deep/notes.txt", "no model");
}

/* More than one block of the arena that the names go to. */
static void add_wide(void) {
    static const char name[] = "a-model-of-a-name-so-long-that-forty-do-not-go-into-a-block";
    char path[128];
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "/wide/%s-%d.safetensors", name, i);
        add(path, i % 4 == 3 ? &shards[i % 3] : &model_a);
    }
}

void fault_world(void) {
    make_models();
    os_fake_reset();
    add("/m/a.safetensors", &model_a);
    add("/m/many.safetensors", &model_many);
    add("/m/big.safetensors", &model_big);
    os_fake_add_pipe("/m/pipe", model_a.bytes, model_a.len);
    os_fake_add_file("/m/cut.safetensors", model_a.bytes, model_a.len - 5);
    add_text("/m/page.safetensors", "<!DOCTYPE html><html><head><title>Not found</title>");
    add_header("/m/bad.safetensors",
               "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,2]},"
               "\"b\":{\"dtype\":\"U9\",\"shape\":[2],\"data_offsets\":[2,4]}}", 4);
    add_header("/m/twice.safetensors",
               "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
               "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}", 4);
    add_set("/set", INDEX(SHARD(0)), 3);
    add_text("/set/plain.json", "\n  " INDEX(SHARD(0)));
    add_set("/gap", INDEX(SHARD(0)), 2);
    add_set("/odd", INDEX(SHARD(1)), 3);
    add_tree();
    add_wide();
    os_fake_add_dir("/dir");
}

const void *fault_model(size_t *len) {
    make_models();
    *len = model_a.len;
    return model_a.bytes;
}
