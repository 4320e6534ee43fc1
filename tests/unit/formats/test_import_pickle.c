#include "formats/pickle/pickle.h"
#include "formats/pickle/pickle_stack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct pickle_case {
    sfti_arena arena;
    sfti_pickle pickle;
    sft_error err;
    sft_source source;
} pickle_case;

static void begin(pickle_case *c) {
    *c = (pickle_case){ .err = SFT_ERROR_INIT };
    c->arena.alloc = sfti_allocator(NULL);
}

static void end(pickle_case *c) {
    sfti_arena_free(&c->arena);
}

/* in_memory: texts stay where they are; else the pickle is read through a window. */
static sft_code read_case(pickle_case *c, const void *bytes, size_t len, bool in_memory) {
    begin(c);
    c->source = sft_source_memory(bytes, len);
    sfti_pickle_input input = { &c->source, 0, len, in_memory ? bytes : NULL };
    return sfti_pickle_read(&input, &c->arena, &c->pickle, &c->err);
}

static void expect(const char *bytes, size_t len, sft_code code, uint64_t at) {
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        pickle_case c;
        sft_code got = read_case(&c, bytes, len, in_memory != 0);
        if (got != code || (code && c.err.offset != at))
            fail_msg("code %d at %llu: %s", got, (unsigned long long)c.err.offset, c.err.message);
        if (code) assert_true(c.err.message[0] != '\0');
        end(&c);
    }
}

#define EXPECT(bytes, code, at) expect(bytes, sizeof(bytes) - 1, code, at)

/* ── Every opcode ── */

typedef struct opcode_case {
    const char *bytes;
    size_t len;
    sfti_value_kind kind; /* of the root */
} opcode_case;

#define ROW(bytes, kind) { bytes, sizeof(bytes) - 1, kind }

static const opcode_case opcode_cases[] = {
    ROW("N.", SFTI_VALUE_NONE),
    ROW("\x80\x02N.", SFTI_VALUE_NONE),
    ROW("\x80\x04\x95\x02\0\0\0\0\0\0\0N.", SFTI_VALUE_NONE),
    ROW("\x88.", SFTI_VALUE_BOOL),
    ROW("\x89.", SFTI_VALUE_BOOL),
    ROW("J\xff\xff\xff\xff.", SFTI_VALUE_INT),
    ROW("K\x07.", SFTI_VALUE_INT),
    ROW("M\x07\x01.", SFTI_VALUE_INT),
    ROW("\x8a\0.", SFTI_VALUE_INT),
    ROW("\x8a\x08\1\2\3\4\5\6\7\x88.", SFTI_VALUE_INT),
    ROW("\x8a\x09\1\2\3\4\5\6\7\x88\0.", SFTI_VALUE_NUMBER),
    ROW("\x8b\2\0\0\0\1\2.", SFTI_VALUE_INT),
    ROW("G\x3f\xf0\0\0\0\0\0\0.", SFTI_VALUE_FLOAT),
    ROW("I12\n.", SFTI_VALUE_INT),
    ROW("I01\n.", SFTI_VALUE_BOOL),
    ROW("L-12L\n.", SFTI_VALUE_INT),
    ROW("L99999999999999999999L\n.", SFTI_VALUE_NUMBER),
    ROW("F1.5\n.", SFTI_VALUE_NUMBER),
    ROW("S'a\\'b'\n.", SFTI_VALUE_TEXT),
    ROW("Va\\u00e9\n.", SFTI_VALUE_TEXT),
    ROW("T\3\0\0\0abc.", SFTI_VALUE_TEXT),
    ROW("U\3abc.", SFTI_VALUE_TEXT),
    ROW("X\3\0\0\0abc.", SFTI_VALUE_TEXT),
    ROW("\x8c\3abc.", SFTI_VALUE_TEXT),
    ROW("\x8d\3\0\0\0\0\0\0\0abc.", SFTI_VALUE_TEXT),
    ROW("B\3\0\0\0abc.", SFTI_VALUE_BYTES),
    ROW("C\3abc.", SFTI_VALUE_BYTES),
    ROW("\x8e\3\0\0\0\0\0\0\0abc.", SFTI_VALUE_BYTES),
    ROW("\x96\3\0\0\0\0\0\0\0abc.", SFTI_VALUE_BYTES),
    ROW(").", SFTI_VALUE_TUPLE),
    ROW("N\x85.", SFTI_VALUE_TUPLE),
    ROW("NN\x86.", SFTI_VALUE_TUPLE),
    ROW("NNN\x87.", SFTI_VALUE_TUPLE),
    ROW("(NNNNt.", SFTI_VALUE_TUPLE),
    ROW("].", SFTI_VALUE_LIST),
    ROW("]Na.", SFTI_VALUE_LIST),
    ROW("](NNe.", SFTI_VALUE_LIST),
    ROW("](e.", SFTI_VALUE_LIST),
    ROW("}(u.", SFTI_VALUE_MAP),
    ROW("(NNl.", SFTI_VALUE_LIST),
    ROW("}.", SFTI_VALUE_MAP),
    ROW("}K\1Ns.", SFTI_VALUE_MAP),
    ROW("}(K\1NK\2Nu.", SFTI_VALUE_MAP),
    ROW("(K\1Nd.", SFTI_VALUE_MAP),
    ROW("\x8f(K\1\x90.", SFTI_VALUE_SET),
    ROW("(K\1\x91.", SFTI_VALUE_SET),
    ROW("cm\nn\n.", SFTI_VALUE_GLOBAL),
    ROW("\x8c\1m\x8c\1n\x93.", SFTI_VALUE_GLOBAL),
    ROW("cm\nn\n)R.", SFTI_VALUE_OBJECT),
    ROW("cm\nn\n)\x81.", SFTI_VALUE_OBJECT),
    ROW("cm\nn\n)}\x92.", SFTI_VALUE_OBJECT),
    ROW("cm\nn\n)R}b.", SFTI_VALUE_OBJECT),
    ROW("cm\nn\n)RK\1Ns(NNe]a.", SFTI_VALUE_OBJECT),
    ROW("NQ.", SFTI_VALUE_OUTSIDE),
    ROW("Pabc\n.", SFTI_VALUE_OUTSIDE),
    ROW("Np0\ng0\n\x86.", SFTI_VALUE_TUPLE),
    ROW("Nq\0h\0\x86.", SFTI_VALUE_TUPLE),
    ROW("Nr\0\0\0\0j\0\0\0\0\x86.", SFTI_VALUE_TUPLE),
    ROW("N\x94h\0\x86.", SFTI_VALUE_TUPLE),
    ROW("NK\1""0.", SFTI_VALUE_NONE),
    ROW("N(0.", SFTI_VALUE_NONE),
    ROW("N(K\1K\2""1.", SFTI_VALUE_NONE),
    ROW("N2\x86.", SFTI_VALUE_TUPLE),
    ROW("I00\n.", SFTI_VALUE_BOOL),
    ROW("I02\n.", SFTI_VALUE_INT),
    ROW("I18446744073709551616\n.", SFTI_VALUE_NUMBER),
    ROW("I999999999999999999999999\n.", SFTI_VALUE_NUMBER),
    ROW("cm\nn\n)R)R.", SFTI_VALUE_OBJECT),
    ROW("NQ)R.", SFTI_VALUE_OBJECT),
    ROW("Nq\0q\0.", SFTI_VALUE_NONE),
};

#define CASES (sizeof opcode_cases / sizeof *opcode_cases)

static void every_opcode_is_read(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        for (int in_memory = 0; in_memory < 2; in_memory++) {
            pickle_case c;
            const opcode_case *row = &opcode_cases[i];
            if (read_case(&c, row->bytes, row->len, in_memory != 0))
                fail_msg("row %zu: %s", i, c.err.message);
            if (c.pickle.root->kind != row->kind)
                fail_msg("row %zu: %s", i, sfti_value_kind_name(c.pickle.root->kind));
            assert_int_equal(c.pickle.end, row->len);
            end(&c);
        }
    }
}

/* Cut anywhere, a pickle has no STOP. Its bytes end where the memory does. */
static void every_cut_is_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        for (size_t len = 0; len < opcode_cases[i].len; len++) {
            char *bytes = malloc(len + 1);
            assert_non_null(bytes);
            memcpy(bytes, opcode_cases[i].bytes, len);
            for (int in_memory = 0; in_memory < 2; in_memory++) {
                pickle_case c;
                char *cut = realloc(NULL, len ? len : 1);
                memcpy(cut, bytes, len);
                sft_code code = read_case(&c, cut, len, in_memory != 0);
                if (code != SFT_FOREIGN_TRUNCATED)
                    fail_msg("row %zu cut at %zu: %d %s", i, len, code, c.err.message);
                end(&c);
                free(cut);
            }
            free(bytes);
        }
    }
}

static void other_opcodes_are_refused(void **state) {
    (void)state;
    static const uint8_t known[] = "\x80\x95.(012N\x88\x89JKM\x8a\x8bGILFSVTUX\x8c\x8d" "BC\x8e"
                                   "\x96)\x85\x86\x87t]ael}sud\x8f\x90\x91" "c\x93R\x81\x92"
                                   "bQPghjpqr\x94";
    unsigned refused = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t bytes[2] = { (uint8_t)byte, '.' };
        if (byte != 0 && memchr(known, (int)byte, sizeof known - 1)) continue;
        expect((char *)bytes, 2, SFT_FOREIGN_OPCODE, 0);
        refused++;
    }
    assert_int_equal(refused, 256 - (sizeof known - 1));
    pickle_case c;
    assert_int_equal(read_case(&c, "Noi.", 4, true), SFT_FOREIGN_OPCODE);
    assert_non_null(strstr(c.err.message, "OBJ"));
    end(&c);
}

/* ── Abuse ── */

static void the_stack_and_marks_are_guarded(void **state) {
    (void)state;
    EXPECT(".", SFT_FOREIGN_OPCODE, 0);
    EXPECT("NN.", SFT_FOREIGN_OPCODE, 2);
    EXPECT("(N.", SFT_FOREIGN_OPCODE, 2);
    EXPECT("N(.", SFT_FOREIGN_OPCODE, 2);
    EXPECT("0", SFT_FOREIGN_OPCODE, 0);
    EXPECT("1", SFT_FOREIGN_OPCODE, 0);
    EXPECT("2", SFT_FOREIGN_OPCODE, 0);
    EXPECT("t", SFT_FOREIGN_OPCODE, 0);
    EXPECT("N\x86.", SFT_FOREIGN_OPCODE, 1);
    EXPECT("N(\x85.", SFT_FOREIGN_OPCODE, 2);
    EXPECT("](N\x86.", SFT_FOREIGN_OPCODE, 3);
    EXPECT("Na.", SFT_FOREIGN_OPCODE, 1);
    EXPECT("(Ne.", SFT_FOREIGN_OPCODE, 2);
    EXPECT("(K\1Nu.", SFT_FOREIGN_OPCODE, 4);
    EXPECT("R", SFT_FOREIGN_OPCODE, 0);
    EXPECT(")R", SFT_FOREIGN_OPCODE, 1);
    EXPECT("\x93", SFT_FOREIGN_OPCODE, 0);
    EXPECT("Q", SFT_FOREIGN_OPCODE, 0);
    EXPECT("b", SFT_FOREIGN_OPCODE, 0);
    EXPECT("p0\n", SFT_FOREIGN_OPCODE, 0);
    EXPECT("(q\0", SFT_FOREIGN_OPCODE, 1);
}

static void items_go_into_containers_only(void **state) {
    (void)state;
    EXPECT("K\1K\2K\3s.", SFT_FOREIGN_OPCODE, 6);
    EXPECT("](K\2K\3u.", SFT_FOREIGN_OPCODE, 6);
    EXPECT(")K\2K\3s.", SFT_FOREIGN_OPCODE, 5);
    EXPECT("NQK\2K\3s.", SFT_FOREIGN_OPCODE, 6);
    EXPECT("cm\nn\nK\2K\3s.", SFT_FOREIGN_OPCODE, 9);
    EXPECT("}K\1a.", SFT_FOREIGN_OPCODE, 3);
    EXPECT(")K\1a.", SFT_FOREIGN_OPCODE, 3);
    EXPECT("\x8fK\1a.", SFT_FOREIGN_OPCODE, 3);
    EXPECT("](K\1\x90.", SFT_FOREIGN_OPCODE, 4);
    EXPECT("cm\nn\n)R(K\1\x90.", SFT_FOREIGN_OPCODE, 10);
    EXPECT("\x92", SFT_FOREIGN_OPCODE, 0);
    EXPECT("}(K\1u.", SFT_FOREIGN_OPCODE, 4);
    EXPECT("(K\1d.", SFT_FOREIGN_OPCODE, 3);
}

static void calls_have_a_callee_and_a_tuple(void **state) {
    (void)state;
    EXPECT("K\1)R.", SFT_FOREIGN_OPCODE, 3);
    EXPECT("])\x81.", SFT_FOREIGN_OPCODE, 2);
    EXPECT("cm\nn\n]R.", SFT_FOREIGN_OPCODE, 6);
    EXPECT("cm\nn\nNR.", SFT_FOREIGN_OPCODE, 6);
    EXPECT("cm\nn\n)]\x92.", SFT_FOREIGN_OPCODE, 7);
    EXPECT("]}b.", SFT_FOREIGN_OPCODE, 2);
    EXPECT("cm\nn\n}b.", SFT_FOREIGN_OPCODE, 6);
    EXPECT("cm\nn\n)R}b}b.", SFT_FOREIGN_OPCODE, 10);
    EXPECT("K\1X\1\0\0\0n\x93.", SFT_FOREIGN_OPCODE, 8);
    EXPECT("c\nn\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("cm\n\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("cm\xff\nn\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("cm\n\xed\xa0\x80\n.", SFT_FOREIGN_SYNTAX, 0);
}

static void the_memo_is_as_large_as_what_was_put(void **state) {
    (void)state;
    EXPECT("h\0.", SFT_FOREIGN_OPCODE, 0);
    EXPECT("Nq\1h\0.", SFT_FOREIGN_OPCODE, 3);
    EXPECT("Nr\xff\xff\xff\xff.", SFT_FOREIGN_TABLE, 1);
    EXPECT("Nr\0\0\1\0.", SFT_FOREIGN_TABLE, 1);
    EXPECT("Nj\xff\xff\xff\xff.", SFT_FOREIGN_OPCODE, 1);
    EXPECT("Np18446744073709551615\n.", SFT_FOREIGN_SYNTAX, 1);
    EXPECT("Np9223372036854775807\n.", SFT_FOREIGN_TABLE, 1);
    EXPECT("Np-1\n.", SFT_FOREIGN_SYNTAX, 1);
    EXPECT("Ngx\n.", SFT_FOREIGN_SYNTAX, 1);
}

/* Lengths that the file does not have allocate nothing. */
static void lengths_are_checked_first(void **state) {
    (void)state;
    EXPECT("X\xff\xff\xff\xff.", SFT_FOREIGN_TRUNCATED, 5);
    EXPECT("B\xff\xff\xff\xff.", SFT_FOREIGN_TRUNCATED, 5);
    EXPECT("\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", SFT_FOREIGN_TRUNCATED, 9);
    EXPECT("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", SFT_FOREIGN_TRUNCATED, 9);
    EXPECT("\x96\0\0\0\0\1\0\0\0.", SFT_FOREIGN_TRUNCATED, 9);
    EXPECT("T\xff\xff\xff\xff.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("\x8b\xff\xff\xff\xff.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("\x95\xff\xff\xff\xff\xff\xff\xff\xff.", SFT_FOREIGN_TRUNCATED, 0);
    EXPECT("\x80\x06.", SFT_FOREIGN_OPCODE, 0);
    EXPECT("N\x80\x02.", SFT_FOREIGN_OPCODE, 1);
    EXPECT("I1x\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("I\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'a\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'a\\'\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'\\xg0'\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("V\\u12\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("V\\ud800\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("V\\udfff\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("V\\U00110000\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("V\\u00G0\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("V\\u0\0\0\0\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'\\q'\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'\\\0'\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'\\x4'\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'a'b'\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'ab\"\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("Sabba\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S'\n.", SFT_FOREIGN_SYNTAX, 0);
    EXPECT("S\n.", SFT_FOREIGN_SYNTAX, 0);
}

/* ── Values ── */

static void numbers_have_their_values(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        int64_t value;
    } rows[] = {
        { "J\xfe\xff\xff\xff.", 6, -2 },
        { "K\xff.", 3, 255 },
        { "M\x01\x02.", 4, 0x201 },
        { "\x8a\0.", 3, 0 },
        { "\x8a\1\xff.", 4, -1 },
        { "\x8a\2\xff\0.", 5, 255 },
        { "\x8a\x08\0\0\0\0\0\0\0\x80.", 11, INT64_MIN },
        { "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\0.", 12, INT64_MAX },
        { "I-9223372036854775808\n.", 23, INT64_MIN },
        { "L9223372036854775807L\n.", 23, INT64_MAX },
        { "I+5\n.", 5, 5 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pickle_case c;
        assert_int_equal(read_case(&c, rows[i].bytes, rows[i].len, i % 2 == 0), SFT_OK);
        assert_int_equal(c.pickle.root->kind, SFTI_VALUE_INT);
        if (c.pickle.root->u.integer != rows[i].value) fail_msg("row %zu", i);
        end(&c);
    }
    pickle_case c;
    assert_int_equal(read_case(&c, "G\xc0\x09\x21\xfb\x54\x44\x2d\x18.", 10, true), SFT_OK);
    assert_true(c.pickle.root->u.real == -3.141592653589793);
    end(&c);
}

static void texts_have_their_bytes(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *text;
    } rows[] = {
        { "S'a\\tb\\x41\\\\\\\"'\n.", "a\tbA\\\"" },
        { "S\"it's\"\n.", "it's" },
        { "Vh\\u00e9\\U0001f600\\n\xe9\n.", "h\xc3\xa9\xf0\x9f\x98\x80\\n\xc3\xa9" },
        { "X\3\0\0\0abc.", "abc" },
        { "Va\\\n.", "a\\" },
        { "V\\x41\\ue000\\u00E9\n.", "\\x41\xee\x80\x80\xc3\xa9" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int in_memory = 0; in_memory < 2; in_memory++) {
            pickle_case c;
            size_t len = i == 3 ? 9 : strlen(rows[i].bytes);
            assert_int_equal(read_case(&c, rows[i].bytes, len, in_memory != 0), SFT_OK);
            const sfti_value *root = c.pickle.root;
            assert_int_equal(root->count, strlen(rows[i].text));
            assert_memory_equal(root->u.text, rows[i].text, root->count);
            end(&c);
        }
    }
}

/* Bytes are a place in the file; long texts are, too, unless the file is in memory. */
static void bytes_stay_where_they_are(void **state) {
    (void)state;
    size_t len = 3 << 20;
    char *bytes = malloc(len + 32);
    assert_non_null(bytes);
    memset(bytes, 'x', len + 32);
    memcpy(bytes, "\x80\2(B", 4);
    memcpy(bytes + 4, "\0\0\x10\0", 4); /* 1 MiB */
    char *text = bytes + 8 + (1 << 20);
    memcpy(text, "X\0\0\x10\0", 5);
    memcpy(text + 5 + (1 << 20), "X\2\0\0\0abt.", 9);
    size_t all = (size_t)(text + 5 + (1 << 20) + 9 - bytes);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        pickle_case c;
        assert_int_equal(read_case(&c, bytes, all, in_memory != 0), SFT_OK);
        sfti_value **items = c.pickle.root->u.items;
        assert_int_equal(c.pickle.root->count, 3);
        assert_int_equal(items[0]->kind, SFTI_VALUE_BYTES);
        assert_int_equal(items[0]->at, 8);
        assert_int_equal(items[0]->u.length, 1 << 20);
        assert_int_equal(items[1]->count, 1 << 20);
        assert_int_equal(items[1]->at, text + 5 - bytes);
        assert_true(in_memory ? items[1]->u.text == text + 5 : items[1]->u.text == NULL);
        assert_memory_equal(items[2]->u.text, "ab", 2);
        assert_true(c.arena.bytes < 1 << 16);
        end(&c);
    }
    free(bytes);
}

/* Ten levels of ten references each: 10^10 leaves, but eleven lists. */
static void shared_values_are_linear(void **state) {
    (void)state;
    char bytes[1024];
    size_t len = 0;
    bytes[len++] = ']';
    bytes[len++] = 'q';
    bytes[len++] = 0;
    for (int level = 1; level <= 10; level++) {
        memcpy(bytes + len, "](", 2);
        len += 2;
        for (int i = 0; i < 10; i++) {
            bytes[len++] = 'h';
            bytes[len++] = (char)(level - 1);
        }
        memcpy(bytes + len, "eq", 2);
        bytes[len + 2] = (char)level;
        len += 3;
    }
    memcpy(bytes + len, "l.", 2); /* no mark */
    bytes[len] = '.';
    pickle_case c;
    assert_int_equal(read_case(&c, bytes, len + 1, true), SFT_FOREIGN_OPCODE); /* ten on top */
    end(&c);
    memmove(bytes + 1, bytes, len);
    bytes[0] = '(';
    memcpy(bytes + len + 1, "l.", 2);
    assert_int_equal(read_case(&c, bytes, len + 3, true), SFT_OK);
    assert_int_equal(c.pickle.root->count, 11);
    assert_ptr_equal(c.pickle.root->u.items[10]->u.items[0], c.pickle.root->u.items[9]);
    assert_true(c.arena.bytes < 1 << 14);
    end(&c);
}

static void cycles_are_read(void **state) {
    (void)state;
    pickle_case c;
    assert_int_equal(read_case(&c, "]q\0h\0a.", 7, true), SFT_OK);
    assert_ptr_equal(c.pickle.root->u.items[0], c.pickle.root);
    end(&c);
    assert_int_equal(read_case(&c, "}q\0K\1h\0s.", 9, true), SFT_OK);
    assert_ptr_equal(c.pickle.root->u.items[1], c.pickle.root);
    end(&c);
    assert_int_equal(read_case(&c, "cm\nn\n)Rq\0h\0b.", 13, true), SFT_OK);
    assert_ptr_equal(c.pickle.root->u.object->state, c.pickle.root);
    end(&c);
}

/* Nothing of this is deep for the machine. */
static void depth_is_no_matter(void **state) {
    (void)state;
    size_t depth = 1000000;
    char *bytes = malloc(3 * depth + 2);
    assert_non_null(bytes);
    memset(bytes, '(', depth);
    memset(bytes + depth, 'l', depth);
    bytes[2 * depth] = '.';
    pickle_case c;
    assert_int_equal(read_case(&c, bytes, 2 * depth + 1, true), SFT_OK);
    end(&c);
    memset(bytes, ')', 1);
    memset(bytes + 1, '\x85', depth);
    bytes[depth + 1] = '.';
    assert_int_equal(read_case(&c, bytes, depth + 2, false), SFT_OK);
    end(&c);
    free(bytes);
}

static void the_stack_has_a_limit(void **state) {
    (void)state;
    size_t len = 10000002;
    char *bytes = malloc(len);
    assert_non_null(bytes);
    memset(bytes, 'N', len);
    pickle_case c;
    assert_int_equal(read_case(&c, bytes, len, true), SFT_FOREIGN_TABLE);
    assert_int_equal(c.err.offset, 10000000);
    end(&c);
    memset(bytes, '(', len);
    assert_int_equal(read_case(&c, bytes, len, false), SFT_FOREIGN_TABLE);
    end(&c);
    free(bytes);
}

static void globals_are_counted_once_each(void **state) {
    (void)state;
    static const char bytes[] = "(cos\nsystem\n)Rcos\nsystem\n0\x8c\2os\x8c\6system\x93)\x81"
                                "cos\npath\nt.";
    pickle_case c;
    assert_int_equal(read_case(&c, bytes, sizeof bytes - 1, true), SFT_OK);
    assert_int_equal(c.pickle.global_count, 2);
    const sfti_global *system = c.pickle.globals[0], *path = c.pickle.globals[1];
    assert_memory_equal(system->name.data, "system", 6);
    assert_int_equal(system->named, 3);
    assert_int_equal(system->calls, 2);
    assert_int_equal(path->named, 1);
    assert_int_equal(path->calls, 0);
    assert_ptr_equal(c.pickle.first->value, c.pickle.root->u.items[0]);
    assert_ptr_equal(c.pickle.first->next->value, c.pickle.root->u.items[1]);
    end(&c);
}

static void many_globals_are_found_again(void **state) {
    (void)state;
    size_t count = 5000, len = 0;
    char *bytes = malloc(count * 2 * 16 + 16);
    assert_non_null(bytes);
    bytes[len++] = '(';
    for (size_t i = 0; i < 2 * count; i++) {
        size_t n = i % count;
        bytes[len++] = 'c';
        for (int digit = 0; digit < 4; digit++, n /= 10) bytes[len++] = (char)('0' + n % 10);
        memcpy(bytes + len, "\nn\n", 3);
        len += 3;
    }
    memcpy(bytes + len, "l.", 2);
    pickle_case c;
    assert_int_equal(read_case(&c, bytes, len + 2, false), SFT_OK);
    assert_int_equal(c.pickle.global_count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(c.pickle.globals[i]->named, 2);
    end(&c);
    free(bytes);
}

/* Limits of what is read through a window, which a file in memory does not have. */
static void long_lines_and_names_are_refused(void **state) {
    (void)state;
    size_t len = 2 * SFTI_SCAN_WINDOW;
    char *bytes = malloc(len);
    assert_non_null(bytes);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        pickle_case c;
        memset(bytes, '1', len);
        bytes[0] = 'F';
        memcpy(bytes + SFTI_SCAN_WINDOW + 5, "\n.", 2);
        sft_code code = read_case(&c, bytes, SFTI_SCAN_WINDOW + 7, in_memory != 0);
        assert_int_equal(code, in_memory ? SFT_OK : SFT_FOREIGN_TABLE);
        if (code) assert_non_null(strstr(c.err.message, "found a longer one"));
        if (code) assert_int_equal(c.err.offset, 1);
        end(&c);
        memset(bytes, 'm', len);
        memcpy(bytes, "X\x88\x13\0\0", 5); /* 5,000 bytes */
        memcpy(bytes + 5005, "X\1\0\0\0n\x93.", 8);
        code = read_case(&c, bytes, 5013, in_memory != 0);
        assert_int_equal(code, in_memory ? SFT_OK : SFT_FOREIGN_TABLE);
        if (code) assert_non_null(strstr(c.err.message, "a name of at most 4096 bytes"));
        end(&c);
        memmove(bytes + 6, bytes, 5005);
        memcpy(bytes, "X\1\0\0\0m", 6);
        memcpy(bytes + 5011, "\x93.", 2);
        code = read_case(&c, bytes, 5013, in_memory != 0);
        assert_int_equal(code, in_memory ? SFT_OK : SFT_FOREIGN_TABLE);
        end(&c);
    }
    free(bytes);
}

/* A source that has fewer bytes than it was said to have. */
static void a_source_that_ends_early_is_told(void **state) {
    (void)state;
    sft_source source = sft_source_memory("\x80\2}", 3);
    pickle_case c;
    begin(&c);
    sfti_pickle_input input = { &source, 0, 9, NULL };
    assert_int_equal(sfti_pickle_read(&input, &c.arena, &c.pickle, &c.err), SFT_FOREIGN_TRUNCATED);
    assert_int_equal(c.err.offset, 3);
    assert_non_null(strstr(c.err.message, "expected 6 more bytes"));
    end(&c);
}

static void globals_have_a_limit(void **state) {
    (void)state;
    size_t count = SFTI_PICKLE_GLOBALS + 1, len = 0;
    char *bytes = malloc(count * 10);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++) {
        size_t n = i;
        bytes[len++] = 'c';
        for (int digit = 0; digit < 5; digit++, n /= 10) bytes[len++] = (char)('0' + n % 10);
        memcpy(bytes + len, "\nn\n0", 4);
        len += 4;
    }
    expect(bytes, len, SFT_FOREIGN_TABLE, (count - 1) * 10);
    free(bytes);
}

/* A pickle that another follows ends where it says. */
static void pickles_stand_in_a_row(void **state) {
    (void)state;
    static const char bytes[] = "xxK\1.K\2.";
    sft_source source = sft_source_memory(bytes, sizeof bytes - 1);
    pickle_case c;
    begin(&c);
    sfti_pickle_input input = { &source, 2, sizeof bytes - 1, NULL };
    for (int64_t i = 1; i <= 2; i++) {
        assert_int_equal(sfti_pickle_read(&input, &c.arena, &c.pickle, &c.err), SFT_OK);
        assert_int_equal(c.pickle.root->u.integer, i);
        input.begin = c.pickle.end;
    }
    assert_int_equal(input.begin, sizeof bytes - 1);
    end(&c);
}

/* Every allocation fails once: a code, and nothing is leaked. */
typedef struct failing { size_t left; int64_t held; } failing;

static void *fail_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    if (new_size == 0) {
        if (ptr) f->held -= (int64_t)old_size;
        free(ptr);
        return NULL;
    }
    if (f->left == 0) return NULL;
    f->left--;
    f->held += (int64_t)new_size - (ptr ? (int64_t)old_size : 0);
    return realloc(ptr, new_size);
}

static void allocations_may_fail(void **state) {
    (void)state;
    static const char bytes[] = "(cm\nn\n)RK\1Ns}b]Na\x8c\3abcq\0\x8c\1m\x8c\1o\x93Vx\\u1234\nt.";
    size_t tries = 0;
    for (bool done = false; !done; tries++) {
        failing f = { tries, 0 };
        pickle_case c;
        begin(&c);
        c.arena.alloc = (sft_allocator){ fail_resize, &f };
        sft_source source = sft_source_memory(bytes, sizeof bytes - 1);
        sfti_pickle_input input = { &source, 0, sizeof bytes - 1, NULL };
        sft_code code = sfti_pickle_read(&input, &c.arena, &c.pickle, &c.err);
        done = code == SFT_OK;
        if (!done) assert_int_equal(code, SFT_OUT_OF_MEMORY);
        end(&c);
        assert_int_equal(f.held, 0);
    }
    assert_true(tries > 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_opcode_is_read),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(other_opcodes_are_refused),
        cmocka_unit_test(the_stack_and_marks_are_guarded),
        cmocka_unit_test(items_go_into_containers_only),
        cmocka_unit_test(calls_have_a_callee_and_a_tuple),
        cmocka_unit_test(the_memo_is_as_large_as_what_was_put),
        cmocka_unit_test(lengths_are_checked_first),
        cmocka_unit_test(numbers_have_their_values),
        cmocka_unit_test(texts_have_their_bytes),
        cmocka_unit_test(bytes_stay_where_they_are),
        cmocka_unit_test(shared_values_are_linear),
        cmocka_unit_test(cycles_are_read),
        cmocka_unit_test(depth_is_no_matter),
        cmocka_unit_test(the_stack_has_a_limit),
        cmocka_unit_test(globals_are_counted_once_each),
        cmocka_unit_test(many_globals_are_found_again),
        cmocka_unit_test(long_lines_and_names_are_refused),
        cmocka_unit_test(a_source_that_ends_early_is_told),
        cmocka_unit_test(globals_have_a_limit),
        cmocka_unit_test(pickles_stand_in_a_row),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
