/* build/tests/regex: reads lines PATTERN <tab> TEXT and writes what the pattern finds in the text:
 * begin and end of the match and of its groups, "none", or "bad". For tests/compat/regex.py. */
#include "base/mem.h"
#include "base/regex.h"

#include <stdio.h>
#include <string.h>

static void show(const sfti_regex_group *groups) {
    for (size_t i = 0; i < SFTI_REGEX_GROUPS; i++) {
        if (groups[i].begin == SIZE_MAX) printf("-1 -1 ");
        else printf("%zu %zu ", groups[i].begin, groups[i].end);
    }
    printf("\n");
}

int main(void) {
    static char line[1 << 16];
    sft_allocator alloc = sfti_allocator(NULL);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        char *tab = strchr(line, '\t');
        if (!tab) return 1;
        sfti_regex_group groups[SFTI_REGEX_GROUPS];
        sfti_regex *regex;
        sft_span pattern = { line, (size_t)(tab - line) };
        if (sfti_regex_new(pattern, &alloc, &regex, NULL)) printf("bad\n");
        else if (sfti_regex_find(regex, sft_span_cstr(tab + 1), 0, groups)) show(groups);
        else printf("none\n");
        sfti_regex_free(regex);
    }
    return 0;
}
