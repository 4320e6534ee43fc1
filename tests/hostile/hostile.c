/* Hostile headers (memory at most six times the header) and labels of hostile metadata: no
 * allocation per tensor, the right verdict, and time that grows with the bytes. Takes the
 * size in MB (default 100); prints "N passed, N failed".
 *
 * The header comes from a source that lends nothing, so that its copy is counted too. */
#include "collide.h"
#include "labels.h"
#include "safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned passed, failed;

static void expect(bool right, const char *what, const char *detail) {
    if (right) passed++;
    else failed++;
    if (!right) printf("FAILED %s: %s\n", what, detail);
}

/* ── A counting allocator ── */

typedef struct counter {
    size_t now, peak, calls;
} counter;

static void *count_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    counter *c = ctx;
    if (new_size) c->calls++;
    c->now += new_size - old_size;
    if (c->now > c->peak) c->peak = c->now;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* ── A file that is only a header ── */

typedef struct hostile {
    const text *header;
    uint8_t length[8];
} hostile;

static sft_code read_header(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    const hostile *h = ctx;
    (void)err;
    *got = 0;
    if (offset < 8) {
        *got = len < 8 - offset ? len : (size_t)(8 - offset);
        memcpy(into, h->length + offset, *got);
    }
    if (*got == len || offset + *got - 8 >= h->header->len) return SFT_OK;
    size_t from = (size_t)(offset + *got - 8), more = len - *got;
    if (more > h->header->len - from) more = h->header->len - from;
    memcpy((char *)into + *got, h->header->at + from, more);
    *got += more;
    return SFT_OK;
}

static const sft_source_vtable header_source_vtable = {
    sizeof(sft_source_vtable), read_header, NULL, NULL, NULL
};

static sft_source source_of(hostile *h, const text *header) {
    h->header = header;
    for (int i = 0; i < 8; i++) h->length[i] = (uint8_t)((uint64_t)header->len >> 8 * i);
    return (sft_source){ h, &header_source_vtable, 8 + header->len + header->data, NULL, false };
}

/* ── One open, measured ── */

typedef struct measure {
    sft_code code;
    counter memory;
    double seconds; /* of processor time */
    size_t tensors, pairs;
} measure;

static measure open_once(const text *header, sft_level level) {
    measure m;
    memset(&m, 0, sizeof m);
    sft_allocator alloc = { count_resize, &m.memory };
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.level = level;
    options.alloc = &alloc;
    options.max_header_bytes = UINT64_C(1) << 30;
    hostile h;
    sft_file *file;
    clock_t start = clock();
    m.code = sft_open_source(source_of(&h, header), &options, &file, NULL);
    m.seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    m.tensors = m.code ? 0 : sft_file_tensor_count(file);
    m.pairs = m.code ? 0 : sft_file_metadata_count(file);
    sft_close(file);
    return m;
}

static void print_row(const char *name, const text *header, const measure *m, double ratio) {
    printf("%-40s %8.1f MB  %-22s %9zu %8.2fx %6zu %9.1f ms %6.2f\n", name,
           (double)header->len / 1e6, m->code ? sft_code_describe(m->code)->name : "ok",
           m->tensors + m->pairs, (double)m->memory.peak / (double)header->len, m->memory.calls,
           m->seconds * 1e3, ratio);
}

static void check_row(const char *name, const text *header, const measure *m, sft_code want,
                      double most) {
    double cap = most * (double)header->len + (1 << 18);
    expect(m->code == want, name, sft_code_describe(m->code)->name);
    expect((double)m->memory.peak <= cap, name, "too much memory");
    expect(m->memory.calls <= 64 + header->len / 32768, name, "too many allocations");
    expect(m->memory.now == 0, name, "memory not released");
}

/* ── The cases ── */

typedef struct hostile_case {
    const char *name;
    header_maker make;
    sft_level level;
    sft_code want;
} hostile_case;

static const hostile_case cases[] = {
    { "zeros in an ignored field", make_zeros, SFT_LEVEL_DEFAULT, SFT_OK },
    { "millions of ignored fields", make_fields, SFT_LEVEL_DEFAULT, SFT_OK },
    { "dimensions, compat", make_dims, SFT_LEVEL_COMPAT, SFT_OK },
    { "dimensions, default", make_dims, SFT_LEVEL_DEFAULT, SFT_RANK_TOO_LARGE },
    { "empty tensors as arrays", make_empty_arrays, SFT_LEVEL_COMPAT, SFT_OK },
    { "empty tensors as objects", make_empty_objects, SFT_LEVEL_DEFAULT, SFT_OK },
    { "one name, compat", make_same_name, SFT_LEVEL_COMPAT, SFT_OK },
    { "one name, default", make_same_name, SFT_LEVEL_DEFAULT, SFT_TENSOR_DUPLICATE },
    { "names of escapes", make_escaped_names, SFT_LEVEL_DEFAULT, SFT_OK },
    { "tensors in reversed order", make_reversed, SFT_LEVEL_DEFAULT, SFT_OK },
    { "metadata, short pairs", make_pairs, SFT_LEVEL_DEFAULT, SFT_OK },
    { "metadata, one key, compat", make_same_key, SFT_LEVEL_COMPAT, SFT_OK },
    { "metadata, one value of escapes", make_value, SFT_LEVEL_DEFAULT, SFT_OK },
    { "open brackets", make_brackets, SFT_LEVEL_COMPAT, SFT_JSON_DEPTH },
    { "one number", make_digits, SFT_LEVEL_COMPAT, SFT_JSON_NUMBER },
    { "white space", make_blank, SFT_LEVEL_STRICT, SFT_OK },
    { "a string without end", make_backslashes, SFT_LEVEL_COMPAT, SFT_JSON_SYNTAX },
    { "quotes", make_quotes, SFT_LEVEL_COMPAT, SFT_JSON_SYNTAX },
};

/* A quarter of the size first, for the growth of the time. */
static void run_case(const hostile_case *c, size_t bytes) {
    text small = { 0 }, full = { 0 };
    c->make(&small, bytes / 4);
    measure quarter = open_once(&small, c->level);
    text_free(&small);
    c->make(&full, bytes);
    measure whole = open_once(&full, c->level);
    print_row(c->name, &full, &whole, quarter.seconds > 0 ? whole.seconds / quarter.seconds : 0);
    check_row(c->name, &full, &whole, c->want, 6);
    text_free(&full);
}

static void run_real(size_t tensors) {
    char name[64];
    text header = { 0 };
    make_real(&header, tensors);
    snprintf(name, sizeof name, "a real model, %zu tensors", tensors);
    measure m = open_once(&header, SFT_LEVEL_DEFAULT);
    print_row(name, &header, &m, 0);
    check_row(name, &header, &m, SFT_OK, 2);
    expect(m.tensors == tensors, name, "tensors are missing");
    text_free(&header);
}

static void run_deep(void) {
    for (size_t depth = 126; depth <= 129; depth++) {
        char name[64];
        text header = { 0 };
        make_deep(&header, depth);
        snprintf(name, sizeof name, "nesting of %zu", depth);
        measure m = open_once(&header, SFT_LEVEL_DEFAULT);
        print_row(name, &header, &m, 0);
        expect(m.code == (depth <= 127 ? SFT_OK : SFT_JSON_DEPTH), name, "wrong verdict");
        text_free(&header);
    }
}

/* ── Names that collide ── */

typedef struct hash_case {
    const char *name;
    hash_step step;
    uint32_t start;
} hash_case;

static const hash_case hashes[] = {
    { "random", NULL, 0 },
    { "djb2", hash_djb2, 5381 },
    { "FNV-1a 32", hash_fnv1a, UINT32_C(2166136261) },
    { "FNV-1a 64, low half", hash_fnv1a_64_low, UINT32_C(0x84222325) },
    { "CRC-32", hash_crc32, UINT32_C(0xFFFFFFFF) },
};

static void random_name(uint64_t *state, char out[COLLIDE_NAME]) {
    for (int i = 0; i < COLLIDE_NAME; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        out[i] = (char)('a' + (*state >> 40) % 26);
    }
}

static uint32_t hash_name(const hash_case *h, const char name[COLLIDE_NAME]) {
    uint32_t state = h->start;
    for (int i = 0; i < COLLIDE_NAME; i++) state = h->step(state, (uint8_t)name[i]);
    return state;
}

static void expect_collisions(const hash_case *h, const collision *c) {
    char first[COLLIDE_NAME], name[COLLIDE_NAME];
    uint32_t differ = 0;
    if (!h->step) return;
    collide_name(c, 0, first);
    for (uint32_t i = 1; i < 1 << STAGES; i += 997) {
        collide_name(c, i, name);
        differ += hash_name(h, name) != hash_name(h, first);
    }
    expect(differ == 0, h->name, "the names do not collide");
}

/* keys: as metadata keys instead of tensors. */
static void make_names(text *t, const hash_case *h, const collision *c, bool keys,
                       uint32_t count) {
    static const char tensor[] = "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    char name[COLLIDE_NAME];
    uint64_t state = 1;
    text_str(t, keys ? "{\"__metadata__\":{" : "{");
    for (uint32_t i = 0; i < count; i++) {
        if (h->step) collide_name(c, i, name);
        else random_name(&state, name);
        text_str(t, i ? ",\"" : "\"");
        text_put(t, name, sizeof name);
        text_str(t, keys ? "\":\"\"" : tensor);
    }
    text_str(t, keys ? "}}" : "}");
}

static double run_names(const hash_case *h, bool keys, uint32_t count, double random_time) {
    char title[64];
    text header = { 0 };
    collision c;
    memset(&c, 0, sizeof c);
    expect(!h->step || !collide(h->step, h->start, &c), h->name, "no collisions found");
    expect_collisions(h, &c);
    make_names(&header, h, &c, keys, count);
    measure best = open_once(&header, SFT_LEVEL_DEFAULT);
    for (int i = 0; i < 2; i++) {
        measure again = open_once(&header, SFT_LEVEL_DEFAULT);
        if (again.seconds < best.seconds) best = again;
    }
    snprintf(title, sizeof title, "%s colliding under %s", keys ? "keys" : "names", h->name);
    double ratio = random_time > 0 ? best.seconds / random_time : 0;
    print_row(title, &header, &best, ratio);
    check_row(title, &header, &best, SFT_OK, 6);
    expect(best.tensors + best.pairs == count, title, "names are missing");
    expect(ratio <= 4, title, "more than four times the time of random names");
    text_free(&header);
    return best.seconds;
}

/* ── Labels ── */

/* Memory: three times the bytes, and 64 MiB for tables of words. Four times the bytes may take
 * twelve times as long, where it is long enough to be measured: a square would be sixteen. */
static void run_label(const label_case *one, size_t bytes) {
    label_measure quarter = label_once(one, bytes / 4), whole = label_once(one, bytes);
    double growth = quarter.seconds > 0 ? whole.seconds / quarter.seconds : 0;
    printf("%-40s %8.1f MB  %-22s %9zu %8.2fx %6s %9.1f ms %6.2f\n", one->name,
           (double)bytes / 1e6, whole.code ? sft_code_describe((sft_code)whole.code)->name : "ok",
           whole.words, (double)whole.peak / (double)bytes, "", whole.seconds * 1e3, growth);
    expect(whole.code == SFT_OK, one->name, "no label");
    expect(whole.peak <= 3 * bytes + (64 << 20), one->name, "too much memory");
    expect(whole.left == 0, one->name, "memory not released");
    expect(whole.json > 1000 && whole.json < bytes + (1 << 20), one->name, "a label too long");
    expect(quarter.seconds < 0.02 || growth < 12, one->name, "time grows faster than the bytes");
}

int main(int argc, char **argv) {
    long megabytes = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
    size_t bytes = (size_t)(megabytes > 0 ? megabytes : 100) * 1000000;
    uint32_t names = bytes >= 100000000 ? UINT32_C(1) << STAGES : (uint32_t)(bytes / 100);
    printf("%-40s %11s  %-22s %9s %9s %6s %12s %6s\n", "header", "size", "verdict", "entries",
           "memory", "allocs", "time", "growth");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&cases[i], bytes);
    run_deep();
    if (bytes >= 100000000) run_real(700000);
    run_real(92000);
    for (int keys = 0; keys < 2; keys++) {
        double random_time = 0;
        for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
            double seconds = run_names(&hashes[i], keys, names, random_time);
            if (i == 0) random_time = seconds;
        }
    }
    for (size_t i = 0; i < label_case_count; i++) run_label(&label_cases[i], bytes / 10 * 9);
    printf("memory: peak over the header's size; growth: time over that of a quarter of the\n"
           "size (names: over that of random names)\n%u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}
