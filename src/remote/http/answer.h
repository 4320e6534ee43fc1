/* What the headers of an answer say. */
#ifndef SFTI_REMOTE_ANSWER_H
#define SFTI_REMOTE_ANSWER_H

#include "safetensors.h"

#define SFTI_FILE_NAME_SIZE 256

/* The headers of one answer; texts are cut to fit, empty if they are not there, and hold no
 * controls. */
typedef struct sfti_answer {
    int status;
    bool has_range;        /* Content-Range: bytes begin-(end-1)/total */
    bool bad_range;        /* there is one without sense, or two of it or of
                              Content-Length differ */
    uint64_t begin, end;   /* end exclusive */
    uint64_t total;        /* also of "bytes * / total"; SFT_SIZE_UNKNOWN */
    uint64_t length;       /* Content-Length, or SFT_SIZE_UNKNOWN */
    bool multipart;        /* multipart/byteranges */
    char etag[130];        /* as sent, quotes and W/ included, or "#" and a digest of it */
    char modified[40];     /* Last-Modified, as sent, or such a digest */
    char encoding[32];     /* Content-Encoding, or X-Goog-Stored-Content-Encoding; not identity */
    char type[64];         /* Content-Type without parameters, in lower case */
    char *location;        /* freed by sfti_answer_free */
    int64_t wait_s;        /* asked for by Retry-After (seconds, or a date against Date), RateLimit
                              (r=0: t + 1); -1: none */
    char date[64];         /* Date, as sent */
    char commit[65];       /* X-Repo-Commit */
    char linked_etag[130]; /* X-Linked-Etag without quotes */
    uint64_t linked_size;  /* X-Linked-Size, or SFT_SIZE_UNKNOWN */
    char error_code[64];   /* X-Error-Code */
    char error_message[200]; /* X-Error-Message */
    char region[40];       /* x-amz-bucket-region */
    char next[1024];       /* Link: <...>; rel="next" */
    char file_name[SFTI_FILE_NAME_SIZE]; /* Content-Disposition: filename or filename*; its last
                                            part only */
    char line[200];        /* of a failure: the first line of text in the body; of XML, Code and
                              Message; set by who takes the body */
    sft_allocator alloc;
} sfti_answer;

void sfti_answer_begin(sfti_answer *answer, const sft_allocator *alloc);
/* Take status and header lines; what was known before is forgotten. False: no memory. */
bool sfti_answer_read(sfti_answer *answer, int status, const sft_pair *headers, size_t count);
/* Take what there is of a failure's body (at most 4 KiB are looked at). */
void sfti_answer_body(sfti_answer *answer, sft_span body);
void sfti_answer_free(sfti_answer *answer);

/* ── Headers that are lists with parameters: answer_lists.c ── */

/* Seconds after which a RateLimit header says to come back, or -1: there are requests left, or it
 * does not tell. Of `"resolvers";r=0;t=55` (t + 1) and of `limit=10, remaining=0, reset=55`. */
int64_t sfti_rate_limit_wait(sft_span value);
/* The URL of a Link header's rel="next"; data NULL: there is none. */
sft_span sfti_link_next(sft_span value);
/* The last part of the file name that a Content-Disposition tells. False: none, or one that names
 * no file. */
bool sfti_disposition_name(sft_span value, char out[SFTI_FILE_NAME_SIZE]);

/* Whether two answers are of one state of a file: strong ETags are equal, or if one has none (or a
 * weak one) Last-Modified and total are. */
bool sfti_answer_same(const sfti_answer *a, const sfti_answer *b);

/* Date since 1970; 0: none. */
int64_t sfti_answer_date(const sfti_answer *answer);

/* "Sat, 21 Nov 2026 12:00:00 GMT" since 1970 (all three forms of RFC 9110); false: no date. */
bool sfti_http_date(sft_span text, int64_t *out);

#endif
