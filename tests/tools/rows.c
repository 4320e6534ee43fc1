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
    "special", "denoiser", "vae", "image", "encoder", "other", "language", "target", "family",
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

/* Its clauses in one line. */
static void tell(const model *m, sfti_table_id id, const sfti_record_row *row) {
    const char *claim = sfti_row_record(sfti_records_built_in(), row)->id;
    sft_span text = sfti_row_text(row), line;
    bool first = true;
    if (!claim) return;
    printf("%s\t%s\t%s\t%d\t", m ? m->path : "", table_names[id], claim, row->trust);
    while (text.len > 0) {
        const char *end = sfti_row_line_end(text.data, text.len);
        line = sfti_trim((sft_span){ text.data, end ? (size_t)(end - text.data) : text.len });
        text = end ? sfti_from(text, (size_t)(end - text.data) + 1) : sfti_from(text, text.len);
        if (line.len == 0) continue;
        if (!first) printf(*line.data == '|' ? " " : " ; ");
        printf("%.*s", (int)line.len, line.data);
        first = false;
    }
    printf("\n");
}

static void try_table(const model *m, sfti_table_id id) {
    const sfti_records *records = sfti_records_built_in();
    const sfti_record_row *prefixes = sfti_rows(records, SFTI_PREFIXES, id);
    sft_span rest = sfti_row_text(prefixes), prefix;
    sfti_view views[MOST_PREFIXES];
    size_t count = 0;
    while (m && count < MOST_PREFIXES && sfti_next_said(&rest, &prefix)) {
        views[count] = sfti_view_after(m->view, "", prefix);
        if (sfti_view_any(&views[count], "")) count++;
    }
    const sfti_record_row *row;
    for (size_t n = 0; (row = sfti_table_row(records, id, n)); n++) {
        bool holds = !m;
        for (size_t i = 0; i < count && !holds; i++)
            holds = sfti_clauses_hold(&views[i], sfti_row_text(row), NULL, NULL);
        if (holds) tell(m, id, row);
    }
}

/* Rows about layers. */
static void try_forms(const model *m, sfti_table_id id) {
    const sfti_records *records = sfti_records_built_in();
    const unsigned of = m && m->adapter ? SFTI_OF_ADAPTERS : SFTI_OF_MODELS;
    const sfti_record_row *row;
    for (size_t n = 0; (row = sfti_table_row(records, id, n)); n++)
        if (!m || ((id == SFTI_ADAPTERS || row->sub & of)
                   && sfti_forms_hold(m->forms, sfti_row_text(row))))
            tell(m, id, row);
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
    info.records = sfti_records_built_in();
    if (!sfti_view_open(&info, &view)) stop(path, "out of memory");
    sfti_quant quant = sfti_quantisation(&view);
    const sfti_adapter_scan *scan = sfti_adapter_scan_of(&view, &quant, false);
    model m = { path, &view, scan ? scan->forms : sfti_forms_of(&view, NULL), scan != NULL };
    if (!m.forms) stop(path, "out of memory");
    try_table(&m, SFTI_SPECIAL);
    for (int id = SFTI_SPECIAL + 1; !scan && id < SFTI_TENSOR_TABLES; id++)
        try_table(&m, (sfti_table_id)id);
    if (scan) try_forms(&m, SFTI_ADAPTERS);
    try_forms(&m, SFTI_STRUCTURES);
    sfti_arena_free(&info.arena);
    sft_set_close(set);
}

static void list_rows(void) {
    for (int id = 0; id < SFTI_TENSOR_TABLES; id++) try_table(NULL, (sfti_table_id)id);
    try_forms(NULL, SFTI_ADAPTERS);
    try_forms(NULL, SFTI_STRUCTURES);
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
