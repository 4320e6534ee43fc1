/* The headers that sign requests, for tests/remote/sign_cases.py. Each line of standard input is a
 * request: key, secret, session, region, service, URL and seconds since 1970, with tabs between
 * them; an empty session is none. Each line of output: x-amz-date, a tab, authorization. */
#define _GNU_SOURCE
#include "remote/stores/sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY, SECRET, SESSION, REGION, SERVICE, URL, TIME, FIELDS };

static bool split(char *line, char *fields[FIELDS]) {
    line[strcspn(line, "\n")] = '\0';
    for (int i = 0; i < FIELDS; i++) fields[i] = strsep(&line, "\t");
    return fields[FIELDS - 1] && !line;
}

static const char *header(const sfti_headers *headers, const char *name) {
    for (size_t i = 0; i < headers->count; i++)
        if (sft_span_equal(headers->at[i].key, sft_span_cstr(name)))
            return headers->at[i].value.data;
    return "-";
}

static int sign_line(char *line) {
    char *fields[FIELDS];
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_headers headers = { .arena = &arena };
    sft_error err;
    if (!split(line, fields)) return 2;
    sfti_sign_request request = {
        { fields[KEY], fields[SECRET], *fields[SESSION] ? fields[SESSION] : NULL },
        fields[REGION], fields[SERVICE], "GET", fields[URL], strtoull(fields[TIME], NULL, 10)
    };
    sft_code code = sfti_sign(&request, &headers, &err);
    if (code) fprintf(stderr, "%s\n", err.message);
    else printf("%s\t%s\n", header(&headers, "x-amz-date"), header(&headers, "authorization"));
    sfti_arena_free(&arena);
    return code ? 1 : 0;
}

int main(void) {
    char *line = NULL;
    size_t cap = 0;
    int status = 0;
    while (status == 0 && getline(&line, &cap, stdin) > 0) status = sign_line(line);
    free(line);
    return status;
}
