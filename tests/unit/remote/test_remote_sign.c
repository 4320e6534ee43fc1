/* What object stores need below their schemes: signatures, XML, configuration files. */
#include "base/calendar.h"
#include "remote/stores/credentials.h"
#include "remote/stores/sign.h"
#include "remote/stores/xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ── Signatures ── */

/* Of requests that botocore signed at 2026-11-21T12:20:01Z (tests/remote/sign_cases.py has many
 * more): the credentials of Amazon's documentation. */
static const struct {
    const char *session, *region, *url, *authorization;
} signed_requests[] = {
    { NULL, "us-east-1",
      "https://examplebucket.s3.amazonaws.com/test.txt",
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261121/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
      "Signature=54b2281ffbffe59db9e588c227693e1537f17b6c0d1bdac5844d4f5eb42963c3" },
    { NULL, "eu-west-1",
      "https://b.s3.eu-west-1.amazonaws.com/a%20b/%C3%A4%2B%3D.bin",
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261121/eu-west-1/s3/aws4_request, "
      "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
      "Signature=5eba12a294fa6c4d081022c909f4f4d86f303bd755517c90734647e3cf9af324" },
    { "FwoGZXIvYXdzEXAMPLE//token+with=signs==", "us-east-1",
      "http://127.0.0.1:9000/bucket/a//b/../c",
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261121/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, "
      "Signature=49798f6a5ca95ce7b754e83d68e440f1f3453de34170ecb026f8cb8e1c4af9a9" },
    { NULL, "us-east-1",
      "https://b.s3.amazonaws.com/?prefix=p%2F&list-type=2&delimiter=%2F",
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261121/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
      "Signature=7df55f3c630f498fbc6586fd128d4bf69802da2c885ce87f54bad682ecc1e134" },
    { NULL, "auto",
      "https://storage.googleapis.com/bucket",
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20261121/auto/s3/aws4_request, "
      "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
      "Signature=fd2f65928fe16dfb6de42c0a39ecbe287832f3de32e278f004323b6b7f9abec1" },
};

static const char *header_of(const sfti_headers *headers, const char *name) {
    for (size_t i = 0; i < headers->count; i++)
        if (sft_span_equal(headers->at[i].key, sft_span_cstr(name)))
            return headers->at[i].value.data;
    return NULL;
}

static void test_signatures(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(signed_requests); i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_headers headers = { .arena = &arena };
        sfti_sign_request request = {
            { "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
              signed_requests[i].session },
            signed_requests[i].region, "s3", "GET", signed_requests[i].url, 1795263601
        };
        assert_int_equal(sfti_sign(&request, &headers, NULL), SFT_OK);
        assert_string_equal(header_of(&headers, "authorization"), signed_requests[i].authorization);
        assert_string_equal(header_of(&headers, "x-amz-date"), "20261121T122001Z");
        assert_string_equal(header_of(&headers, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
        const char *session = header_of(&headers, "x-amz-security-token");
        if (signed_requests[i].session) assert_string_equal(session, signed_requests[i].session);
        else assert_null(session);
        sfti_arena_free(&arena);
    }
}

/* A key with a line feed would add a header of its own. */
static void test_keys_with_controls(void **state) {
    (void)state;
    static const struct { const char *id, *session; } rows[] = {
        { "AKID\r\nx-evil: 1", NULL }, { "AKID", "token\nx-evil: 1" },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_headers headers = { .arena = &arena };
        sft_error err;
        sfti_sign_request request = { { rows[i].id, "secret", rows[i].session }, "us-east-1", "s3",
                                      "GET", "https://b.example/k", 0 };
        assert_int_equal(sfti_sign(&request, &headers, &err), SFT_BAD_ARGUMENT);
        assert_null(strstr(err.message, "evil"));
        sfti_arena_free(&arena);
    }
}

static void test_calendar(void **state) {
    (void)state;
    static const struct { int64_t days, year; unsigned month, day; } rows[] = {
        { 0, 1970, 1, 1 }, { 59, 1970, 3, 1 }, { 11016, 2000, 2, 29 }, { 11017, 2000, 3, 1 },
        { 20778, 2026, 11, 21 }, { 47540, 2100, 2, 28 }, { 47541, 2100, 3, 1 },
        { -1, 1969, 12, 31 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t year;
        unsigned month, day;
        sfti_date_of_days(rows[i].days, &year, &month, &day);
        assert_int_equal(year, rows[i].year);
        assert_int_equal(month, rows[i].month);
        assert_int_equal(day, rows[i].day);
        assert_int_equal(sfti_days_of_date(year, month, day), rows[i].days);
    }
}

/* ── XML ── */

/* Events as text: "<a" opened, "a>" closed, "'text'", "$" the end, "!why@at" an error. */
static void events_of(const char *text, char *out, size_t cap) {
    sfti_xml xml;
    size_t len = 0;
    sfti_xml_begin(&xml, sft_span_cstr(text));
    *out = '\0';
    for (int more = 1; more && len + 100 < cap;) {
        sfti_xml_type type = sfti_xml_next(&xml);
        sft_span name = xml.name, got = xml.text;
        char *to = out + len;
        int put = 0;
        switch (type) {
        case SFTI_XML_OPEN: put = snprintf(to, cap - len, "<%.*s", (int)name.len, name.data); break;
        case SFTI_XML_CLOSE:
            put = snprintf(to, cap - len, "%.*s>", (int)name.len, name.data);
            break;
        case SFTI_XML_TEXT: put = snprintf(to, cap - len, "'%.*s'", (int)got.len, got.data); break;
        case SFTI_XML_END: put = snprintf(to, cap - len, "$"); break;
        default: put = snprintf(to, cap - len, "!%s@%zu", xml.why, xml.error_at); break;
        }
        len += (size_t)put;
        more = type != SFTI_XML_END && type != SFTI_XML_ERROR;
    }
}

static void test_xml_events(void **state) {
    (void)state;
    static const struct { const char *text, *events; } rows[] = {
        { "<a/>", "<aa>$" },
        { "\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <b> --><a x='>' y=\"/\">t</a>\n", "<a't'a>$" },
        { "<a> <b>x y</b>\r\n<n:c xmlns:n='u'/></a >", "<a<b'x y'b><cc>a>$" },
        { "<a>1<![CDATA[<&]]>2</a>", "<a'1''<&''2'a>$" },
        { "<a>x<!-- y -->z</a>", "<a'x''z'a>$" },
        { "", "!an element@0" },
        { "  ", "!an element@0" },
        { "text", "!an element@0" },
        { "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "!an element@0" },
        { "<a><!ENTITY b 'c'></a>", "<a!a tag@3" },
        { "<a", "!a tag that ends@0" },
        { "<a <b>", "!a tag that ends@0" },
        { "<a x='>", "!a tag that ends@0" },
        { "<a>", "<a!the end of an element@3" },
        { "<a></b>", "<a!the end of the element that began last@3" },
        { "<a></a", "<a!the tag that ends an element@3" },
        { "</a>", "!the end of the element that began last@0" },
        { "<a/><b/>", "<aa>!nothing after the element@4" },
        { "<a/>x", "<aa>!nothing after the element@4" },
        { "<a><!-- ", "<a!the end of a comment@3" },
        { "<a><![CDATA[x]]", "<a!the end of CDATA@3" },
        { "<? ", "!the end of an instruction@0" },
        { "<>", "!a tag@0" },
        { "<a></>", "<a!the tag that ends an element@3" },
        { "<a></a b>", "<a!the tag that ends an element@3" },
        { "<A_b-c.d9\xc3\xa4/>", "<A_b-c.d9\xc3\xa4" "A_b-c.d9\xc3\xa4>$" },
        { "<a+/>", "<aa>$" },
        { "<a x='\"/' y=\"'\"/>", "<aa>$" },
        { "<a>\t \r\n<b/>\t</a>\t", "<a<bb>a>$" },
        { "<a><b>", "<a<b!the end of an element@6" },
    };
    char found[512];
    for (size_t i = 0; i < COUNT(rows); i++) {
        events_of(rows[i].text, found, sizeof found);
        assert_string_equal(found, rows[i].events);
    }
}

static void test_xml_depth(void **state) {
    (void)state;
    char text[200] = "", found[512];
    for (size_t i = 0; i < 33; i++) memcpy(text + 3 * i, "<a>", 4);
    events_of(text, found, sizeof found);
    assert_non_null(strstr(found, "!at most 32 elements in another@96"));
}

static void test_xml_texts(void **state) {
    (void)state;
    static const struct { const char *text, *decoded; } rows[] = {
        { "<k>plain</k>", "plain" },
        { "<k></k>", "" },
        { "<k/>", "" },
        { "<k>a&amp;b&lt;&gt;&quot;&apos;</k>", "a&b<>\"'" },
        { "<k>&#228;&#xe4;&#x1F642;&#10;</k>", "\xc3\xa4\xc3\xa4\xf0\x9f\x99\x82\n" },
        { "<k> a <x>left out</x>b<![CDATA[&amp;]]></k>", " a b&amp;" },
        { "<k>&nbsp;</k>", NULL },
        { "<k>&#0;</k>", NULL },
        { "<k>&#xd800;</k>", NULL },
        { "<k>&#x110000;</k>", NULL },
        { "<k>&#;</k>", NULL },
        { "<k>&#12a;</k>", NULL },
        { "<k>&#x;</k>", NULL },
        { "<k>&#xg;</k>", NULL },
        { "<k>&#x0;</k>", NULL },
        { "<k>&#xDFFF;&#xE000;</k>", NULL },
        { "<k>&#xE000;&#xD7FF;&#x10FFFF;</k>", "\xee\x80\x80\xed\x9f\xbf\xf4\x8f\xbf\xbf" },
        { "<k>&#0000000228;</k>", NULL }, /* longer than any */
        { "<k>&;</k>", NULL },
        { "<k><x>&bad;</x>a</k>", "a" },
        { "<k>a<x></k>", NULL },
        { "<k>&amp</k>", NULL },
        { "<k>a & b</k>", NULL },
        { "<k>\xff</k>", NULL },
        { "<k>a", NULL },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_xml xml;
        sfti_xml_begin(&xml, sft_span_cstr(rows[i].text));
        assert_int_equal(sfti_xml_next(&xml), SFTI_XML_OPEN);
        sft_span text = sfti_xml_element(&xml, &arena);
        if (rows[i].decoded) {
            assert_non_null(text.data);
            assert_string_equal(text.data, rows[i].decoded);
            assert_int_equal(text.len, strlen(rows[i].decoded));
            assert_int_equal(xml.type, SFTI_XML_CLOSE);
            assert_int_equal(sfti_xml_next(&xml), SFTI_XML_END);
        } else {
            assert_null(text.data);
            assert_int_equal(xml.type, SFTI_XML_ERROR);
            assert_int_equal(sfti_xml_next(&xml), SFTI_XML_ERROR);
        }
        sfti_arena_free(&arena);
    }
}

/* ── Configuration files ── */

static void test_ini(void **state) {
    (void)state;
    static const char text[] =
        "\xef\xbb\xbf# a comment\r\n"
        "early = 1\n"
        "[default]\n"
        "Region=eu-west-1 # stays\n"
        "  ; a comment\n"
        "s3 =\n"
        "  addressing_style = path\n"
        "\tmax = 3\n"
        "a : b=c\n"
        "  continued = a value's\n"
        "[ profile \"x y\" ]\n"
        "no value\n"
        "=\n"
        "k=\n"
        "[open\n"
        "last = 1";
    static const struct { const char *section, *parent, *key, *value; } rows[] = {
        { "", "", "early", "1" },
        { "default", "", "Region", "eu-west-1 # stays" },
        { "default", "", "s3", "" },
        { "default", "s3", "addressing_style", "path" },
        { "default", "s3", "max", "3" },
        { "default", "", "a", "b=c" },
        { "profile \"x y\"", "", "k", "" },
        { "open", "", "last", "1" },
    };
    sfti_ini ini;
    size_t count = 0;
    for (sfti_ini_begin(&ini, (sft_span){ text, sizeof text - 1 }); sfti_ini_next(&ini); count++) {
        assert_in_range(count, 0, COUNT(rows) - 1);
        assert_true(sft_span_equal(ini.section, sft_span_cstr(rows[count].section)));
        assert_true(sft_span_equal(ini.parent, sft_span_cstr(rows[count].parent)));
        assert_true(sft_span_equal(ini.key, sft_span_cstr(rows[count].key)));
        assert_true(sft_span_equal(ini.value, sft_span_cstr(rows[count].value)));
    }
    assert_int_equal(count, COUNT(rows));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_keys_with_controls),
        cmocka_unit_test(test_calendar),
        cmocka_unit_test(test_xml_events),
        cmocka_unit_test(test_xml_depth),
        cmocka_unit_test(test_xml_texts),
        cmocka_unit_test(test_ini),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
