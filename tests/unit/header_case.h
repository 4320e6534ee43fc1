/* A model of one tensor and some metadata, and what is asked of its facts. */
#ifndef HEADER_CASE_H
#define HEADER_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/info.h"

#define SHA "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
#define SHB "abababababababababababababababababababababababababababababababab"
#define AAA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* ── A model of one tensor and this metadata ── */

typedef struct model {
    sft_info info;
    sft_set *set;
    char *bytes;
} model;

static inline sft_span s(const char *text) { return sft_span_cstr(text); }

static inline void open_pairs(model *m, const sft_pair *pairs, size_t count) {
    uint64_t shape[1] = { 1 };
    sft_spec spec = { s("a"), SFT_U8, 1, shape };
    sft_plan *plan;
    sft_file *file;
    memset(m, 0, sizeof *m);
    assert_int_equal(sft_plan_new(&spec, 1, pairs, count, NULL, &plan, NULL), SFT_OK);
    sft_span head = sft_plan_head(plan);
    m->bytes = calloc(1, head.len + 1);
    memcpy(m->bytes, head.data, head.len);
    assert_int_equal(sft_open_memory(m->bytes, head.len + 1, NULL, &file, NULL), SFT_OK);
    sft_plan_free(plan);
    assert_int_equal(sft_set_from_file(file, NULL, &m->set, NULL), SFT_OK);
    m->info.arena.alloc = sfti_allocator(NULL);
    m->info.records = sfti_records_built_in();
    m->info.set = m->set;
    m->info.negative = -1;
    m->info.rating = -1;
}

static inline void read_header(model *m) {
    sfti_info_header(&m->info);
    assert_int_equal(m->info.code, SFT_OK);
}

/* key, value, key, value, …, NULL */
static inline void make(model *m, ...) {
    sft_pair pairs[64];
    size_t count = 0;
    va_list args;
    va_start(args, m);
    for (const char *key = va_arg(args, const char *); key; key = va_arg(args, const char *))
        pairs[count++] = (sft_pair){ s(key), s(va_arg(args, const char *)) };
    va_end(args);
    open_pairs(m, pairs, count);
    read_header(m);
}

static inline void done(model *m) {
    sft_set_close(m->set);
    sfti_arena_free(&m->info.arena);
    free(m->bytes);
}

/* ── What is asked of it ── */

#define SAME(span, text) do { \
        sft_span got_ = (span); \
        if (!sft_span_equal(got_, s(text))) \
            fail_msg("line %d: expected \"%s\", got \"%.*s\"", __LINE__, text, \
                     (int)got_.len, got_.data ? got_.data : ""); \
    } while (0)

static inline sft_span best(const model *m, sft_fact field) {
    const sfti_fact *fact = sfti_info_best(&m->info, field);
    return fact ? fact->value.text : s("(none)");
}

#define FACT(m, field, text) SAME(best(m, SFT_FACT_##field), text)
#define NO_FACT(m, field) assert_null((m)->info.facts[SFT_FACT_##field])
#define TRAIN(m, key, value) SAME((m)->info.training[TRAIN_##key].text, value)
#define NO_TRAIN(m, key) assert_int_equal((m)->info.training[TRAIN_##key].text.len, 0)

static inline void fact_is(const model *m, sft_fact field, const char *text, const char *source,
                    int trust) {
    for (const sfti_fact *fact = m->info.facts[field]; fact; fact = fact->next)
        if (sft_span_equal(fact->value.text, s(text)) && sft_span_equal(fact->source, s(source))
            && fact->trust == trust)
            return;
    fail_msg("no %s \"%s\" of %s with trust %d", sft_fact_name(field), text, source, trust);
}

static inline size_t triggers(const model *m, const char *text, int trust) {
    size_t count = 0;
    for (const sfti_trigger *t = m->info.triggers.first; t; t = t->next)
        count += sft_span_equal(t->text, s(text)) && t->trust == trust;
    return count;
}

static inline bool private_as(const model *m, const char *key, const char *what) {
    for (const sfti_private *p = m->info.privates.first; p; p = p->next)
        if (sft_span_equal(p->key, s(key)) && strcmp(p->what, what) == 0) return true;
    return false;
}

static inline const sfti_claim *claim_of(const model *m, const char *algo) {
    for (const sfti_claim *c = m->info.claims.first; c; c = c->next)
        if (strcmp(c->algo, algo) == 0) return c;
    return NULL;
}

#endif
