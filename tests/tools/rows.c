/* Which rows of signatures hold for models, each row by itself: for tests/zoo.
 * A line of standard input is a path; for each row that holds, a line of standard output: the
 * path, the table, what the row claims, its trust, its clauses. */
#include "info/tensors/adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const table_names[SFTI_TABLES] = {
    "special", "denoiser", "vae", "image", "encoder", "other", "language",
};

static void stop(const char *path, const char *why) {
    fprintf(stderr, "rows: %s: %s\n", path, why);
    exit(2);
}

static bool holds_somewhere(const sfti_view *views, size_t count, const char *clauses) {
    for (size_t i = 0; i < count; i++)
        if (views[i].count > 0 && sfti_clauses_hold(&views[i], clauses, NULL, NULL)) return true;
    return false;
}

static void tell(const char *path, const char *table, const char *claim, int trust,
                 const char *clauses) {
    printf("%s\t%s\t%s\t%d\t%s\n", path, table, claim, trust, clauses);
}

static void try_table(const char *path, const sfti_view *view, sfti_table_id id) {
    const sfti_table *table = &sfti_tables[id];
    sfti_view views[32];
    if (table->prefix_count > SFTI_COUNT(views)) stop(path, "more prefixes than expected");
    for (size_t i = 0; i < table->prefix_count; i++) {
        views[i] = sfti_view_after(view, "", table->prefixes[i]);
        if (!sfti_view_any(&views[i], "")) views[i].count = 0;
    }
    for (const sfti_signature *row = table->rows; row->kind; row++)
        if (row->architecture && holds_somewhere(views, table->prefix_count, row->clauses))
            tell(path, table_names[id], row->architecture, row->trust, row->clauses);
}

static void try_targets(const char *path, const sfti_forms *forms) {
    for (const sfti_target *row = sfti_target_rows; row->architecture; row++)
        if (sfti_forms_hold(forms, row->clauses))
            tell(path, "target", row->architecture, row->trust, row->clauses);
}

static void try_families(const char *path, const sfti_forms *forms) {
    for (const sfti_structure *row = sfti_structure_rows; row->family; row++)
        if (sfti_forms_hold(forms, row->clauses))
            tell(path, "family", row->family, 100, row->clauses);
}

static void try_rows(const char *path) {
    sft_info info = { 0 };
    sfti_view view;
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    if (sft_set_open(path, NULL, &set, &err)) stop(path, err.message);
    info.arena.alloc = sfti_allocator(NULL);
    info.set = set;
    if (!sfti_view_open(&info, &view)) stop(path, "out of memory");
    for (int id = 0; id < SFTI_TABLES; id++) try_table(path, &view, (sfti_table_id)id);
    sfti_quant quant = sfti_quantisation(&view);
    const sfti_adapter_scan *scan = sfti_adapter_scan_of(&view, &quant, false);
    if (scan) try_targets(path, scan->forms);
    const sfti_forms *forms = scan ? scan->forms : sfti_forms_of(&view);
    if (!forms || info.code) stop(path, "out of memory");
    try_families(path, forms);
    sfti_arena_free(&info.arena);
    sft_set_close(set);
}

int main(void) {
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        try_rows(path);
    }
    return ferror(stdin) ? 2 : 0;
}
