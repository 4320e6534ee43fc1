/* Reading XML, as far as answers of object stores need it: elements and their text. Attributes,
 * comments, processing instructions and prefixes of names are skipped; a document type is an error,
 * and so no entity but XML's own five and characters by number is known. No tree, no recursion. */
#ifndef SFTI_REMOTE_XML_H
#define SFTI_REMOTE_XML_H

#include "base/mem.h"
#include "safetensors.h"

typedef enum sfti_xml_type {
    SFTI_XML_ERROR = 0, /* see why and error_at; every later call says so again */
    SFTI_XML_END,       /* the one element is closed, and nothing follows */
    SFTI_XML_OPEN,      /* name */
    SFTI_XML_TEXT,      /* text: all up to the next tag; none between tags that have only blanks
                           between them */
    SFTI_XML_CLOSE      /* name */
} sfti_xml_type;

#define SFTI_XML_DEPTH 32

typedef struct sfti_xml {
    const char *begin, *at, *end;
    /* of the last event: */
    sfti_xml_type type;
    sft_span name;
    sft_span text;  /* as spelled */
    bool plain;     /* of CDATA: no entity in it */
    uint32_t depth; /* open elements, after this event */
    /* of a failure: */
    const char *why; /* what was expected: "a tag" */
    size_t error_at;
    /* private: */
    bool rooted; /* the one element has begun */
    bool empty;  /* the element that was opened last closes at once */
    sft_span open[SFTI_XML_DEPTH];
} sfti_xml;

void sfti_xml_begin(sfti_xml *xml, sft_span text);
sfti_xml_type sfti_xml_next(sfti_xml *xml);
/* After OPEN: the text of an element, decoded, to whose end it reads on; elements in it are left
 * out. Of the arena; data NULL: an error (see xml->type), or no memory. */
sft_span sfti_xml_element(sfti_xml *xml, sfti_arena *arena);
/* After OPEN: read on to the end of the element. Returns xml->type. */
sfti_xml_type sfti_xml_skip(sfti_xml *xml);

#endif
