/* Numbers of the zip format (APPNOTE), for reading and writing, and where a directory is. */
#ifndef SFTI_ZIP_FORMAT_H
#define SFTI_ZIP_FORMAT_H

#include "formats/parts/state.h"

#define ZIP_LOCAL 0x04034b50u
#define ZIP_CENTRAL 0x02014b50u
#define ZIP_DESCRIPTOR 0x08074b50u
#define ZIP_END 0x06054b50u
#define ZIP_END64 0x06064b50u
#define ZIP_LOCATOR64 0x07064b50u

#define ZIP_LOCAL_LEN 30
#define ZIP_CENTRAL_LEN 46
#define ZIP_FOLDER 0x10 /* of an entry's attributes, as DOS has them */
#define ZIP_END_LEN 22
#define ZIP_END64_LEN 56
#define ZIP_LOCATOR64_LEN 20
#define ZIP_TAIL (ZIP_END_LEN + 65535u) /* bytes that the end and its comment may take */

#define ZIP_ENCRYPTED 0x2041u /* bits 0, 6 and 13 */
#define ZIP_DESCRIBED 0x0008u /* checksum and sizes follow the data */
#define ZIP_UTF8 0x0800u
#define ZIP_FLAGS 0x080eu /* and bits 1 and 2: how hard deflate tried */

#define ZIP_WIDE 0xffffffffu /* the true value is in the ZIP64 field */

typedef struct sfti_zip_directory {
    uint64_t at, size;
    uint64_t count; /* entries, folders included */
} sfti_zip_directory;

/* Find the directory by the record at the end. tail has room for ZIP_TAIL bytes. */
sft_code sfti_zip_find_directory(sfti_import *im, const sft_source *source, uint8_t *tail,
                                 sfti_zip_directory *out);

#endif
