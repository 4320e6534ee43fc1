/* The pages of the command catalog: page/types.d.ts describes their data. */
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "catalog/html.h"
#include "catalog/pictures.h"

typedef struct catalog_run {
    cli *c;
    const char *title; /* --title, or NULL */
    sft_sink sink;     /* of the page; the command finishes or abandons it */
    html_page page;    /* begun by what writes it */
    catalog_pictures pictures;
} catalog_run;

/* A page about one model (--model; with --deep its statistics), to run->sink, from html_begin to
 * html_end (model_page.c). err says why there is none, or what went wrong. */
sft_code catalog_write_model(catalog_run *run, const char *path, sft_error *err);

#endif
