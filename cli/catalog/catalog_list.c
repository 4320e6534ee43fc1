/* A catalogue as models go by: details and embedded pictures are written as soon as they fill a
 * block, the columns at the end. */
#include "catalog/catalog.h"

#include "catalog/common.h"
#include "catalog/text.h"
#include "support/files.h"

#include <stdio.h>
#include <string.h>

#define TITLE_ROOTS 3

/* ── Embedded pictures ── */

static void begin_embedded(catalog_list *list) {
    list->text.len = 0;
    list->embedded = 0;
    list->sink = sft_sink_memory(&list->text);
    sfti_json_write(&list->w, &list->sink, 0, list->err);
    sfti_json_open(&list->w, '[');
}

static sft_code end_embedded(catalog_list *list) {
    char id[32];
    sfti_json_close(&list->w, ']');
    sft_code code = sfti_json_done(&list->w);
    if (code) return code;
    snprintf(id, sizeof id, "embed-%zu", list->blocks++);
    sfti_json_writer *w = html_block_begin(&list->run->page, id);
    sfti_json_raw(w, (sft_span){ list->text.data, list->text.len });
    html_block_end(&list->run->page);
    begin_embedded(list);
    return list->run->page.code;
}

static sft_code put_embedded(void *ctx, sft_span url, sft_error *err) {
    catalog_list *list = ctx;
    (void)err;
    sfti_json_span(&list->w, url);
    if (list->w.code) return list->w.code;
    return ++list->embedded == CATALOG_EMBEDDED ? end_embedded(list) : SFT_OK;
}

/* ── The page ── */

/* What is behind the first "…" is not taken. */
static void add_title(catalog_list *list, sft_span text) {
    size_t used = strlen(list->title), most = sizeof list->title - 1 - used;
    if (most < 4 || !text.len) return;
    text = text_cut(text, most, list->title + used);
    memmove(list->title + used, text.data, text.len);
    list->title[used + text.len] = 0;
}

/* --title, or the names of the folders. */
static void choose_title(catalog_list *list) {
    const catalog_places *places = &list->run->places;
    if (list->run->title) add_title(list, sft_span_cstr(list->run->title));
    for (size_t i = 0; !list->run->title && i < places->labels && i < TITLE_ROOTS; i++) {
        if (i) add_title(list, sft_span_cstr(", "));
        add_title(list, places_label(places, i));
    }
    if (!list->run->title && places->labels > TITLE_ROOTS)
        add_title(list, sft_span_cstr(", \xE2\x80\xA6"));
    if (!*list->title) add_title(list, sft_span_cstr("Models"));
}

sft_code catalog_list_begin(catalog_list *list, catalog_run *run, sft_error *err) {
    memset(list, 0, sizeof *list);
    list->run = run;
    list->err = err;
    list->text.alloc = run->c->alloc;
    begin_embedded(list);
    choose_title(list);
    run->pictures.put = put_embedded;
    run->pictures.ctx = list;
    rows_begin(&list->rows, run->c, &run->places);
    html_begin(&run->page, HTML_CATALOG, run->sink, list->title, &run->c->alloc, err);
    more_begin(&list->more, &run->page, &run->c->alloc, err);
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
        code = more_add(&list->more, model, path, pictures, count, rows_last_bytes(&list->rows));
    sfti_arena_free(&arena);
    return code;
}

sft_code catalog_list_end(catalog_list *list, sft_error *err) {
    html_page *page = &list->run->page;
    sft_code code = more_end(&list->more);
    if (!code && list->embedded) code = end_embedded(list);
    if (!code) code = rows_write(&list->rows, page, list->title, MORE_MODELS, err);
    return code ? code : html_end(page);
}

void catalog_list_free(catalog_list *list) {
    rows_free(&list->rows);
    more_free(&list->more);
    sft_buffer_free(&list->text);
}
