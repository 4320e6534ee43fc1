/* Scripts and styles of pages, joined from page/ by cmake/page.cmake. */
#ifndef CATALOG_PAGE_H
#define CATALOG_PAGE_H

#include <stddef.h>

typedef struct page_text {
    const unsigned char *bytes;
    size_t len;
} page_text;

extern const page_text page_shared, page_catalog, page_model, page_style, page_style_catalog,
    page_style_model;

#endif
