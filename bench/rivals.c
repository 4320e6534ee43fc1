/* The JSON parsers of Debian, building their tree of the same header text and freeing it.
 * Compiled once for each (their names clash), with one of the BENCH_ macros: rival FILE.
 * None of them looks at what a header means. */
#include "worker.h"

typedef struct header_text {
    char *at;
    size_t len;
} header_text;

#if defined(BENCH_JANSSON)
#include <jansson.h>

static uint64_t run_rival(void *ctx) {
    header_text *h = ctx;
    json_error_t error;
    json_t *root = json_loadb(h->at, h->len, 0, &error);
    if (!root) bench_die("jansson", error.text);
    uint64_t count = json_object_size(root);
    json_decref(root);
    return count;
}
#elif defined(BENCH_CJSON)
#include <cjson/cJSON.h>

static uint64_t run_rival(void *ctx) {
    header_text *h = ctx;
    cJSON *root = cJSON_ParseWithLength(h->at, h->len);
    if (!root) bench_die("cJSON", "refused");
    uint64_t count = (uint64_t)cJSON_GetArraySize(root);
    cJSON_Delete(root);
    return count;
}
#elif defined(BENCH_JSON_C)
#include <json-c/json.h>

static uint64_t run_rival(void *ctx) {
    header_text *h = ctx;
    struct json_tokener *parser = json_tokener_new_ex(128);
    struct json_object *root = json_tokener_parse_ex(parser, h->at, (int)h->len);
    if (!root) bench_die("json-c", "refused");
    uint64_t count = (uint64_t)json_object_object_length(root);
    json_object_put(root);
    json_tokener_free(parser);
    return count;
}
#endif

int main(int argc, char **argv) {
    if (argc != 2) bench_die("usage", "rival FILE");
    header_text h;
    h.at = bench_header(argv[1], &h.len);
    bench_serve(run_rival, &h);
    free(h.at);
    return 0;
}
