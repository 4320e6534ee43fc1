/* Records: what is read, what is refused and where, and what is answered. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/records_case.h"

#include "label/records/made.h"

/* ── Reading ── */

static const char small[] =
    "# a comment\n"
    "kind vae \"VAE\"\n"
    "kind diffusion_model\n"
    "\n"
    "model parent-1 \"Parent 1\"\n"
    "    says civitai \"Parent 1\" P1* variant=one write\n"
    "    tensors     diffusion_model 100\n"
    "        a.weight[1,2] | b.weight\n"
    "        | c.weight\n"
    "\n"
    "        # not this\n"
    "        !d.*\n"
    "    variant     x: e.weight\n"
    "\tmembers child_* other\n"
    "model child_x\r\n"
    " parent parent-1 derived\r\n"
    "model vae-1\n"
    "    tensors     vae 60\n"
    "        a.weight\n";

static void rows_and_records(void **state) {
    (void)state;
    refused(small, "line 14, column 2: expected the indentation");
    char *text = strdup(small);
    *strchr(text, '\t') = ' ';
    refused(text, "line 14");
    char *members = strstr(text, " members");
    memcpy(members, "#       ", 8); /* a comment, wherever it begins */
    members[1] = ' ';
    known k = read_text(text);
    if (k.code) fail_msg("%s", k.err.message);
    assert_int_equal(sfti_record_count(k.records), 5);
    const sfti_record *parent = sfti_record_find(k.records, SFTI_MODEL, s("parent_1"));
    const sfti_record *child = sfti_record_find(k.records, SFTI_MODEL, s("child-x"));
    assert_non_null(parent);
    assert_non_null(child);
    assert_ptr_equal(child->parent, parent);
    assert_int_equal(child->kin, SFTI_KIN_DERIVED);
    assert_true(sfti_is(parent->label, "Parent 1"));
    assert_null(sfti_record_find(k.records, SFTI_KIND, s("parent-1")));
    assert_non_null(sfti_table_row(k.records, SFTI_DENOISERS, 0));
    assert_null(sfti_table_row(k.records, SFTI_DENOISERS, 1));
    const sfti_record_row *row = sfti_table_row(k.records, SFTI_VAE_TABLE, 0);
    assert_non_null(row);
    assert_null(sfti_table_row(k.records, SFTI_VAE_TABLE, 1));
    assert_string_equal(sfti_row_kind(k.records, row), "vae");
    assert_int_equal(row->trust, 60);
    row = sfti_record_row_of(k.records, parent, SFTI_VARIANT_ROW, NULL);
    sft_span clauses, name = sfti_row_name(row, &clauses);
    assert_true(sfti_is(name, "x"));
    assert_true(sfti_is(sfti_trim(clauses), "e.weight"));
    assert_null(sfti_record_row_of(k.records, parent, SFTI_VARIANT_ROW, row));
    sfti_arena_free(&k.arena);
    free(text);
}

static void items_of_rows(void **state) {
    sft_span rest = s(" one \"two words\"\n  x=y z=\"a b\" write \"write\" q=\"open"), word;
    static const char *const want[] = { "|one", "|two words", "x|y", "z|a b", "write|", "|write",
                                        "q|open" };
    sfti_record_item item;
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(want); i++) {
        char got[64];
        assert_true(sfti_next_item(&rest, &item));
        snprintf(got, sizeof got, "%.*s|%.*s", (int)item.name.len, item.name.data,
                 (int)item.value.len, item.value.data);
        assert_string_equal(got, want[i]);
    }
    assert_false(sfti_next_item(&rest, &item));
    rest = s("a \"\" b=c d");
    assert_true(sfti_next_said(&rest, &word) && sfti_next_said(&rest, &word));
    assert_int_equal(word.len, 0);
    assert_false(sfti_next_said(&rest, &word));
}

static void words_of_producers(void **state) {
    known k = read_text("model a\n says civitai Flux Flux.1 \"SD 1\"\n"
                        "model b\n says civitai Flux.1-* variant=v\n"
                        "several\n says civitai Other plain\nkind c\n says civitai Fluxy\n");
    static const struct { const char *text, *id; } cases[] = {
        { "flux", "a" }, { "FLUX.1 Dev", "a" }, { "Flux.1-x", "b" }, { "Fluxy", NULL },
        { "SD 1.5", "a" }, { "SD 15", NULL }, { " sd 1 ", "a" }, { "Other", NULL }, { "", NULL },
    };
    const sfti_record_row *row;
    (void)state;
    if (k.code) fail_msg("%s", k.err.message);
    for (size_t i = 0; i < SFTI_COUNT(cases); i++) {
        const char *id = sfti_said_model(k.records, SFTI_SAYS_CIVITAI, s(cases[i].text), NULL);
        if (cases[i].id) assert_string_equal(id ? id : "(none)", cases[i].id);
        else assert_null(id);
    }
    assert_non_null(sfti_said(k.records, SFTI_MODEL, SFTI_SAYS_CIVITAI, s("other"), true, &row));
    assert_true(sfti_row_has(row, "plain", NULL));
    assert_null(sfti_said(k.records, SFTI_MODEL, SFTI_SAYS_CIVITAI, s("SD 1.5"), true, &row));
    assert_string_equal(sfti_said(k.records, SFTI_KIND, SFTI_SAYS_CIVITAI, s("fluxy"), true,
                                  &row)->id, "c");
    sfti_arena_free(&k.arena);
}

static void wrong_texts(void **state) {
    (void)state;
    refused("modal x\n", "x.txt: line 1, column 1: expected a type of records, found \"modal\"");
    refused("model\n", "an id");
    refused("several x\n", "line 1");
    refused("model x y\n", "column 9: expected a label between quotes");
    refused("model x \"y\n", "a label between quotes");
    refused("model x\nmodel x\n", "line 2, column 7: expected an id that has no record yet");
    refused("model a_b\nmodel a-b\n", "line 2");
    refused(" parent x\n", "a record before its rows");
    refused("model x\n teaches y\n", "line 2, column 2: expected a word");
    refused("kind x\n parent y\n", "a word that such a record may have");
    refused("model x\n says nobody y\n", "line 2, column 7: expected a producer");
    refused("several\n prefixes other2 y\n", "a table of rows");
    refused("model x\n tensors vae 100\n  a\n", "a kind");
    refused("kind vae\nmodel x\n tensors vae 101\n  a\n", "a trust of 0 to 100");
    refused("kind vae\nmodel x\n tensors vae\n  a\n", "a trust");
    refused("kind vae\nmodel x\n tensors vae 100\n", "clauses in the lines below");
    refused("kind vae\nmodel x\n tensors vae 100 odd=1\n  a\n", "table= or of=");
    refused("model x\n parent y\n", "the id of a record");
    refused("model x\n over y\n", "the id of a record");
    refused("model x\nfamily y\n over x\n", "the id of a record");
    refused("model x\nmodel y\n parent x cousin\n", "derived or other-layers");
    refused("model x\n  members a\n members b\n", "the indentation of the rows above");
    char many[8192] = "kind vae\nmodel x\n tensors vae 100\n";
    for (int i = 0; i < 65; i++) strcat(many, "  a\n");
    refused(many, "line 68, column 3: expected rows of 64 lines");
    known k = read_text("");
    assert_int_equal(k.code, SFT_OK);
    sfti_arena_free(&k.arena);
    k = read_bytes("\0\n\xFF\n \0", 6);
    assert_int_not_equal(k.code, SFT_OK);
    sfti_arena_free(&k.arena);
    size_t lines = SFTI_RECORDS_LINES + 1;
    char *text = malloc(lines);
    assert_non_null(text);
    memset(text, '\n', lines);
    k = read_bytes(text, lines - 1);
    assert_int_equal(k.code, SFT_OK);
    sfti_arena_free(&k.arena);
    k = read_bytes(text, lines);
    assert_int_not_equal(k.code, SFT_OK);
    sfti_arena_free(&k.arena);
    free(text);
}

/* What a row of each word may say, where it stands. */
static void wrong_rows(void **state) {
    static const struct { const char *row, *where; } cases[] = {
        { "tensors vae 100\n  name[", "line 3, column 3: expected a shape between" },
        { "tensors vae 100\n  ok\n  a[1][2]", "line 4, column 3: expected a shape between" },
        { "tensors vae 100\n  a[1]b", "expected a shape between" },
        { "tensors vae 100\n  a[]", "expected sizes" },
        { "tensors vae 100\n  a[1,,2]", "line 3, column 5: expected sizes" },
        { "tensors vae 100\n  a[x]", "expected sizes" },
        { "tensors vae 100\n  a[...]", "expected sizes" },
        { "tensors vae 100\n  a[1,2,3,4,5,6,7,8,9]", "expected sizes" },
        { "tensors vae 100\n  [3]", "the name of a tensor" },
        { "tensors vae 100\n  ^", "the name of a tensor" },
        { "tensors vae 100\n  *", "the name of a tensor" },
        { "tensors vae 100\n  !", "an alternative on each side" },
        { "tensors vae 100\n  a |", "an alternative on each side" },
        { "tensors vae 100\n  | a", "an alternative on each side" },
        { "tensors vae 100\n  a | !b", "line 3, column 7: expected a name" },
        { "tensors vae 100\n  a|b", "line 3, column 4: expected a name" },
        { "tensors vae 100\n  a b", "line 3, column 4: expected a name" },
        { "tensors vae 100\n  a*b", "* stands at its end alone" },
        { "tensors vae 100\n  a.#.b.#.c", "one # in a name" },
        { "tensors vae 100\n  a.#.b.*", "one # in a name" },
        { "tensors vae 100\n  a.*[1]", "a name without * before a shape" },
        { "tensors vae 100\n  count(a.#) 3", "count(NAME.#) = N" },
        { "tensors vae 100\n  count(a.#) = x", "count(NAME.#) = N" },
        { "tensors vae 100\n  count(a#) = 3", "count(NAME.#) = N" },
        { "tensors vae 100\n  count(a.#.b.#) = 3", "count(NAME.#) = N" },
        { "tensors vae 100\n  count(a.# = 3", "count(NAME.#) = N" },
        { "tensors vae 100\n  @key", "line 3, column 3: expected count(NAME.#) = N" },
        { "tensors vae 100\n  @ = x", "@KEY = VALUE" },
        { "tensors vae 100\n  @key >= 3", "@KEY = VALUE" },
        { "tensors vae 100\n  @key =", "@KEY = VALUE" },
        { "tensors vae 100 order=0\n  a", "table= or of=" },
        { "tensors vae 100 table=vaes\n  a", "table= or of=" },
        { "tensors vae 100 of=both\n  a", "table= or of=" },
        { "adapter 100 table=vae\n  a", "table= or of=" },
        { "adapter 100\n  a[in=]", "line 3, column 5: expected in=" },
        { "adapter 100\n  a[in>=*]", "expected in=" },
        { "adapter 100\n  a[wide=1]", "expected in=" },
        { "adapter 100\n  a[each", "conditions between" },
        { "adapter 100\n  te9:a", "line 3, column 6: expected the name of a layer" },
        { "adapter 100\n  a*", "the name of a layer" },
        { "adapter 100\n  ^$", "the name of a layer" },
        { "variant x a", "a variant's name and a colon" },
        { "variant : a", "a variant's name and a colon" },
        { "variant x y: a", "a variant's name and a colon" },
        { "variant 101 y: a", "a variant's name and a colon" }, { "variant 60 : a", "a variant's" },
        { "variant x:", "clauses" },
        { "adapter-variant x:\n  a[", "conditions between" },
        { "file \"\"", "line 2, column 8: expected a word of a file's name" },
        { "file ~", "a word of a file's name" },
        { "file a in=", "a value behind =" },
        { "file a write", "line 2, column 9: expected a mark" },
        { "file a=b", "a mark that such a row may have" },
        { "says civitai A write B", "words before marks" },
        { "says civitai A kind=x", "the id of a record" },
        { "says civitai \"A", "quotes that are closed" },
        { "says civitai A\"B\"", "quotes around a whole word" },
        { "says civitai \"A\"B", "quotes around a whole word" },
        { "says civitai A # not this", "line 2, column 17: expected comments in lines" },
        { "members", "a word, or more" },
        { "modules of=m", "a word, or more" },
        { "modules of=q\n  a[1,2]", "the id of a record" },
        { "modules\n  a.b", "line 3, column 3: expected NAME[OUT,IN]" },
        { "modules\n  .", "NAME[OUT,IN]" },
        { "modules\n  a[1,2]\tb[1,2]", "line 3, column 9: expected blanks" },
        { "modules\n  a. b[1] c[1,2]", "line 3, column 6: expected NAME[OUT,IN] in numbers" },
        { "modules\n  of=m a. b[1,2]", "expected of= first in the row" },
        { "tensors vae 1 p.weight\n  q", "expected clauses in the lines below" },
        { "modules\n  a[1,2,3,4]", "NAME[OUT,IN]" },
        { "modules\n  a[1,x]", "NAME[OUT,IN]" },
        { "modules\n  a{b[1,2]", "{ and } in pairs" },
        { "modules\n  a}b[1,2]", "{ and } in pairs" },
        { "modules\n  a{b,}[1,2]", "words or numbers between" },
        { "modules\n  a{b,{c}[1,2]", "words or numbers between" },
        { "modules\n  a.{0-128}.b[1,2]", "numbers below 128" },
        { "modules\n  a.{3-2}.b[1,2]", "lower number" },
        { "modules\n  a{0-63,70}b[1,2]", "at most 64 alternatives" },
        { "modules\n  {a,b,c}{a,b,c}{a,b,c}{a,b,c}[1,2]", "at most 64 alternatives" },
        { "members \"\"", "a word" },
        { "branch a b c", "fewer words" },
        { "twins x", "nothing behind the word" },
        { "vae y", "the id of a model" },
        { "family y", "the id of a family" },
        { "predicts y", "a prediction" },
        { "config y", "a kind" },
        { "config vae latent_channels=x", "a number" },
        { "head 64:", "SIZE or HIDDEN:SIZE" },
        { "embedding xyz", "an encoder (l, g, t5" },
        { "class A*", "a class without *" },
        { "like m\n like x", "line 3, column 2: expected a word that this record does not have" },
        { "tensors vae 100\n  a[1234567890123456]", "expected sizes" },
        { "tensors vae 100\n  a[1]]", "a shape between" }, { "tensors vae 100\n  a[",
          "a shape between" },
        { "tensors vae 100\n  a[1|]", "expected sizes" }, { "tensors vae 100\n  a[...,...]",
          "expected sizes" },
        { "tensors vae 100\n  a^b", "* stands at its end alone" },
        { "tensors vae 100\n  a=b", "line 3, column 4: expected a name" },
        { "tensors vae 100\n  ! | a", "the name of a tensor" },
        { "tensors vae 100\n  count(.#) = 3", "count(NAME.#) = N" },
        { "tensors vae 100\n  count(a.#) = ", "count(NAME.#) = N" },
        { "tensors vae 100\n  @key < x", "@KEY = VALUE" },
        { "tensors vae 100\n  @:/x = y", "@KEY = VALUE" },
        { "tensors vae x\n  a", "a trust of 0 to 100" }, { "tensors vae 100 table\n  a",
          "clauses in the lines below" },
        { "adapter 100\n  te:te1:a", "line 3, column 9: expected the name of a layer" },
        { "adapter 100\n  a=b", "line 3, column 4: expected the name of a layer" },
        { "adapter 100\n  ! | a", "the name of a layer" }, { "adapter 100\n  te1:^",
          "the name of a layer" },
        { "adapter 100\n  a[in=1,]", "expected in=" }, { "adapter 100\n  a[out=x]",
          "expected in=" },
        { "adapter 100\n  a[n>=]", "expected in=" }, { "adapter 100\n  a[t>=x]", "expected in=" },
        { "variant x", "a variant's name and a colon" }, { "variant x\ty: a",
          "a variant's name and a colon" },
        { "says civitai \"A\n  B\"", "quotes that are closed" },
        { "says civitai A kind=", "a value behind =" }, { "says civitai A prediction=x",
          "the id of a record" },
        { "modules\n  [1,2]", "expected NAME[OUT,IN]" }, { "modules\n  ab",
          "expected NAME[OUT,IN]" },
        { "modules\n  a[", "NAME[OUT,IN] in numbers" }, { "modules\n  a[1,2",
          "NAME[OUT,IN] in numbers" },
        { "modules\n  a[1,2,]", "NAME[OUT,IN] in numbers" }, { "modules\n  a[1]",
          "NAME[OUT,IN] in numbers" },
        { "modules\n  a[,]", "NAME[OUT,IN] in numbers" },
        { "modules\n  a{b,,c}[1,2]", "words or numbers between" }, { "modules\n  a{}[1,2]",
          "words or numbers" },
        { "head :64", "SIZE or HIDDEN:SIZE" }, { "head 64:x", "SIZE or HIDDEN:SIZE" },
        { "head 64 x", "SIZE or HIDDEN:SIZE" }, { "embedding \"\"", "an encoder" },
        { "spare **", "a name of 200 bytes at most" }, { "spare \"\"",
          "a name of 200 bytes at most" },
        { "class \"\"", "a class without *" }, { "class *A", "a class without *" }, { "like x",
          "the id of a model" },
        { "text none y", "the id of a model" },
        { "tensors vae 100\n  a\n\v", "line 4, column 1: expected a text without control" },
    };
    (void)state;
    for (size_t i = 0; i < SFTI_COUNT(cases); i++) {
        char text[256];
        snprintf(text, sizeof text, "model m\n %s\nkind vae\n", cases[i].row);
        refused(text, cases[i].where);
    }
    static const char *const right[] = {
        "tensors vae 100\n  ^a.#.b[9|8,...,*] | c.*\n  count(a.#) = 3 | @key:/a/b = x y",
        "tensors vae 100\n  @key:a:/x = 1\n  @key: = 2\n  count(a.#) >= 2\n  count(a.#) <= 3",
        "adapter 100\n  te: | te1: | te3:^a$[in=1|2,out=*,in>=3,n>=4,t>=5,each]",
        "variant x-1: a\n  b", "adapter-variant x:\n  !a",
        "variant 60 x-1: a\n  b", "adapter-variant 0\tx:\n  !a", "variant 60: a",
        "modules\n  a. b[1,2] | c{0-2,7}d[3,4,5]",
        "modules\n  a_{0-99}_b[1,2] {0-99}.c[1,2] d.{0-63}[1,2] e{0-63}.f[1,2] g.{0-63}h[1,2]",
        "modules\n  a{b-c,1-,-2,1-d}[1,2]", "head 64 32:64", "spare *a* b",
        "embedding 768 trust=60",
        "text none m", "says civitai A \"B C\" write=\"D e\"", "file fox~ in=\"a b\"",
    };
    for (size_t i = 0; i < SFTI_COUNT(right); i++) {
        char text[256];
        snprintf(text, sizeof text, "model m\n %s\nkind vae\n", right[i]);
        known k = read_text(text);
        if (k.code) fail_msg("%s: %s", right[i], k.err.message);
        sfti_arena_free(&k.arena);
    }
    /* Names and lines that are as long as they may be, and longer. */
    static const struct { const char *row, *end, *where; int most; } longest[] = {
        { "tensors vae 100\n  ", "", "the name of a tensor, of 200 bytes", 200 },
        { "tensors vae 100\n  @", " = x", "count(NAME.#) = N", 195 },
        { "adapter 100\n  ", "", "the name of a layer, of 200 bytes", 200 },
        { "spare ", "", "a name of 200 bytes at most", 200 },
        { "members ", "", "lines of 64 KiB at most", 65535 - 8 },
        { "members ", "\n  y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y "
          "y y",
          "rows of 64 lines and 64 KiB at most", 65420 },
    };
    for (size_t i = 0; i < SFTI_COUNT(longest); i++)
        for (int more = 0; more < 4; more++) {
            char *text = malloc(70000);
            snprintf(text, 70000, "kind vae\nmodel m\n %s%0*d%s\n", longest[i].row,
                     longest[i].most + 20 * more, 0, longest[i].end);
            known k = read_text(text);
            sfti_arena_free(&k.arena);
            if (more == 0 && k.code) fail_msg("%zu: %s", i, k.err.message);
            if (more == 3) refused(text, longest[i].where);
            free(text);
        }
    refused("kind vae\nfamily f\n structure vae 100 of=none\n  a\n", "table= or of=");
    refused("family f\n structure - 100 table=vae\n  a\n", "table= or of=");
    refused("family f\n structure x 100\n  a\n", "a kind");
    refused("kind vae\n class !*\n", "a class, * at its ends alone");
    refused("kind vae\n class !a*b\n", "a class, * at its ends alone");
    refused("kind vae\n class *\n", "a class");
    refused("model a\xFFx\n", "line 1, column 8: expected UTF-8, found \"\\xff\"");
    refused("model \xC3\xA9 x\n", "line 1, column 9: expected a label");
    refused("model a\rmodel b\n", "column 8: expected a text without control characters");
    refused("model a \"b\"c\"\n", "a label between quotes");
    refused("model a*\n", "an id of letters");
    refused("model a\n parent a\n", "no ring, found \"a > a\"");
    refused("model a\n parent b\nmodel b\n parent c\nmodel c\n parent a\n",
            "line 2, column 9: expected at most 8 parents one above the other, and no ring, "
            "found \"a > b > c > a\"");
    char deep[1024] = "model m0\n";
    for (int i = 1; i < 10; i++)
        snprintf(deep + strlen(deep), 64, "model m%d\n parent m%d\n", i, i - 1);
    refused(deep, "line 19, column 9: expected at most 8 parents");
}

/* No model is left out of what an adapter is compared with: more than it holds are refused. */
static void many_modules(void **state) {
    static const char row[] = "model m%05zu\n modules\n  a.#.b[1,2]\n";
    static const char sibling[] = " sibling m%05zu\n";
    size_t room = (SFTI_RECORDS_FITTING + 2) * 64, len = 0, i = 0;
    char *text = malloc(room);
    (void)state;
    assert_non_null(text);
    for (; i < SFTI_RECORDS_FITTING; i++)
        len += (size_t)snprintf(text + len, room - len, row, i);
    known k = read_bytes(text, len);
    if (k.code) fail_msg("%s", k.err.message);
    sfti_arena_free(&k.arena);
    (void)snprintf(text + len, room - len, row, i);
    refused(text, "line 1538, column 2: expected 512 models with modules or siblings at most");
    (void)snprintf(text + len, room - len, sibling, (size_t)0);
    refused(text, "line 1537, column 2: expected 512 models with modules or siblings at most");
    free(text);
}

/* Words and alternatives are counted over all texts. */
static void many_words(void **state) {
    size_t room = 2 * SFTI_RECORDS_WORDS + 4096;
    char *text = malloc(room);
    (void)state;
    assert_non_null(text);
    size_t len = (size_t)snprintf(text, room, "model a\n");
    for (int i = 0; i < SFTI_RECORDS_WORDS + 1; i++) {
        const char *more = i % 1000 == 0 ? "\n members x" : " x";
        memcpy(text + len, more, strlen(more));
        len += strlen(more);
    }
    known k = read_bytes(text, len);
    if (!strstr(k.err.message, "50,000 words and alternatives")) fail_msg("%s", k.err.message);
    sfti_arena_free(&k.arena);
    k = read_bytes(text, len - strlen("\n members x"));
    if (k.code) fail_msg("%s", k.err.message);
    sfti_arena_free(&k.arena);
    free(text);
}

/* Every beginning of what comes with the library, and every byte of it changed. */
static void hostile_texts(void **state) {
    char text[] = "kind vae\nmodel a \"A\"\n says civitai \"B c\" d=e write\n"
                  " tensors vae 9\n  x | y\n  | z\n variant v: q\n"
                  "model b\n parent a derived\n";
    (void)state;
    for (size_t len = 0; len < sizeof text; len++) {
        known k = read_bytes(text, len);
        sfti_arena_free(&k.arena);
    }
    for (size_t i = 0; i + 1 < sizeof text; i++)
        for (int c = 0; c < 256; c++) {
            char kept = text[i];
            text[i] = (char)c;
            known k = read_bytes(text, sizeof text - 1);
            if (!k.code) (void)sfti_said_model(k.records, SFTI_SAYS_CIVITAI, s("B c"), NULL);
            sfti_arena_free(&k.arena);
            text[i] = kept;
        }
}

/* ── What comes with the library ── */

/* Each line may begin a record. */
static void records_alone(void **state) {
    char text[16 * 1024];
    (void)state;
    for (size_t count = 1; count <= 1024; count = count * 2 + (count == 64)) {
        size_t len = 0;
        for (size_t i = 0; i < count; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "model m%zu\n", i);
        known k = read_bytes(text, len);
        assert_int_equal(k.code, SFT_OK);
        assert_int_equal(sfti_record_count(k.records), count);
        assert_null(sfti_record_find(k.records, SFTI_MODEL, s("other")));
        sfti_arena_free(&k.arena);
    }
}

/* data/ as it is written, file after file, in the order of their names. */
typedef struct written { char *text; size_t len; } written;

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_folder(written *all, const char *path) {
    char *names[128];
    size_t count = 0;
    DIR *folder = opendir(path);
    if (!folder) fail_msg("cannot list %s", path);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (*entry->d_name != '.' && !strstr(entry->d_name, "layouts")) { /* no records */
            assert_true(count < SFTI_COUNT(names));
            names[count++] = strdup(entry->d_name);
        }
    closedir(folder);
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, names[i]);
        if (!strstr(names[i], ".txt")) add_folder(all, name);
        FILE *file = strstr(names[i], ".txt") ? fopen(name, "rb") : NULL;
        free(names[i]);
        if (!file) continue;
        all->text = realloc(all->text, all->len + (1 << 20));
        assert_non_null(all->text);
        all->len += fread(all->text + all->len, 1, (1 << 20) - 1, file);
        all->text[all->len++] = '\n';
        fclose(file);
    }
}

/* Blanks, and what joins lines, are one: in rows "modules" "|", too. */
static void squeeze(const sfti_record_row *row, char *out, size_t size) {
    const sft_span text = sfti_row_text(row);
    const bool modules = row->word == SFTI_MODULES;
    size_t used = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool blank = (uint8_t)text.data[i] <= ' ' || (modules && text.data[i] == '|');
        if (blank && (used == 0 || out[used - 1] == ' ' || out[used - 1] == ',')) continue;
        assert_true(used + 2 < size);
        out[used++] = blank ? ' ' : text.data[i];
    }
    while (used > 0 && out[used - 1] == ' ') used--;
    out[used] = 0;
}

/* What excludes declarations that cannot be true. */
static void every_model_has_a_kind(void **state) {
    const sfti_records *records = sfti_records_built_in();
    (void)state;
    for (size_t i = 0; i < sfti_record_count(records); i++) {
        const sfti_record *one = sfti_record_at(records, i);
        if (one->type != SFTI_MODEL || sfti_record_classes(records, one) != 0) continue;
        if (strcmp(one->id, "f-lite") != 0) /* a trainer's word is all that is known */
            fail_msg("nothing tells the kind of %s: tensors, or kind= of its type", one->id);
    }
}

/* The text that CMake makes of it says the same, and all of it is as users' files must be. */
static void data_as_written(void **state) {
    const sfti_records *records = sfti_records_built_in();
    static char a[65536], b[65536];
    written all = { NULL, 0 };
    (void)state;
    add_folder(&all, SFT_TEST_INCLUDE "/../data");
    known k = read_bytes(all.text, all.len);
    if (k.code) fail_msg("data/: %s", k.err.message);
    assert_int_equal(records->record_count, k.records->record_count);
    assert_int_equal(records->row_count, k.records->row_count);
    for (size_t i = 0; i < records->row_count; i++) {
        const sfti_record_row *x = &records->rows[i], *y = &k.records->rows[i];
        assert_int_equal(x->word, y->word);
        assert_int_equal(x->record, y->record);
        assert_int_equal(x->sub, y->sub);
        squeeze(x, a, sizeof a);
        squeeze(y, b, sizeof b);
        assert_string_equal(a, b);
    }
    sfti_arena_free(&k.arena);
    free(all.text);
}

/* What was read of it when the library was built is what is read now. */
static void made_as_read(void **state) {
    const sfti_records *made = sfti_records_built_in(), *read;
    sfti_records_text text = sfti_records_built_in_text();
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    (void)state;
    assert_int_equal(sfti_records_read(&arena, &text, 1, &read, NULL), SFT_OK);
    assert_int_equal(made->record_count, read->record_count);
    assert_int_equal(made->row_count, read->row_count);
    for (size_t i = 0; i < read->record_count; i++) {
        const sfti_record *x = &made->records[i], *y = &read->records[i];
        if (y->id) assert_string_equal(x->id, y->id);
        else assert_null(x->id);
        assert_true(sft_span_equal(x->label, y->label));
        assert_int_equal(x->parent ? x->parent - made->records : -1,
                         y->parent ? y->parent - read->records : -1);
        assert_int_equal(x->kin, y->kin);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->text, y->text);
        assert_int_equal(x->first, y->first);
        assert_int_equal(x->count, y->count);
    }
    for (size_t i = 0; i < read->row_count; i++) {
        const sfti_record_row *x = &made->rows[i], *y = &read->rows[i];
        assert_ptr_equal(sfti_row_text(x).data, sfti_row_text(y).data);
        assert_int_equal(x->len, y->len);
        assert_int_equal(x->record, y->record);
        assert_int_equal(x->next, y->next);
        assert_int_equal(x->kind, y->kind);
        assert_int_equal(x->word, y->word);
        assert_int_equal(x->sub, y->sub);
        assert_int_equal(x->trust, y->trust);
        assert_int_equal(x->text, y->text);
    }
    assert_memory_equal(made->heads, read->heads, sizeof read->heads);
    assert_int_equal(made->slot_mask, read->slot_mask);
    assert_memory_equal(made->slots, read->slots, (read->slot_mask + 1) * sizeof *read->slots);
    for (size_t t = 0; t < SFTI_TABLES; t++) {
        assert_int_equal(made->table_counts[t], read->table_counts[t]);
        assert_memory_equal(made->tables[t], read->tables[t],
                            read->table_counts[t] * sizeof **read->tables);
    }
    assert_int_equal(made->text_count, read->text_count);
    assert_ptr_equal(made->texts[0].text.data, text.text.data);
    assert_int_equal(made->sources[0].len, 0);
    uint32_t bits[SFTI_MADE_KEY_BITS / 32] = { 0 };
    sfti_made_key_bits(read, bits);
    if (sfti_made_records.row_count > 0)
        assert_memory_equal(sfti_made_records.keys, bits, sizeof bits);
    sfti_arena_free(&arena);
}

static void built_in(void **state) {
    const sfti_records *records = sfti_records_built_in();
    (void)state;
    assert_non_null(records);
    assert_ptr_equal(records, sfti_records_built_in());
    assert_true(sfti_record_count(records) > 300);
    for (size_t i = 0; i < sfti_record_count(records); i++) {
        const sfti_record *record = sfti_record_at(records, i);
        if (record->id)
            assert_ptr_equal(sfti_record_find(records, record->type, s(record->id)), record);
        int steps = 0;
        for (const sfti_record *at = record; at && steps < 9; at = at->parent) steps++;
        assert_true(steps < 8);
    }
    static const sfti_word lists[] = { SFTI_VAES, SFTI_TEXT_ENCODERS, SFTI_LIKE, SFTI_SIBLING };
    for (size_t i = 0; i < SFTI_COUNT(lists); i++)
        for (const sfti_record_row *row = sfti_rows(records, lists[i], 0); row;
             row = sfti_rows_next(records, row)) {
            sft_span rest = sfti_row_text(row), id;
            while (sfti_next_said(&rest, &id))
                if (!sfti_is(id, "none") && !sfti_record_find(records, SFTI_MODEL, id))
                    fail_msg("no record is called %.*s", (int)id.len, id.data);
        }
}

static void relations(void **state) {
    const sfti_records *records = sfti_records_built_in();
    (void)state;
    assert_true(sfti_architecture_within(records, s("flux.1-dev"), s("flux.1")));
    assert_true(sfti_architecture_within(records, s("vit_base_patch16"), s("vit")));
    assert_true(sfti_architecture_within(records, s("resnet18"), s("resnet")));
    assert_false(sfti_architecture_within(records, s("resnetv2"), s("resnet")));
    assert_true(sfti_architecture_within(records, s("pony"), s("sdxl")));
    assert_string_equal(sfti_common_architecture(records, "wan-2.1", "wan-2.2"), "wan");
    assert_null(sfti_common_architecture(records, "wan-2.1", "sdxl"));
    static const char *const parts[][2] = {
        { "sd-2", "unet" }, { "lotus", "unet" }, { "kandinsky-3", "unet" }, { "i2vgen-xl", "unet" },
        { "flux.1-dev", "transformer" },
    };
    for (size_t i = 0; i < SFTI_COUNT(parts); i++)
        assert_string_equal(sfti_denoiser_part(records, sfti_model_record(records, parts[i][0])),
                            parts[i][1]);
    assert_int_equal(sfti_architecture_kin(records, s("chroma"), s("flux.1")), SFTI_KIN_UNSURE);
    assert_int_equal(sfti_architecture_kin(records, s("vae_wan"), s("vae-wan")), SFTI_KIN_SAME);
    assert_int_equal(sfti_architecture_kin(records, s("sd-3-medium"), s("sd-3.5-large")),
                     SFTI_KIN_NONE);
    assert_int_equal(sfti_kin_of_part(records, s("sdxl"), SFTI_VAES, s("vae-sd")), SFTI_KIN_SAME);
    assert_int_equal(sfti_kin_of_part(records, s("kolors"), SFTI_TEXT_ENCODERS, s("clip-l")),
                     SFTI_KIN_UNSURE);
    assert_non_null(sfti_branch(records, s("ponyDiffusionV6XL.safetensors")));
    assert_null(sfti_branch(records, s("sd_xl_base_1.0")));
    /* as many parents as there may be, each of which is one; a ring of siblings ends */
    char text[1024] = "model m0\n";
    for (int i = 1; i < 9; i++)
        snprintf(text + strlen(text), 64, "model m%d\n parent m%d\n", i, i - 1);
    strcat(text, "model x\n sibling y\nmodel y\n sibling x\nmodel z\n over m8\n");
    known k = read_text(text);
    if (k.code) fail_msg("%s", k.err.message);
    const sfti_record *top = sfti_record_find(k.records, SFTI_MODEL, s("m0"));
    const sfti_record *low = sfti_record_find(k.records, SFTI_MODEL, s("m8"));
    const sfti_record *over = sfti_record_find(k.records, SFTI_MODEL, s("z"));
    assert_true(sfti_record_within(low, s("m0")) && !sfti_record_within(top, s("m8")));
    assert_true(sfti_architecture_within(k.records, s("m8"), s("m0")));
    assert_true(sfti_record_over(k.records, low, top) && sfti_record_over(k.records, over, top));
    assert_false(sfti_record_over(k.records, top, low) || sfti_record_over(k.records, top, over)
                 || sfti_record_over(k.records, low, low));
    assert_string_equal(sfti_common_architecture(k.records, "m8", "m0"), "m0");
    assert_null(sfti_common_architecture(k.records, "m8", NULL));
    assert_null(sfti_common_architecture(k.records, NULL, "m8"));
    assert_non_null(sfti_sibling_root(k.records, sfti_record_find(k.records, SFTI_MODEL, s("x"))));
    assert_false(sfti_are_siblings(k.records, s("x"), s("nobody")));
    sfti_arena_free(&k.arena);
}

/* ── What is spared ── */

static const char *spared_by(const sfti_records *records, const char *of, const char *name) {
    static char text[64];
    sft_span pattern;
    const sfti_record_row *row = sfti_spared(records, s(of), s(name), &pattern);
    assert_true(!row == (pattern.len == 0));
    snprintf(text, sizeof text, "%.*s", (int)pattern.len, pattern.data);
    return text;
}

static void spared_tensors(void **state) {
    (void)state;
    known k = read_text("several\n prefixes denoiser model.diffusion_model. \"\" net.\n"
                        " spare *norm* lm_head.weight\n"
                        "model a\n spare final.* t_*.*.weight\n spare x\nmodel b\n parent a\n"
                        "model c\n parent b\n spare only.c\nmodel d\n");
    if (k.code) fail_msg("%s", k.err.message);
    static const struct { const char *of, *name, *by; } cases[] = {
        { "a", "final.linear.weight", "final.*" }, { "a", "net.final.x", "final.*" },
        { "a", "model.diffusion_model.final.x", "final.*" }, { "a", "blocks.final.x", "" },
        { "a", "x", "x" }, { "a", "xx", "" }, { "a", "t_embed.1.weight", "t_*.*.weight" },
        { "a", "t_embed.weight", "" }, { "a", "t_.weight.weight.weight", "t_*.*.weight" },
        { "b", "x", "x" }, { "c", "x", "" }, { "c", "only.c", "only.c" }, { "a", "only.c", "" },
        { "d", "blocks.0.norm1.weight", "*norm*" }, { "d", "x", "" }, { "d", "", "" },
        { "nobody", "net.lm_head.weight", "lm_head.weight" }, { "", "norm", "*norm*" },
        { "c", "model.norm.bias", "*norm*" }, { "d", "net.", "" },
    };
    for (size_t i = 0; i < SFTI_COUNT(cases); i++)
        if (strcmp(spared_by(k.records, cases[i].of, cases[i].name), cases[i].by) != 0)
            fail_msg("%s of %s: \"%s\"", cases[i].name, cases[i].of,
                     spared_by(k.records, cases[i].of, cases[i].name));
    sfti_arena_free(&k.arena);
    /* Of what comes with the library: in the layouts of the original and of diffusers. */
    static const struct { const char *of, *name; bool spared; } ours[] = {
        { "flux.1-dev", "model.diffusion_model.double_blocks.0.img_mod.lin.weight", true },
        { "flux.1-dev", "double_blocks.0.img_attn.qkv.weight", false },
        { "flux.1", "transformer.single_transformer_blocks.0.proj_out.weight", false },
        { "flux.1", "transformer.proj_out.weight", true },
        { "flux.1", "transformer_blocks.0.norm1.linear.weight", true },
        { "wan-2.2", "blocks.39.ffn.0.weight", false }, { "wan-2.2", "head.head.weight", true },
        { "qwen-image", "transformer_blocks.59.attn.to_q.weight", true },
        { "qwen-image", "transformer_blocks.5.attn.to_q.weight", false },
        { "z-image", "layers.0.adaLN_modulation.0.weight", true },
        { "llama", "lm_head.weight", true },
        { "llama", "model.layers.0.mlp.gate_proj.weight", false },
        { "qwen3-moe", "model.layers.0.mlp.gate.weight", true },
        { "krea-2", "blocks.3.mlp.gate.weight", false }, /* no router */
    };
    for (size_t i = 0; i < SFTI_COUNT(ours); i++)
        if (!*spared_by(sfti_records_built_in(), ours[i].of, ours[i].name) == ours[i].spared)
            fail_msg("%s of %s", ours[i].name, ours[i].of);
    refused("model a\n spare\n", "line 2");
    refused("model a\n spare x **\n", "line 2, column 10: expected a name of 200 bytes");
    refused("model a\n spare x write=y\n", "a mark that such a row may have");
    refused("kind a\n spare x\n", "a word that such a record may have");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_records),
        cmocka_unit_test(items_of_rows),
        cmocka_unit_test(words_of_producers),
        cmocka_unit_test(wrong_texts),
        cmocka_unit_test(wrong_rows),
        cmocka_unit_test(many_modules),
        cmocka_unit_test(many_words),
        cmocka_unit_test(hostile_texts),
        cmocka_unit_test(records_alone),
        cmocka_unit_test(data_as_written),
        cmocka_unit_test(every_model_has_a_kind),
        cmocka_unit_test(made_as_read),
        cmocka_unit_test(built_in),
        cmocka_unit_test(relations),
        cmocka_unit_test(spared_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
