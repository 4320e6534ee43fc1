/* What a card says of a model that could not be read. */
#include "catalog/rows.h"

#include <errno.h>
#include <stddef.h>

/* The first row that holds the code decides. */
static const struct fault_row {
    sft_code first, last;
    catalog_fault fault;
} fault_table[] = {
    { SFT_FOUND_GIT_LFS, SFT_FOUND_GIT_LFS, { "file", "LFS pointer" } },
    { SFT_FOUND_XET, SFT_FOUND_XET, { "file", "Xet pointer" } },
    { SFT_FOUND_HTML, SFT_FOUND_HTML, { "page", "web page" } },
    { SFT_FOUND_ZIP, SFT_FOUND_INDEX, { "file", "other format" } },
    { SFT_FOREIGN_KIND, SFT_FOREIGN_KIND, { "file", "other format" } },
    { SFT_HEADER_TOO_SMALL, SFT_HEADER_TOO_SMALL, { "cut", "cut short" } },
    { SFT_HEADER_TRUNCATED, SFT_HEADER_TRUNCATED, { "cut", "cut short" } },
    { SFT_DATA_TRUNCATED, SFT_DATA_TRUNCATED, { "cut", "cut short" } },
    { SFT_FOREIGN_TRUNCATED, SFT_FOREIGN_TRUNCATED, { "cut", "cut short" } },
    { SFT_HEADER_TOO_LARGE, SFT_HEADER_TOO_LARGE, { "warn", "not a model" } },
    { SFT_INDEX_SHARD_MISSING, SFT_INDEX_SHARD_MISSING, { "help", "incomplete" } },
    { SFT_INDEX_TYPE, SFT_INDEX_TENSOR_DUPLICATE, { "warn", "bad index" } },
    { SFT_MANIFEST_MISSING, SFT_DATASET_RECEIPT, { "warn", "bad dataset" } },
    { SFT_HEADER_UTF8, SFT_DATA_TRAILING, { "warn", "damaged" } },
    { SFT_FOREIGN_OBJECT, SFT_FOREIGN_OPAQUE, { "file", "unsupported" } },
    { SFT_FOREIGN_SYNTAX, SFT_FOREIGN_OPCODE, { "warn", "damaged" } },
    { SFT_ADDRESS_SPACE, SFT_FOREIGN_NESTING, { "file", "over a limit" } },
    { SFT_IO_NOT_FILE, SFT_IO_NOT_FILE, { "file", "not a file" } },
    { SFT_REMOTE_DENIED, SFT_REMOTE_DENIED, { "hidden", "no access" } },
    { SFT_REMOTE_OFFLINE, SFT_REMOTE_OFFLINE, { "help", "not fetched" } },
    { SFT_REMOTE_NETWORK, SFT_REMOTE_TRANSPORT, { "page", "server error" } },
    { SFT_EDIT_INTERRUPTED, SFT_EDIT_BUSY, { "warn", "half edited" } },
};

const catalog_fault *catalog_fault_of(const sft_error *err, uint64_t bytes) {
    static const catalog_fault empty = { "file", "empty" }, cut = { "cut", "cut short" },
                               denied = { "hidden", "no access" }, gone = { "help", "gone" },
                               unfilled = { "cut", "never filled" },
                               damaged = { "warn", "damaged" },
                               unknown = { "warn", "unreadable" };
    if (bytes == 0 && err->code < 300) return &empty;
    if (err->needed) return &cut;
    if (err->os_errno == EACCES || err->os_errno == EPERM) return &denied;
    if (err->os_errno == ENOENT && err->code != SFT_INDEX_SHARD_MISSING) return &gone;
    if (err->code == SFT_HEADER_TRUNCATED && bytes != SFT_SIZE_UNKNOWN && err->offset < bytes)
        return &damaged; /* its length is wrong */
    if (err->code == SFT_JSON_SYNTAX && err->hint == SFT_HINT_DOWNLOAD_AGAIN) return &unfilled;
    for (size_t i = 0; i < sizeof fault_table / sizeof *fault_table; i++)
        if (err->code >= fault_table[i].first && err->code <= fault_table[i].last)
            return &fault_table[i].fault;
    return &unknown;
}
