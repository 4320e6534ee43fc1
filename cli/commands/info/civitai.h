/* Asking a CivitAI server what files are: by SHA-256, by AutoV3, then what their models say
 * of themselves. */
#ifndef CLI_INFO_CIVITAI_H
#define CLI_INFO_CIVITAI_H

#include "safetensors_hash.h"
#include "safetensors_remote.h"
#include "support/cli.h"

#define CLI_CIVITAI_URL "https://civitai.com"
#define CLI_CIVITAI_HASHES 100 /* SHA-256 in one request */
#define CLI_CIVITAI_MODELS 50  /* models in one */
#define CLI_CIVITAI_URL_SIZE ((size_t)4096)

typedef enum cli_ask_state {
    CLI_ASK_OPEN = 0, /* not asked, or not answered */
    CLI_ASK_UNKNOWN,  /* the server does not know the last hash it was asked for */
    CLI_ASK_KNOWN
} cli_ask_state;

/* One file that is looked up. */
typedef struct cli_ask {
    sft_span sha256, autov3; /* lower-case hex; empty: not known */
    cli_ask_state state;
    sft_span version;  /* the server's answer, JSON; lives in the server's arena */
    sft_span answer;   /* the same with what the model says of itself */
    uint64_t model_id, version_id; /* 0: not given */
    /* What cli_civitai_models and cli_civitai_confirm fill: */
    sft_span model;       /* what the server says of the model, JSON, likewise; or empty */
    bool is_answered;     /* the server was asked for the model, and answered */
    bool is_model_gone, is_version_gone; /* it does not know them */
} cli_ask;

typedef struct cli_civitai {
    cli *c;
    const char *url; /* without a slash at its end */
    sft_transport transport; /* without a table if nothing is to be sent */
    sft_remote *remote;
    uint64_t total_ms; /* for one answer */
    sfti_arena arena;  /* of answers: cli_civitai_forget */
    uint64_t kept;     /* bytes in it */
    unsigned failures; /* one after another */
    bool is_over;      /* no more is asked */
} cli_civitai;

/* Reads --civitai-url, --timeout and the rest, and loads libcurl unless only_count.
 * False, after a complaint, when that cannot be; close it all the same. */
bool cli_civitai_open(cli_civitai *site, cli *c, bool only_count);
void cli_civitai_close(cli_civitai *site);
/* Free the answers so far. */
void cli_civitai_forget(cli_civitai *site);

/* All of those that have a SHA-256 and are open, CLI_CIVITAI_HASHES in a request. Failures
 * are complained of; what they leave stays open. */
void cli_civitai_by_sha256(cli_civitai *site, cli_ask *asks, size_t count);
/* One, by any hash. */
void cli_civitai_by_hash(cli_civitai *site, cli_ask *ask, sft_span hash);
/* Ask for the models of those that are known, CLI_CIVITAI_MODELS in a request. */
void cli_civitai_models(cli_civitai *site, cli_ask *asks, size_t count);
/* Ask one by one for models that the server left out, and for versions that their models lack:
 * what it does not know (404) is gone. */
void cli_civitai_confirm(cli_civitai *site, cli_ask *asks, size_t count);
/* The entry of a version in what the server says of a model; false if there is none. */
bool cli_civitai_version_of(sft_span model, uint64_t version_id, sft_span *version);
/* cli_civitai_models, and give those that are known their answers. */
void cli_civitai_complete(cli_civitai *site, cli_ask *asks, size_t count);
/* Bytes at a URL of the site; empty, after a complaint, when they cannot be had. */
bool cli_civitai_picture(cli_civitai *site, const char *url, sft_buffer *out);

#endif
