/* Codes and hints of what only headers that are not stable do. They are values of sft_code and
 * sft_hint, with rows in the tables of sft_code_at and sft_hint_text, and their numbers never move;
 * which of them a function returns may change.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_CODES is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_CODES_H
#define SFT_SAFETENSORS_CODES_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_CODES 1

/* Hash caches: safetensors_hash.h. @since 0.2 */
#define SFT_HINT_CACHE_OTHER_FILE ((sft_hint)52)
#define SFT_HINT_CACHE_OWNER ((sft_hint)53)
#define SFT_HINT_CACHE_MODE ((sft_hint)54)
#define SFT_HINT_CACHE_KEPT ((sft_hint)55)

/* Datasets: safetensors_dataset.h. @since 0.2 */
#define SFT_MANIFEST_MISSING ((sft_code)190)
#define SFT_MANIFEST_TYPE ((sft_code)191)
#define SFT_DATASET_SHARD ((sft_code)192)
#define SFT_DATASET_DUPLICATE ((sft_code)193)
#define SFT_DATASET_RECEIPT ((sft_code)194)
#define SFT_OPTION_UNKNOWN ((sft_code)520)
#define SFT_OPTION_VALUE ((sft_code)521)
#define SFT_COLUMN_UNKNOWN ((sft_code)522)
#define SFT_COLUMN_TYPE ((sft_code)523)
#define SFT_ROW_VALUE ((sft_code)524)
#define SFT_ROW_SHAPE ((sft_code)525)
#define SFT_ROW_NULL ((sft_code)526)
#define SFT_ROW_KEY ((sft_code)527)
#define SFT_DATASET_BUSY ((sft_code)610)
#define SFT_DATASET_CHANGED ((sft_code)611)
#define SFT_DATASET_DISAGREES ((sft_code)612)
#define SFT_DATASET_UNGUARDED ((sft_code)613)
#define SFT_HINT_NO_MANIFEST ((sft_hint)56)
#define SFT_HINT_VERIFY_DATASET ((sft_hint)57)
#define SFT_HINT_LAST_WINS ((sft_hint)58)
#define SFT_HINT_DATASET_EXISTS ((sft_hint)59)
#define SFT_HINT_OVERWRITE_DATASET ((sft_hint)60)
#define SFT_HINT_DATASET_BEGIN ((sft_hint)61)
#define SFT_HINT_DATASET_LINKS ((sft_hint)62)
#define SFT_HINT_ADOPT ((sft_hint)63)
#define SFT_HINT_SINGLE_WRITER ((sft_hint)64)
#define SFT_HINT_BEGIN_AGAIN ((sft_hint)65)
#define SFT_HINT_VERSIONS ((sft_hint)94)

/* Other formats: safetensors_import.h. @since 0.2 */
#define SFT_FOREIGN_SYNTAX ((sft_code)220)
#define SFT_FOREIGN_TRUNCATED ((sft_code)221)
#define SFT_FOREIGN_AMBIGUOUS ((sft_code)222)
#define SFT_FOREIGN_CHECKSUM ((sft_code)223)
#define SFT_FOREIGN_SIZE ((sft_code)224)
#define SFT_FOREIGN_OPCODE ((sft_code)225)
#define SFT_FOREIGN_OBJECT ((sft_code)226)
#define SFT_FOREIGN_DTYPE ((sft_code)227)
#define SFT_FOREIGN_NAME ((sft_code)228)
#define SFT_FOREIGN_SHARED ((sft_code)229)
#define SFT_FOREIGN_PATH ((sft_code)230)
#define SFT_FOREIGN_KIND ((sft_code)231)
#define SFT_FOREIGN_BRANCH ((sft_code)232)
#define SFT_FOREIGN_OPAQUE ((sft_code)233)
#define SFT_FOREIGN_OUTPUT ((sft_code)306)
#define SFT_FOREIGN_TABLE ((sft_code)307)
#define SFT_FOREIGN_NESTING ((sft_code)308)
#define SFT_HINT_IMPORT_SKIP ((sft_hint)66)
#define SFT_HINT_IMPORT_SHARED ((sft_hint)67)
#define SFT_HINT_IMPORT_BRANCH ((sft_hint)68)
#define SFT_HINT_IMPORT_AS ((sft_hint)69)
#define SFT_HINT_MAX_OUTPUT ((sft_hint)70)
#define SFT_HINT_IMPORT_QUANTISED ((sft_hint)71)
#define SFT_HINT_IMPORT_SPARSE ((sft_hint)72)
#define SFT_HINT_IMPORT_WIDER ((sft_hint)73)

/* Files on servers: safetensors_remote.h. @since 0.2 */
#define SFT_REMOTE_NETWORK ((sft_code)420)
#define SFT_REMOTE_TLS ((sft_code)421)
#define SFT_REMOTE_STATUS ((sft_code)422)
#define SFT_REMOTE_DENIED ((sft_code)423)
#define SFT_REMOTE_BUSY ((sft_code)424)
#define SFT_REMOTE_RANGE ((sft_code)425)
#define SFT_REMOTE_CHANGED ((sft_code)426)
#define SFT_REMOTE_REDIRECT ((sft_code)427)
#define SFT_REMOTE_OFFLINE ((sft_code)428)
#define SFT_REMOTE_PRIVATE ((sft_code)429)
#define SFT_REMOTE_TRANSPORT ((sft_code)430)
#define SFT_REMOTE_URL ((sft_code)530)
#define SFT_HINT_REMOTE_TOKEN ((sft_hint)74)
#define SFT_HINT_REMOTE_BAD_TOKEN ((sft_hint)75)
#define SFT_HINT_REMOTE_GATED ((sft_hint)76)
#define SFT_HINT_REMOTE_CREDENTIALS ((sft_hint)77)
#define SFT_HINT_REMOTE_CLOCK ((sft_hint)78)
#define SFT_HINT_REMOTE_PROXY ((sft_hint)79)
#define SFT_HINT_REMOTE_CA ((sft_hint)80)
#define SFT_HINT_REMOTE_DOWNLOAD ((sft_hint)81)
#define SFT_HINT_REMOTE_AGAIN ((sft_hint)82)
#define SFT_HINT_REMOTE_WAIT ((sft_hint)83)
#define SFT_HINT_REMOTE_OFFLINE ((sft_hint)84)
#define SFT_HINT_REMOTE_CURL ((sft_hint)85)
#define SFT_HINT_REMOTE_PUBLIC ((sft_hint)86)
#define SFT_HINT_REMOTE_NAME ((sft_hint)87)
#define SFT_HINT_REMOTE_SIGNED ((sft_hint)88)
#define SFT_HINT_REMOTE_LOGIN ((sft_hint)89)
#define SFT_HINT_REMOTE_LIMIT ((sft_hint)90)

/* Conversions: safetensors_convert.h. @since 0.3 */
#define SFT_HINT_LOSSY ((sft_hint)91)

/* Other names of tensors: safetensors_edit.h. @since 0.3 */
#define SFT_HINT_LORA_NAMES ((sft_hint)95)
#define SFT_HINT_DECLARED_NAMES ((sft_hint)96)

/* Adapters: safetensors_adapter.h. @since 0.3 */
#define SFT_HINT_ADAPTER_CONFIG ((sft_hint)97)
#define SFT_HINT_ADAPTER_PROGRAM ((sft_hint)98)
#define SFT_HINT_ADAPTER_TENSOR ((sft_hint)99)

#ifdef __cplusplus
}
#endif
#endif
