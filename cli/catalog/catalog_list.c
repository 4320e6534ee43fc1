/* A catalogue as models go by: embedded pictures are written at once, details as soon as they fill
 * a block, the columns at the end. */
#include "catalog/catalog.h"

#include "catalog/text.h"

#include <string.h>

#define TITLE_ROOTS 3

/* ── The page ── */

/* What is behind the first "…" is not taken. */
static void add_title(catalog_list *list, sft_span text) {
    size_t used = strlen(list->title), most = sizeof list->title - 1 - used;
    if (most < 4 || !text.len) return;
    text = text_cut(text, most, list->title + used);
    memmove(list->title + used, text.data, text.len);
    list->title[used + text.len] = 0;
}

sft_code catalog_list_begin(catalog_list *list, catalog_run *run, sft_error *err) {
    memset(list, 0, sizeof *list);
    list->run = run;
    /* --title, or the names of the folders. */
    const catalog_places *places = &run->places;
    if (run->title) add_title(list, sft_span_cstr(run->title));
    for (size_t i = 0; !run->title && i < places->labels && i < TITLE_ROOTS; i++) {
        if (i) add_title(list, sft_span_cstr(", "));
        add_title(list, places_label(places, i));
    }
    if (!run->title && places->labels > TITLE_ROOTS)
        add_title(list, sft_span_cstr(", \xE2\x80\xA6"));
    if (!*list->title) add_title(list, sft_span_cstr("Models"));
    run->pictures.page = &run->page;
    rows_begin(&list->rows, run->c, &run->places);
    html_begin(&run->page, HTML_CATALOG, run->sink, list->title, &run->c->alloc, err);
    details_begin(&list->details, &run->page, &run->c->alloc, err);
    return run->page.code;
}

sft_code catalog_list_add(catalog_list *list, const cli_model *model, sft_error *err) {
    sfti_arena arena = { .alloc = list->run->c->alloc };
    catalog_picture *pictures = NULL;
    size_t count = 0;
    sft_span path;
    bool broken = !model->tree || model->err.code;
    sft_code code = catalog_path(&list->run->places, model->path, &arena, &path, err);
    if (!code && !broken)
        code = pictures_of(&list->run->pictures, model, &arena, &pictures, &count, err);
    if (!code) code = rows_add(&list->rows, model, pictures, count, err);
    if (!code)
        code = details_add(&list->details, model, path, pictures, count,
                           rows_last_bytes(&list->rows));
    sfti_arena_free(&arena);
    return code;
}

sft_code catalog_list_end(catalog_list *list, sft_error *err) {
    html_page *page = &list->run->page;
    sft_code code = details_end(&list->details);
    if (!code) code = rows_write(&list->rows, page, list->title, DETAILS_MODELS, err);
    return code ? code : html_end(page);
}

void catalog_list_free(catalog_list *list) {
    rows_free(&list->rows);
    details_free(&list->details);
}
