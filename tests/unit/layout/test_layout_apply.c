/* Tensors by rules: what each rule makes of shapes and bytes, and what it refuses. What diffusers'
 * converters make is in tests/layout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layout/layout.h"
#include "unit/make_file.h"

#include <stdio.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define LONG_50 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LONG_500 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50

static sft_span span(const char *text) {
    return (sft_span){ text, strlen(text) };
}

typedef struct apply_case {
    const char *rules; /* lines of the part, without the four blanks */
    const char *way;   /* "to", diffusers' names; "back"; "to-to", "back-back": as they are */
    const char *tensors; /* "NAME DTYPE SHAPE", parted by ';'; byte i of all is i */
    const char *says; /* "NAME: words of a refusal", or "=NAME[SHAPE]BYTES;..."; "?NAME": a tensor
                         that no rule knows */
} apply_case;

static size_t read_parts(const char *text, const sft_source *source, sft_part *out, char *names,
                         uint64_t *shapes) {
    size_t count = 0;
    uint64_t begin = 0;
    for (const char *line = text; *line; line += strcspn(line, ";"), line += *line == ';') {
        char dtype[16], shape[128];
        int used = 0;
        assert_int_equal(sscanf(line, "%1023s %15s %127[^;]%n", names, dtype, shape, &used), 3);
        sft_part *part = &out[count++];
        int at = 0;
        while (strcmp(sft_dtype_describe((sft_dtype)at)->name, dtype) != 0) at++;
        *part = (sft_part){ .source = source, .begin = begin };
        part->spec = (sft_spec){ span(names), (sft_dtype)at, 0, shapes };
        for (const char *d = shape; *d && *d != '-'; d += strcspn(d, ","), d += *d == ',')
            *shapes++ = strtoull(d, NULL, 10), part->spec.rank++;
        names += part->spec.name.len + 1;
        uint64_t bytes = sfti_layout_bytes(&part->spec);
        begin += bytes < 4096 ? bytes : 0;
    }
    return count;
}

static void told(const sfti_layout_out *out, const sft_part *parts, size_t count,
                 const bool *unmatched, char *text, size_t cap) {
    size_t at = 0;
    *text = '\0';
    for (size_t i = 0; i < out->count; i++) {
        const sft_part *part = &out->parts[i];
        at += (size_t)snprintf(text + at, cap - at, "%s%.*s[", i ? ";" : "=",
                               (int)part->spec.name.len, part->spec.name.data);
        for (uint32_t d = 0; d < part->spec.rank; d++)
            at += (size_t)snprintf(text + at, cap - at, "%s%llu", d ? "," : "",
                                   (unsigned long long)part->spec.shape[d]);
        at += (size_t)snprintf(text + at, cap - at, "]");
        uint64_t bytes = sfti_layout_bytes(&part->spec);
        for (uint64_t k = 0; bytes < 64 && k < bytes; k++) {
            uint8_t byte;
            size_t got = 0;
            assert_int_equal(sft_source_read(part->source, part->begin + k, &byte, 1, &got, NULL),
                             SFT_OK);
            at += (size_t)snprintf(text + at, cap - at, "%s%u", k ? "," : "",
                                   got ? (unsigned)byte : 999);
        }
    }
    for (size_t i = 0; i < count; i++)
        if (unmatched[i])
            at += (size_t)snprintf(text + at, cap - at, "?%.*s", (int)parts[i].spec.name.len,
                                   parts[i].spec.name.data);
}

static bool apply_holds(const apply_case *c) {
    static uint8_t bytes[4096];
    static char names[8192], rules[4096], found[4096];
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sft_source source = sft_source_memory(bytes, sizeof bytes);
    sfti_layout_text layouts;
    sfti_layout_out out;
    sft_error err = SFT_ERROR_INIT;
    sft_part parts[16];
    uint64_t shapes[64];
    bool unmatched[16] = { false };
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    size_t at = (size_t)snprintf(rules, sizeof rules, "part a b\n    ");
    for (const char *r = c->rules; *r; r++) {
        rules[at++] = *r;
        if (*r == '\n') at += (size_t)snprintf(rules + at, sizeof rules - at, "    ");
    }
    rules[at] = '\0';
    if (sfti_layouts_of_text(&arena, (sft_span){ rules, at }, &layouts, &err))
        print_error("%s: %s\n", rules, err.message);
    assert_int_equal(err.code, SFT_OK);
    size_t count = read_parts(c->tensors, &source, parts, names, shapes);
    sfti_side from = *c->way == 't' ? SFTI_ORIGINAL : SFTI_DIFFUSERS;
    sfti_side to = strchr(c->way, '-') ? from : (sfti_side)(1 - from);
    sfti_layout_out_begin(&out, NULL);
    sft_code code = sfti_layout_apply(&layouts, layouts.parts, from, to, parts, count,
                                      (sft_span){ "", 0 }, &out, unmatched, &err);
    if (!code) told(&out, parts, count, unmatched, found, sizeof found);
    else
        (void)snprintf(found, sizeof found, "%.*s: %s", (int)err.tensor_len, err.tensor,
                       err.message);
    bool fine = code ? strncmp(found, c->says, strlen(c->says)) == 0 : strcmp(found, c->says) == 0;
    if (!fine)
        print_error("%s\n  %s\n  expected %s\n  found %s\n", rules, c->tensors, c->says, found);
    sfti_layout_out_free(&out);
    sfti_arena_free(&arena);
    return fine;
}

static void cases_hold(const apply_case *cases, size_t count) {
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) failed += !apply_holds(&cases[i]);
    assert_int_equal(failed, 0);
}

static void applies_rules_to_one(void **unused) {
    static const apply_case cases[] = {
        { "x = y", "to", "x U8 2", "=y[2]0,1" },
        { "x = y", "back", "y U8 2;z U8 1", "=x[2]0,1?z" },
        { "x = y", "to", "x F4 2;x.absmax U8 1", "=y[2]0;y.absmax[1]1" },
        { "x = y", "to", "x U8 1,1,1,1,1,1",
          "x: expected at most 5 dimensions, found U8 [1, 1, 1, 1, 1, 1]" },
        { "x = y\nz = y", "to", "x U8 1;z U8 1",
          "y: expected one tensor that becomes it in the other layout, found two" },
        { "x.* = " LONG_500 ".*", "to", "x.bbbbbbbbbbbbbbbb U8 1", "x.bbbbbbbbbbbbbbbb: expected a "
          "shorter name" },
        { "x.* = " LONG_500 ".*", "to", "x.b U8 1", "=" LONG_500 ".b[1]0" },
        { "x = y\nkeep z", "to", "x U8 1;z U8 1", "=y[1]0;z[1]1" },
        { "a = b adapters\nx = y", "to", "x U8 1;a U8 1", "=y[1]0?a" },
        { "x = y when=z\nv = y", "back", "y U8 1", "=v[1]0" },
        { "x = y when=z\nv = y\nw = z", "back", "y U8 1;z U8 1", "=x[1]0;w[1]1" },
        /* as they are */
        { "a = c adapters\nx = y", "to-to", "x U8 1;a U8 1;y U8 1", "=x[1]0?a?y" },
        { "a = c adapters\nx = [y,z]", "back-back", "x U8 1;y U8 1;z U8 1;c U8 1",
          "=y[1]1;z[1]2?x?c" },
        /* halves of the rows */
        { "x = y swap", "to", "x U8 4,2", "=y[4,2]4,5,6,7,0,1,2,3" },
        { "x = y swap", "back", "y.weight U8 2", "=x.weight[2]1,0" },
        { "x = y swap", "to", "x U8 0,2", "=y[0,2]" },
        { "x = y swap", "to", "x U8 3,2",
          "x: expected an even number of rows of whole bytes, found U8 [3, 2]" },
        { "x = y swap", "to", "x U8 -",
          "x: expected an even number of rows of whole bytes, found U8 []" },
        { "x = y swap", "to", "x F4 2,1",
          "x: expected an even number of rows of whole bytes, found" },
        { "x = y swap", "to", "x.absmax U8 2",
          "x.absmax: expected weights that are not quantised, for the other layout" },
        { "x = y swap-pair", "to", "x U8 4,2", "=y[4,2]4,5,6,7,0,1,2,3" },
        { "x = y swap-pair", "to", "x U8 4,1", "=y[4,1]0,1,2,3" },
        { "x = y swap-pair", "to", "x.bias U8 4;x.weight U8 4,2",
          "=y.bias[4]2,3,0,1;y.weight[4,2]8,9,10,11,4,5,6,7" },
        { "x = y swap-pair", "to", "x.bias U8 4;x.weight U8 4",
          "=y.bias[4]0,1,2,3;y.weight[4]4,5,6,7" },
        { "x = y swap-pair", "to", "x.bias U8 4", "=y.bias[4]0,1,2,3" },
        { "x.weight = y.weight swap-pair", "to", "x.weight U8 4", "=y.weight[4]0,1,2,3" },
        { "x = y swap-pair", "to", "x U8 4", "=y[4]0,1,2,3" },
        /* other shapes */
        { "x = y transpose", "to", "x U8 2,3", "=y[3,2]0,3,1,4,2,5" },
        { "x = y transpose", "back", "y F16 3,2",
          "=x[2,3]0,1,4,5,8,9,2,3,6,7,10,11" },
        { "x = y transpose\nz = v transpose", "to", "x U8 2,2;z U8 2,2",
          "=y[2,2]0,2,1,3;v[2,2]4,6,5,7" },
        { "x = y transpose", "to", "x U8 6",
          "x: expected a matrix of whole bytes, at most 256 MiB, found" },
        { "x = y transpose", "to", "x F4 2,2", "x: expected a matrix of whole bytes" },
        { "x = y transpose", "to", "x U8 16385,16384", "x: expected a matrix of whole bytes" },
        { "x = y squeeze", "to", "x U8 2,3,1,1", "=y[2,3]0,1,2,3,4,5" },
        { "x = y squeeze", "back", "y U8 2,3", "=x[2,3,1,1]0,1,2,3,4,5" },
        { "x = y squeeze", "to", "x U8 2,3",
          "x: expected a convolution of 1 x 1, found U8 [2, 3]" },
        { "x = y squeeze", "to", "x U8 2,3,2,1", "x: expected a convolution of 1 x 1" },
        { "x = y squeeze", "to", "x U8 2,3,1,2", "x: expected a convolution of 1 x 1" },
        { "x = y squeeze", "back", "y U8 2,3,1,1", "y: expected a matrix, found" },
        { "x = y flat", "to", "x U8 1,3,1,1", "=y[3]0,1,2" },
        { "x = y flat", "back", "y U8 3", "=x[1,3,1,1]0,1,2" },
        { "x = y flat", "to", "x U8 3", "x: expected a shape of [1, n, 1, 1], found U8 [3]" },
        { "x = y flat", "to", "x U8 2,3,1,1", "x: expected a shape of [1, n, 1, 1]" },
        { "x = y flat", "to", "x U8 1,3,2,1", "x: expected a shape of [1, n, 1, 1]" },
        { "x = y flat", "to", "x U8 1,3,1,2", "x: expected a shape of [1, n, 1, 1]" },
        { "x = y flat", "back", "y U8 3,1", "y: expected a vector, found U8 [3, 1]" },
        { "x = y fold=2", "to", "x U8 6", "=y[2,3]0,1,2,3,4,5" },
        { "x = y fold=2", "back", "y U8 2,3", "=x[6]0,1,2,3,4,5" },
        { "x = y fold=2", "to", "x U8 5", "x: expected a vector that divides into these rows" },
        { "x = y fold=2", "to", "x U8 2,3", "x: expected a vector that divides into these rows" },
        { "x = y fold=2", "back", "y U8 3,2",
          "y: expected a matrix of these rows, found U8 [3, 2]" },
        { "x = y fold=2", "back", "y U8 2", "y: expected a matrix of these rows, found U8 [2]" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

#define FITS "rows that divide into those of the layers that it holds"

static void applies_rules_to_several(void **unused) {
    static const apply_case cases[] = {
        { "x = [q,k]", "to", "x U8 4,1", "=q[2,1]0,1;k[2,1]2,3" },
        { "x = [q,k]", "to", "x U8 4", "=q[2]0,1;k[2]2,3" },
        { "x = [q,k]", "to", "x U8 -", "x: expected " FITS },
        { "x = [q,k]", "to", "x U8 3,1", "x: expected " FITS },
        { "x = [q,k]", "to", "x U8 0,1", "x: expected " FITS },
        { "x = [q,k]", "to", "x F4 2,1", "x: expected " FITS },
        { "x = [q,k]", "to", "x U8 2,1,1,1,1,1", "x: expected " FITS },
        { "x = [q,k]", "to", "x U8 2,4294967296,4294967296", "x: expected " FITS },
        { "x = [q,k] sizes=1,*", "to", "x U8 3,2", "=q[2,2]0,1,2,3;k[1,2]4,5" },
        { "x = [q,k] sizes=1,2", "to", "x U8 3,1", "=q[1,1]0;k[2,1]1,2" },
        { "x = [q,k] sizes=1,2", "to", "x U8 4,1", "x: expected " FITS },
        { "x = [q,k] sizes=1,*", "to", "x.weight U8 3,2;x.bias U8 3",
          "=q.weight[2,2]0,1,2,3;k.weight[1,2]4,5;q.bias[2]6,7;k.bias[1]8" },
        { "x = [q,k] sizes=1,*", "to", "x.bias U8 3", "x.bias: expected " FITS },
        { "x = [q,k] squeeze", "to", "x U8 2,2,1,1", "=q[1,2]0,1;k[1,2]2,3" },
        { "x = [q,k] squeeze", "to", "x U8 2,2", "x: expected a convolution of 1 x 1" },
        { "x = [q,k] squeeze", "to", "x U8 2,2,2,1", "x: expected a convolution of 1 x 1" },
        { "x = [q,k] squeeze", "to", "x U8 2,2,1,2", "x: expected a convolution of 1 x 1" },
        { "x = [" LONG_500 "aaaaaa,k]", "to", "x.weight U8 2",
          "x.weight: expected a shorter name" },
        /* and back, whichever of them comes first */
        { "x = [q,k]", "back", "q U8 1,2;k U8 1,2", "=x[2,2]0,1,2,3" },
        { "x = [q,k]", "back", "k U8 1,2;q U8 1,2;z U8 1", "=x[2,2]2,3,0,1?z" },
        { "x = [q,k] squeeze", "back", "q U8 1,2;k U8 1,2", "=x[2,2,1,1]0,1,2,3" },
        { "x = [q,k] squeeze", "back", "q U8 1,2,1;k U8 1,2,1", "q: expected a matrix, found" },
        { "x = [q,k]", "back", "q U8 1,2",
          "q: expected k beside it, of one tensor of the other layout, found none" },
        { "x = [q,k]", "back", "q U8 1,2;k I8 1,2",
          "k: expected the dtype and columns of the others of one tensor of the other layout" },
        { "x = [q,k]", "back", "q U8 1,2;k U8 1,3", "k: expected the dtype and columns" },
        { "x = [q,k]", "back", "q U8 1,2;k U8 1", "k: expected the dtype and columns" },
        { "x = [q,k]", "back", "q U8 -;k U8 1", "q: expected the dtype and columns" },
        { "x = [q,k]", "back", "q U8 1,1,1,1,1,1;k U8 1", "q: expected the dtype and columns" },
        { "x = [q,k]", "back", "q U8 9223372036854775808,0;k U8 9223372036854775808,0",
          "k: expected the dtype and columns" },
        { "x = [q,k]", "back", "q U8 1,2;k U8 2,2",
          "q: expected rows that are those of one tensor of the other layout" },
        { "x = [q,k]", "back", "q U8 1,2;k U8 3,2",
          "q: expected as many rows as its place in the other layout has, found U8 [1, 2]" },
        { "x = [q,k] sizes=1,2", "back", "q U8 2,1;k U8 1,1", "q: expected as many rows as its" },
        { "x = [q,k]", "back", "q F4 1,1;k F4 1,1",
          "q: expected rows that are those of one tensor of the other layout" },
        { "x.# = [q,k]", "back", "q U8 1;k U8 1", "q: expected a shorter name" },
    };
    (void)unused;
    cases_hold(cases, COUNT(cases));
}

/* Marks of a part: names, with and without sizes, that are there or are not. */
static void looks_at_marks(void **unused) {
    static const struct { const char *marks; bool hold; } cases[] = {
        { "x", true }, { "x y", true }, { "x z", false }, { "!z", true }, { "!x", false },
        { "x[4,3]", true }, { "x[4,*]", true }, { "x[*,3]", true }, { "x[4,4]", false },
        { "x[4]", false }, { "x[4,3,1]", false }, { "!x[4,3]", false }, { "!x[4,4]", true },
        { "!x[4]", true }, { "z[4]", false }, { "!z[4]", true }, { "y[12]", true },
        { "y[1*]", false }, { "y[1]", false }, { "y[]", false }, { "", true },
    };
    static uint8_t none;
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sft_source source = sft_source_memory(&none, 1);
    sft_part parts[4];
    uint64_t shapes[8];
    char names[2048];
    sfti_names table;
    (void)unused;
    size_t count = read_parts("x U8 4,3;y U8 12", &source, parts, names, shapes);
    assert_true(sfti_layout_names(parts, count, &arena, &table));
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool hold = sfti_layout_marks_hold(span(cases[i].marks), &table, parts);
        if (hold != cases[i].hold) print_error("%s\n", cases[i].marks);
        assert_int_equal(hold, cases[i].hold);
    }
    sfti_naming_part unmarked = { .marks = { { "", 0 }, { "x", 1 } } };
    assert_false(sfti_layout_has_marks(&unmarked, SFTI_ORIGINAL, &table, parts));
    assert_true(sfti_layout_has_marks(&unmarked, SFTI_DIFFUSERS, &table, parts));
    sfti_arena_free(&arena);
}

/* Bytes that are made of others: any stretch, past the end, and of a source that ends early. */
static void reads_what_it_makes(void **unused) {
    static const char text[] = "part a b\n    x = y swap\n    m = n transpose\n";
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    static char names[2048];
    sfti_layout_text layouts;
    uint8_t bytes[12] = { 0, 1, 2, 3, 10, 11, 12, 20, 21, 22, 0, 0 }, into[16];
    test_file file = { bytes, sizeof bytes, 0 };
    test_source from = make_source(&file);
    sft_source source = source_of(&from, sizeof bytes);
    sft_part parts[4];
    uint64_t shapes[8];
    bool unmatched[2];
    size_t got;
    sft_error err = SFT_ERROR_INIT;
    (void)unused;
    assert_int_equal(sfti_layouts_of_text(&arena, span(text), &layouts, NULL), SFT_OK);
    size_t count = read_parts("x U8 4;m U8 2,3", &source, parts, names, shapes);
    sfti_layout_out out;
    sfti_layout_out_begin(&out, NULL);
    assert_int_equal(sfti_layout_apply(&layouts, layouts.parts, SFTI_ORIGINAL, SFTI_DIFFUSERS,
                                       parts, count, (sft_span){ "", 0 }, &out, unmatched, NULL),
                     SFT_OK);
    static const uint8_t whole[] = { 2, 3, 0, 1, 10, 20, 11, 21, 12, 22 };
    for (size_t at = 0; at <= sizeof whole; at++)
        for (size_t len = 1; len < 12; len++) {
            size_t left = sizeof whole - at < len ? sizeof whole - at : len;
            assert_int_equal(sft_source_read(&out.source, at, into, len, &got, NULL), SFT_OK);
            assert_int_equal(got, left);
            assert_memory_equal(into, whole + at, left);
        }
    assert_null(sfti_layout_segment_at(&out, sizeof whole));
    assert_ptr_equal(sfti_layout_segment_at(&out, 1), &out.segments[0]);
    assert_ptr_equal(sfti_layout_segment_at(&out, 9), &out.segments[2]);
    from.ends_at = 2;
    assert_int_equal(sft_source_read(&out.source, 0, into, 1, &got, &err), SFT_IO_SHRUNK);
    assert_non_null(strstr(err.message, "expected bytes of a tensor, found the end"));
    out.turned_of = NULL;
    assert_int_equal(sft_source_read(&out.source, 4, into, 1, &got, &err), SFT_IO_SHRUNK);
    from.ends_at = sizeof bytes;
    from.fail_at = 5;
    assert_int_equal(sft_source_read(&out.source, 4, into, 1, &got, &err), SFT_IO_READ);
    from.fail_at = UINT64_MAX;
    assert_int_equal(sft_source_read(&out.source, 5, into, 1, &got, NULL), SFT_OK);
    assert_int_equal(into[0], 20);
    sfti_layout_out_free(&out);
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(applies_rules_to_one), cmocka_unit_test(applies_rules_to_several),
        cmocka_unit_test(looks_at_marks), cmocka_unit_test(reads_what_it_makes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
