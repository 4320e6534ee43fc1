/* The pages of the command catalog: page/types.d.ts describes their data. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "catalog/details.h"
#include "catalog/html.h"
#include "catalog/pictures.h"
#include "catalog/rows.h"
#include "support/titles.h"

/* What both kinds of page have. */
typedef struct catalog_run {
    cli *c;
    const char *title; /* --title, or NULL */
    sft_sink sink;     /* of the page; the command finishes or abandons it */
    html_page page;    /* begun by what writes it */
    catalog_places places;
    catalog_pictures pictures;
} catalog_run;

/* ── Many models (catalog_list.c) ── */

typedef struct catalog_list {
    catalog_run *run;
    char title[CLI_TITLE_SIZE];
    catalog_rows rows;
    catalog_details details;
} catalog_list;

/* Begin the page. err must outlive the list; free it with catalog_list_free, also after a
 * failure. */
sft_code catalog_list_begin(catalog_list *list, catalog_run *run, sft_error *err);
sft_code catalog_list_add(catalog_list *list, const cli_model *model, sft_error *err);
/* Write what was collected, and the end of the page. */
sft_code catalog_list_end(catalog_list *list, sft_error *err);
void catalog_list_free(catalog_list *list);

/* ── One model (model_page.c) ── */

/* A page about one model (--model; with --deep its statistics), to run->sink, from html_begin to
 * html_end. err says why there is none, or what went wrong. */
sft_code catalog_write_model(catalog_run *run, const char *path, sft_error *err);

#endif
