/* Prints what names of the Hugging Face Hub mean, for comparison with huggingface_hub.
 *
 *   hub_names [ENDPOINT] <texts
 *
 * Texts end in a NUL. For each, a line of fields that end in tabs: type, id, revision and path, all
 * but letters and digits as %XX, and "-" for no revision; or "refused" and why. Texts that are no
 * hf:// are taken for web pages: "other" if they are none of the Hub.
 */
#include "remote/hub/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_field(const char *text) {
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        unsigned char lower = c | 0x20;
        if ((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9')) (void)putchar(c);
        else (void)printf("%%%02X", c);
    }
    (void)putchar('\t');
}

static void print_name(const char *endpoint, const char *text) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sft_error err = SFT_ERROR_INIT;
    sfti_hub_name name;
    sft_code code = SFT_OK;
    if (strncmp(text, "hf://", 5) != 0) {
        code = sfti_hub_from_web(endpoint, text, &arena, &text, &err);
        if (!code && !text) (void)printf("other\t");
    }
    if (!code && text) code = sfti_hub_read_name(text, &arena, &name, &err);
    if (code) {
        (void)printf("refused\t%s", err.message);
    } else if (text) {
        print_field(sfti_hub_type_text(name.type));
        print_field(name.id);
        if (name.revision) print_field(name.revision);
        else (void)printf("-\t");
        print_field(name.path);
    }
    (void)putchar('\n');
    sfti_arena_free(&arena);
}

int main(int argc, char **argv) {
    size_t cap = (size_t)1 << 22, len = 0;
    char *texts = malloc(cap + 1);
    if (!texts) return 2;
    len = fread(texts, 1, cap, stdin);
    texts[len] = '\0';
    for (size_t at = 0; at < len; at += strlen(texts + at) + 1)
        print_name(argc > 1 ? argv[1] : NULL, texts + at);
    free(texts);
    return 0;
}
