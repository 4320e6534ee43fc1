/* Which rows of signatures hold for models, each row by itself: for tests/zoo.
 * A line of standard input is a path; for each row that holds, a line of standard output: the
 * path, the table, what the row claims, its trust, its clauses. With --list every row is told,
 * once, and no path is read. */
#include "label/tensors/adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PREFIXES 64

static const char *const table_names[SFTI_TABLES] = {
    "special", "denoiser", "vae", "image", "encoder", "other", "language",
};

/* A model; NULL stands for any. */
typedef struct model {
    const char *path;
    const sfti_view *view;
    const sfti_forms *forms;
    bool adapter;
} model;

static void stop(const char *path, const char *why) {
    fprintf(stderr, "rows: %s: %s\n", path, why);
    exit(2);
}

static void tell(const model *m, const char *table, const char *claim, int trust,
                 const char *clauses) {
    printf("%s\t%s\t%s\t%d\t%s\n", m ? m->path : "", table, claim, trust, clauses);
}

static void try_table(const model *m, sfti_table_id id) {
    const sfti_table *table = &sfti_tables[id];
    sfti_view views[MOST_PREFIXES];
    size_t count = 0;
    for (size_t i = 0; m && i < table->prefix_count && count < MOST_PREFIXES; i++) {
        views[count] = sfti_view_after(m->view, "", table->prefixes[i]);
        if (sfti_view_any(&views[count], "")) count++;
    }
    for (const sfti_signature *row = table->rows; row->kind; row++) {
        bool holds = !m;
        for (size_t i = 0; i < count && !holds; i++)
            holds = sfti_clauses_hold(&views[i], row->clauses, NULL, NULL);
        if (holds && row->architecture)
            tell(m, table_names[id], row->architecture, row->trust, row->clauses);
    }
}

static void try_targets(const model *m) {
    for (const sfti_target *row = sfti_target_rows; row->architecture; row++)
        if (!m || sfti_forms_hold(m->forms, row->clauses))
            tell(m, "target", row->architecture, row->trust, row->clauses);
}

static void try_families(const model *m) {
    for (const sfti_structure *row = sfti_structure_rows; row->family; row++)
        if (!m || sfti_structure_holds(row, m->forms, m->adapter))
            tell(m, "family", row->family, row->trust, row->clauses);
}

/* What the tables before it leave to each: an adapter is none of what they tell of. */
static void try_rows(const char *path) {
    sft_info info = { 0 };
    sfti_view view;
    sft_error err = SFT_ERROR_INIT;
    sft_set *set;
    if (sft_set_open(path, NULL, &set, &err)) stop(path, err.message);
    info.arena.alloc = sfti_allocator(NULL);
    info.set = set;
    if (!sfti_view_open(&info, &view)) stop(path, "out of memory");
    sfti_quant quant = sfti_quantisation(&view);
    const sfti_adapter_scan *scan = sfti_adapter_scan_of(&view, &quant, false);
    model m = { path, &view, scan ? scan->forms : sfti_forms_of(&view), scan != NULL };
    if (!m.forms) stop(path, "out of memory");
    try_table(&m, SFTI_SPECIAL);
    for (int id = SFTI_SPECIAL + 1; !scan && id < SFTI_TABLES; id++)
        try_table(&m, (sfti_table_id)id);
    if (scan) try_targets(&m);
    try_families(&m);
    sfti_arena_free(&info.arena);
    sft_set_close(set);
}

static void list_rows(void) {
    for (int id = 0; id < SFTI_TABLES; id++) try_table(NULL, (sfti_table_id)id);
    try_targets(NULL);
    try_families(NULL);
}

int main(int argc, char **argv) {
    char path[4096];
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_rows();
        return 0;
    }
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        try_rows(path);
    }
    return ferror(stdin) ? 2 : 0;
}
