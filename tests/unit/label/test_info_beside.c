/* Files beside a model: which are found, what each kind tells, and what a near-miss does not.
 * Every case has one beside it that must answer otherwise. */
#define _GNU_SOURCE
#include "unit/beside_case.h"

#include <sys/stat.h>

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2"

#define VERSION \
    "{\"id\":234567,\"modelId\":123456,\"name\":\"v2\",\"description\":\"<p>New</p>\"," \
    "\"baseModel\":\"Pony\",\"trainedWords\":[\"neon, city\",\"\",\"rain\"]," \
    "\"air\":\"urn:air:sdxl:lora:civitai:123456@234567\"," \
    "\"publishedAt\":\"2024-05-01T12:00:00.000Z\",\"nsfwLevel\":3," \
    "\"model\":{\"name\":\"Neonscape\",\"type\":\"LORA\",\"nsfw\":false," \
    "\"description\":\"<p>City &amp; light</p>\",\"tags\":[\"style\",\"city\"]," \
    "\"creator\":{\"username\":\"maker\"},\"allowNoCredit\":false,\"allowDerivatives\":true," \
    "\"allowDifferentLicense\":false,\"allowCommercialUse\":[\"Image\",\"Sell\"]}," \
    "\"files\":[{\"name\":\"other.safetensors\",\"sizeKB\":900.5,\"type\":\"Model\"," \
    "\"hashes\":{\"SHA256\":\"" SHA_B "\"}},{\"name\":\"neon.safetensors\",\"sizeKB\":0.07," \
    "\"type\":\"Model\",\"primary\":true,\"hashes\":{\"SHA256\":\"" SHA_A "\"," \
    "\"AutoV3\":\"22D8CB95B807\",\"CRC32\":\"85114A0D\"}}]," \
    "\"images\":[{\"url\":\"u\",\"meta\":null},{\"url\":\"w\",\"meta\":{\"seed\":7," \
    "\"prompt\":\"neon street\",\"negativePrompt\":\"blur\",\"steps\":20," \
    "\"sampler\":\"Euler\",\"cfgScale\":6.5}}]}"

/* One file, of the size that is given. */
#define SIZED(kilobytes) \
    "{\"id\":2,\"modelId\":1,\"model\":{\"name\":\"N\"},\"trainedWords\":[\"w\"],\"files\":[" \
    "{\"sizeKB\":" kilobytes ",\"type\":\"Model\",\"hashes\":{\"SHA256\":\"" SHA_A "\"," \
    "\"AutoV3\":\"22D8CB95B807\"}}]}"

#define V(n, file, words) \
    "{\"id\":" #n ",\"name\":\"v" #n "\",\"trainedWords\":[\"" words "\"]," \
    "\"files\":[{\"name\":\"" file "\"}]}"
#define MODEL(versions) \
    "{\"id\":77,\"name\":\"Big\",\"description\":\"<p>About</p>\",\"type\":\"LORA\"," \
    "\"tags\":[\"t\"],\"creator\":{\"username\":\"maker\"},\"allowCommercialUse\":\"{Image," \
    "Rent}\",\"allowNoCredit\":true,\"modelVersions\":[" versions "]}"

#define NONE_FOUND "one_model=1\n"

static const beside_case cases[] = {
    /* ── .civitai.info ── */
    { "civitai.info", NULL, { { "x.civitai.info", VERSION } },
      { "name=Neonscape|95|sidecar:x.civitai.info:/model/name",
        "civitai=123456/234567|90|sidecar:x.civitai.info:/id|urn:air:sdxl:lora:civitai:123456@"
        "234567|2024-05-01T12:00:00Z",
        "trigger=neon, city|95|0|sidecar:x.civitai.info:/trainedWords/0",
        "trigger=rain|95|2|", "base_model=Pony|70|", "architecture=sdxl|70|",
        "kind=adapter|70|", "tags=style + city|95|", "author=maker|95|",
        "sidecar=civitai.info|size||x.civitai.info" },
      { "trigger=|", "prediction_type" }, NULL, false },
    { "civitai.info, the rest", NULL, { { "x.civitai.info", VERSION } },
      { "description=City & light|90|", "version_description=New|90|", "version_name=v2|95|",
        "nsfw=false|95|", "level=3", "may=1/1/0 Image Sell",
        "prompt=neon street|blur|7|20|Euler|6.5|sidecar:x.civitai.info:/images/1",
        "claim=sha256:" SHA_A "|sidecar:x.civitai.info:/files/1/hashes/SHA256",
        "claim=autov3:22d8cb95b807|", "claim=crc32_civitai:85114a0d|" },
      { "claim=sha256:" SHA_B }, NULL, false },
    { "civitai.info of another stem", NULL, { { "xy.civitai.info", VERSION } },
      { NONE_FOUND }, { "sidecar=", "trigger=" }, NULL, false },
    { "civitai.info of another case of stem", NULL, { { "X.civitai.info", VERSION } },
      { NONE_FOUND }, { "sidecar=" }, NULL, false },
    { "suffix in any case", NULL, { { "x.CivitAI.Info", VERSION } },
      { "sidecar=civitai.info|size||x.CivitAI.Info" }, { NULL }, NULL, false },
    { "as spelled before any case", NULL,
      { { "x.CIVITAI.INFO", "{}" }, { "x.civitai.info", VERSION } },
      { "name=Neonscape|95|" }, { "x.CIVITAI.INFO" }, NULL, false },
    { "apple double", NULL, { { "._x.civitai.info", VERSION } }, { NONE_FOUND },
      { "sidecar=" }, NULL, false },
    { "apple double asked for", "._x.safetensors", { { "x.civitai.info", VERSION } },
      { NULL }, { "sidecar=", "trigger=" }, NULL, false },
    { "empty object", NULL, { { "x.civitai.info", "{}" } },
      { "sidecar=civitai.info|null|a skeleton: its writer knew no such model|" },
      { "name=N", "trigger=" }, NULL, false },
    { "skeleton by its id", NULL,
      { { "x.civitai.info",
      "{\"id\":\"\",\"modelId\":\"\",\"name\":\"x\",\"baseModel\":\"SDXL 1.0\","
                            "\"trainedWords\":[\"no\"],\"model\":{\"name\":\"x\"}}" } },
      { "a skeleton" }, { "trigger=", "base_model=" }, NULL, false },
    { "skeleton that says so", NULL,
      { { "x.civitai.info", "{\"id\":5,\"skeleton_file\":true,\"trainedWords\":[\"no\"]}" } },
      { "a skeleton" }, { "trigger=", "civitai=" }, NULL, false },
    { "no skeleton though it denies it", NULL,
      { { "x.civitai.info", "{\"id\":5,\"skeleton_file\":false,\"trainedWords\":[\"yes\"]}" } },
      { "trigger=yes|95|0|", "civitai=0/5|90|" }, { "a skeleton" }, NULL, false },
    { "an error as answer", NULL, { { "x.civitai.info", "{\"error\":\"Model not found\"}" } },
      { "a skeleton" }, { "civitai=" }, NULL, false },
    { "broken JSON", NULL, { { "x.civitai.info", "{\"id\":5,\"trainedWords\":[\"no\"" } },
      { "sidecar=civitai.info|null|expected JSON, found text that is none|" },
      { "trigger=", "civitai=" }, NULL, false },
    { "broken UTF-8", NULL, { { "x.civitai.info", "{\"id\":5,\"name\":\"\xFF\"}" } },
      { "expected UTF-8, found another byte at 16" }, { "civitai=" }, NULL, false },
    { "byte order mark", NULL,
      { { "x.civitai.info", "\xEF\xBB\xBF{\"id\":5,\"trainedWords\":[\"yes\"]}" } },
      { "trigger=yes|95|" }, { NULL }, NULL, false },
    { "ids as text", NULL, { { "x.civitai.info", "{\"id\":\"5\",\"modelId\":\"6\"}" } },
      { "civitai=6/5|90|" }, { "a skeleton" }, NULL, false },
    { "base model unknown", NULL,
      { { "x.civitai.info", "{\"id\":5,\"baseModel\":\"Other\"}" } },
      { "civitai=0/5" }, { "base_model=", "architecture=" }, NULL, false },
    { "a label with a variant", NULL,
      { { "x.civitai.info", "{\"id\":5,\"baseModel\":\"Flux.1 Kontext\"}" } },
      { "base_model=Flux.1 Kontext|70|", "architecture=flux.1|70|", "variant=kontext|70|" },
      { NULL }, NULL, false },
    { "commercial use none", NULL,
      { { "x.civitai.info", "{\"id\":5,\"model\":{\"allowCommercialUse\":[\"None\"]}}" } },
      { "may=-1/-1/-1\n" }, { "None" }, NULL, false },

    /* ── Match ── */
    { "size equal", NULL, { { "x.civitai.info", SIZED("0.07") } },
      { "sidecar=civitai.info|size|", "name=N|95|", "trigger=w|95|", "|90|sidecar" },
      { NULL }, NULL, false },
    { "size differs", NULL, { { "x.civitai.info", SIZED("100") } },
      { "sidecar=civitai.info|size-differs|", "name=N|65|", "trigger=w|65|",
        "civitai=1/2|60|" }, { "|95|" }, NULL, false },
    { "SHA-256 equal though the size differs", NULL, { { "x.civitai.info", SIZED("100") } },
      { "sidecar=civitai.info|sha256|", "name=N|95|", "trigger=w|95|", "civitai=1/2|90|" },
      { "|65|" }, "{\"sha256\":\"" SHA_A "\"}", false },
    { "old SHA-256, right AutoV3", NULL, { { "x.civitai.info", SIZED("100") } },
      { "sidecar=civitai.info|weights|", "name=N|95|", "trigger=w|95|" }, { "|10|" },
      "{\"sha256\":\"" SHA_B "\",\"autov3\":\"22d8cb95b807\"}", false },
    { "both differ", NULL, { { "x.civitai.info", SIZED("0.07") } },
      { "sidecar=civitai.info|differs|", "name=N|10|", "trigger=w|10|", "civitai=1/2|10|" },
      { "|95|" }, "{\"sha256\":\"" SHA_B "\",\"autov3\":\"000000000001\"}", false },
    { "AutoV3 not computed", NULL, { { "x.civitai.info", SIZED("0.07") } },
      { "sidecar=civitai.info|null|", "name=N|95|" }, { "|10|" },
      "{\"sha256\":\"" SHA_B "\"}", false },
    { "AutoV3 by the data's hash", NULL, { { "x.civitai.info", SIZED("0.07") } },
      { "sidecar=civitai.info|weights|" }, { NULL },
      "{\"sshs_model\":\"22d8cb95b807aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}",
      false },
    { "CRC-32 in the other order", NULL,
      { { "x.cm-info.json", "{\"ModelId\":1,\"Hashes\":{\"CRC32\":\"85114A0D\"}}" } },
      { "sidecar=cm-info.json|sha256|" }, { NULL }, "{\"crc32\":\"0d4a1185\"}", false },
    { "CRC-32 of another", NULL,
      { { "x.cm-info.json", "{\"ModelId\":1,\"Hashes\":{\"CRC32\":\"85114A0D\"}}" } },
      { "sidecar=cm-info.json|differs|", "civitai=1/0|10|" }, { NULL },
      "{\"crc32\":\"0d4a1186\"}", false },
    { "permissions of another file", NULL, { { "x.civitai.info", VERSION } },
      { "sidecar=civitai.info|differs|" }, { "may=", "level=" },
      "{\"sha256\":\"" "0000000000000000000000000000000000000000000000000000000000000001"
      "\",\"autov3\":\"000000000001\",\"crc32\":\"00000001\"}", false },
    { "only what differs is demoted", NULL,
      { { "x.civitai.info", SIZED("100") }, { "x.json", "{\"activation text\":\"mine\"}" } },
      { "trigger=w|65|", "trigger=mine|100|0|sidecar:x.json:/activation text" }, { NULL },
      NULL, false },

    /* ── .api_info.json ── */
    { "model with one version", NULL, { { "x.api_info.json", MODEL(V(9, "z.safetensors", "w")) } },
      { "civitai=77/9|90|sidecar:x.api_info.json:/modelVersions/0/id", "name=Big|95|",
        "version_name=v9|95|",
        "trigger=w|95|0|sidecar:x.api_info.json:/modelVersions/0/trainedWords/0",
        "may=0/-1/-1 Image Rent", "kind=adapter|70|", "description=About|" },
      { NULL }, NULL, false },
    { "the version of this file's name", NULL,
      { { "x.api_info.json", MODEL(V(8, "y.safetensors", "no") "," V(9, "x.safetensors", "w")) } },
      { "civitai=77/9|90|", "trigger=w|95|" }, { "trigger=no" }, NULL, false },
    { "no version is this file", NULL,
      { { "x.api_info.json", MODEL(V(8, "y.safetensors", "a") "," V(9, "z.safetensors", "b")) } },
      { "civitai=77/0|90|", "name=Big|95|" }, { "trigger=", "version_name=" }, NULL, false },
    { "the version another sidecar tells", NULL,
      { { "x.api_info.json", MODEL(V(8, "y.safetensors", "a") "," V(9, "z.safetensors", "b")) },
        { "x.json", "{\"activation text\":\"\",\"modelId\":77,\"modelVersionId\":8}" } },
      { "civitai=77/8|90|sidecar:x.json:/modelVersionId|", "trigger=a|95|" }, { "trigger=b" },
      NULL, false },

    /* ── lora-manager ── */
    { "metadata.json", NULL,
      { { "x.metadata.json",
          "{\"file_name\":\"x\",\"model_name\":\"My Name\",\"size\":72,\"sha256\":\"" SHA_A "\","
          "\"base_model\":\"SDXL 1.0\",\"notes\":\"good\",\"tags\":[\"a\"],\"autov3\":null,"
          "\"modelDescription\":\"<p>D</p>\",\"trainedWords\":[\"top\"],"
          "\"usage_tips\":\"{\\\"strength\\\":0.8}\",\"civitai\":{\"id\":4,\"modelId\":3,"
          "\"trainedWords\":[\"sub\"],\"model\":{\"name\":\"Their Name\"}}}" } },
      { "name=My Name|95|", "name=Their Name|95|sidecar:x.metadata.json:/civitai/model/name",
        "trigger=top|100|0|", "trigger=sub|95|0|sidecar:x.metadata.json:/civitai/trainedWords/0",
        "preferred_weight=0.8|95|sidecar:x.metadata.json:/usage_tips:/strength",
        "civitai=3/4|90|", "claim=sha256:" SHA_A, "sidecar=metadata.json|size|",
        "note=good|", "description=D|90|" }, { NULL }, NULL, false },
    { "metadata.json that knows nothing", NULL,
      { { "x.metadata.json", "{\"model_name\":\"x\",\"size\":900000,\"base_model\":\"Unknown\","
                             "\"usage_tips\":\"{}\",\"civitai\":null,\"tags\":[]}" } },
      { "sidecar=metadata.json|size-differs|" },
      { "name=x|", "base_model=", "preferred_weight", "civitai=" }, NULL, false },

    /* ── A1111 and what else x.json may be ── */
    { "a1111", NULL,
      { { "x.json", "{\"description\":\"Use <it>\",\"sd version\":\"SDXL\","
                    "\"activation text\":\"neon, city || rain\",\"preferred weight\":0.7,"
                    "\"negative text\":\"blur\",\"notes\":\"n\",\"sha256\":\"" SHA_A "\"}" } },
      { "description=Use <it>|100|", "architecture=sdxl|70|", "trigger=neon, city|100|0|",
        "trigger=rain|100|1|", "preferred_weight=0.7|100|", "negative_prompt=blur|100|",
        "note=n|sidecar:x.json:/notes", "claim=sha256:" SHA_A, "sidecar=a1111.json|" },
      { NULL }, NULL, false },
    { "a1111 with nothing in it", NULL,
      { { "x.json", "{\"description\":\"\",\"sd version\":\"Unknown\",\"activation text\":\"\","
                    "\"preferred weight\":0.0,\"negative text\":\"\",\"notes\":\"\"}" } },
      { "sidecar=a1111.json|null||" },
      { "description=", "architecture=", "trigger=", "preferred_weight=", "note=" }, NULL,
      false },
    { "a bare dump", NULL, { { "x.json", VERSION } },
      { "sidecar=civitai.json|size|", "civitai=123456/234567|90|" }, { NULL }, NULL, false },
    { "a tokenizer", NULL,
      { { "x.json", "{\"version\":\"1.0\",\"model\":{\"vocab\":{}},\"added_tokens\":[]}" } },
      { "sidecar=json|null|expected keys of a sidecar, found none that is known|" },
      { "name=1" }, NULL, false },
    { "a config with a description", NULL,
      { { "x.json", "{\"model_type\":\"llama\",\"description\":\"no\"}" } },
      { "found none that is known" }, { "description=" }, NULL, false },

    /* ── Stability Matrix ── */
    { "cm-info", NULL,
      { { "x.cm-info.json",
          "{\"ModelId\":1,\"VersionId\":2,\"UserTitle\":\"Mine\",\"ModelName\":\"Theirs\","
          "\"ModelType\":\"TextualInversion\",\"BaseModel\":\"SD 1.5\",\"Nsfw\":true,"
          "\"TrainedWords\":[\"w\"],\"VersionName\":\"v1\",\"AuthorUsername\":\"m\","
          "\"Source\":\"Civitai\",\"Hashes\":{\"SHA256\":\"" SHA_A "\"}}" } },
      { "name=Mine|100|", "name=Theirs|95|", "kind=embedding|70|", "architecture=sd-1|70|",
        "nsfw=true|95|", "trigger=w|95|0|", "civitai=1/2|90|", "author=m|95|",
        "claim=sha256:" SHA_A }, { NULL }, NULL, false },
    { "cm-info of elsewhere", NULL,
      { { "x.cm-info.json", "{\"ModelId\":1,\"VersionId\":2,\"ModelName\":\"Up\","
                            "\"Source\":\"OpenModelDb\"}" } },
      { "name=Up|95|" }, { "civitai=" }, NULL, false },

    /* ── SwarmUI, rgthree, recipes ── */
    { "swarm", NULL,
      { { "x.swarm.json", "{\"modelspec.title\":\"T\",\"modelspec.trigger_phrase\":\"neon\","
                          "\"modelspec.tags\":\"a, b\",\"modelspec.architecture\":"
                          "\"stable-diffusion-xl-v1-base/lora\",\"modelspec.prediction_type\":"
                          "\"v_prediction\",\"modelspec.lora_default_weight\":\"0.6\"}" } },
      { "name=T|85|sidecar:x.swarm.json:/modelspec.title", "trigger=neon|100|", "tags=a + b|95|",
        "architecture=sdxl|80|", "kind=adapter|80|", "prediction_type=v|85|",
        "preferred_weight=0.6|80|" }, { NULL }, NULL, false },
    { "swarm without prefix", NULL, { { "x.swarm.json", "{\"title\":\"T\"}" } },
      { "name=T|85|" }, { "trigger=" }, NULL, false },
    { "rgthree", NULL,
      { { "x.safetensors.rgthree-info.json",
          "{\"name\":\"Neon - v1\",\"type\":\"LORA\",\"baseModel\":\"Pony\","
          "\"sha256\":\"" SHA_A "\","
          "\"trainedWords\":[{\"word\":\"mine\",\"user\":true},{\"civitai\":true,"
          "\"word\":\"theirs\"},"
          "{\"word\":\"1girl\",\"count\":40,\"metadata\":true}],\"userNote\":\"n\","
          "\"links\":[\"https://civitai.com/models/11?modelVersionId=22\"],"
          "\"images\":[{\"positive\":\"p\",\"seed\":3,\"cfg\":7}]}" } },
      { "trigger=mine|100|0|", "trigger=theirs|95|1|", "civitai=11/22|90|", "base_model=Pony|70|",
        "note=n|", "prompt=p||3|||7|sidecar:x.safetensors.rgthree-info.json:/images/0",
        "claim=sha256:" SHA_A }, { "1girl" }, NULL, false },
    { "rgthree with CivitAI's answer", NULL,
      { { "x.safetensors.rgthree-info.json",
          "{\"name\":\"Neon - v1\",\"trainedWords\":[{\"word\":\"a\",\"civitai\":true},"
          "{\"word\":\"own\",\"user\":true}],\"raw\":{\"civitai\":{\"id\":22,\"modelId\":11,"
          "\"model\":{\"name\":\"Neon\"},\"trainedWords\":[\"a, b\"]}}}" } },
      { "name=Neon|95|", "trigger=a, b|95|0|", "trigger=own|100|1|", "civitai=11/22|90|" },
      { "Neon - v1", "trigger=a|" }, NULL, false },
    { "rgthree of another file", NULL,
      { { "x.pt.rgthree-info.json", "{\"trainedWords\":[{\"word\":\"no\",\"user\":true}]}" } },
      { NONE_FOUND }, { "trigger=", "sidecar=" }, NULL, false },
    { "recipe", NULL,
      { { "x.recipe.json", "{\"gen_params\":{\"prompt\":\"p\",\"seed\":1,\"cfg_scale\":5}}" } },
      { "prompt=p||1|||5|sidecar:x.recipe.json:/gen_params" }, { "trigger=" }, NULL, false },

    /* ── Text ── */
    { "one line", NULL, { { "x.txt", "neon, city\n" } },
      { "trigger=neon, city|70|0|sidecar:x.txt", "note=neon, city|sidecar:x.txt" }, { NULL },
      NULL, false },
    { "many lines", NULL, { { "x.txt", "first\nsecond\n" } }, { "note=first\nsecond|" },
      { "trigger=" }, NULL, false },
    { "description.txt", NULL, { { "x.description.txt", "All about it" } },
      { "description=All about it|90|sidecar:x.description.txt" }, { "trigger=", "note=" },
      NULL, false },
    { "sha256", NULL, { { "x.sha256", SHA_A "  x.safetensors\n" } },
      { "claim=sha256:" SHA_A "|sidecar:x.sha256" }, { NULL }, NULL, false },
    { "no sha256", NULL, { { "x.sha256", "hello" } },
      { "expected 64 hexadecimal digits" }, { "claim=" }, NULL, false },
    { "sha256 that differs", NULL, { { "x.sha256", SHA_A } }, { "sidecar=sha256|differs|" },
      { NULL }, "{\"sha256\":\"" SHA_B "\"}", false },
    { "yaml", NULL,
      { { "x.yaml", "model:\n  target: ldm\n  params:\n    parameterization: \"v\"\n" } },
      { "prediction_type=v|90|sidecar:x.yaml:/model/params/parameterization" }, { NULL }, NULL,
      false },
    { "yaml elsewhere", NULL, { { "x.yaml",
    "model:\n  params:\n    x:\n      parameterization: v\n" } },
      { "sidecar=yaml|" }, { "prediction_type" }, NULL, false },

    /* ── Rule 7 ── */
    { "README of one", NULL, { { "README.md", "---\ninstance_prompt: ohwx man\n---\n" } },
      { "trigger=ohwx man|85|", "one_model=1" }, { NULL }, NULL, false },
    { "README of two", NULL,
      { { "README.md", "---\ninstance_prompt: ohwx man\n---\n" }, { "y.safetensors", NULL } },
      { "one_model=0" }, { "trigger=", "sidecar=" }, NULL, false },
    { "README of a generic name", "adapter_model.safetensors",
      { { "README.md", "---\ninstance_prompt: ohwx man\n---\n" }, { "y.safetensors", NULL } },
      { "trigger=ohwx man|85|", "one_model=1" }, { NULL }, NULL, false },
    { "an apple double is no second model", NULL,
      { { "README.md", "---\ninstance_prompt: ohwx man\n---\n" }, { "._y.safetensors", NULL } },
      { "trigger=ohwx man|85|" }, { NULL }, NULL, false },
    { "shards are one", "m-00001-of-00002.safetensors",
      { { "m-00002-of-00002.safetensors", NULL },
        { "README.md", "---\ninstance_prompt: ohwx man\n---\n" } },
      { "one_model=1" }, { NULL }, NULL, false },
    { "shards of two", "m-00001-of-00002.safetensors",
      { { "m-00002-of-00003.safetensors", NULL },
        { "README.md", "---\ninstance_prompt: ohwx man\n---\n" } },
      { "one_model=0" }, { "trigger=" }, NULL, false },
    { "sidecars count in any folder", NULL,
      { { "y.safetensors", NULL }, { "x.civitai.info", VERSION } },
      { "one_model=0", "trigger=rain|95|" }, { NULL }, NULL, false },
    { "a folder's name", "nice-model/x.safetensors", { { "nice-model/", NULL } },
      { "name=nice-model|40|folder" }, { NULL }, NULL, false },
    { "a folder's name with two in it", "nice-model/x.safetensors",
      { { "nice-model/", NULL }, { "nice-model/y.safetensors", NULL } }, { "one_model=0" },
      { "name=" }, NULL, false },
    { "a shelf", "loras/x.safetensors", { { "loras/", NULL } }, { "one_model=1" }, { "name=" },
      NULL, false },
    { "a Hub cache", "models--org--the-name/snapshots/abc/x.safetensors",
      { { "models--org--the-name/", NULL }, { "models--org--the-name/snapshots/", NULL },
        { "models--org--the-name/snapshots/abc/", NULL } },
      { "repo=org/the-name|90|folder", "name=the-name|40|folder" }, { "name=abc" }, NULL, false },
    { "no Hub cache", "models--org--the-name/blobs/x.safetensors",
      { { "models--org--the-name/", NULL }, { "models--org--the-name/blobs/", NULL } },
      { "one_model=1" }, { "repo=" }, NULL, false },

    /* ── Links ── */
    { "a link's target in a Hub cache", NULL,
      { { SHA_A, NULL }, { "x.safetensors->" SHA_A, NULL } },
      { "claim=sha256:" SHA_A "|filename" }, { NULL }, NULL, false },
    { "a target with a digit too few", NULL,
      { { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL },
        { "x.safetensors->aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        NULL } },
      { "one_model=1" }, { "claim=" }, NULL, false },
    { "beside the target", NULL,
      { { "sub/", NULL }, { "sub/real.safetensors", NULL }, { "sub/real.txt", "neon" },
        { "x.safetensors->sub/real.safetensors", NULL } },
      { "trigger=neon|70|0|sidecar:real.txt" }, { NULL }, NULL, false },
    { "beside the path before beside the target", NULL,
      { { "sub/", NULL }, { "sub/real.safetensors", NULL }, { "sub/real.txt", "neon" },
        { "x.safetensors->sub/real.safetensors", NULL }, { "x.txt", "rain" } },
      { "trigger=rain|70|0|sidecar:x.txt" }, { "neon" }, NULL, false },
    { "a folder named as a sidecar", NULL, { { "x.json/", NULL } }, { NONE_FOUND },
      { "sidecar=" }, NULL, false },
    { "a dangling sidecar", NULL, { { "x.json->nowhere", NULL } },
      { "sidecar=json|null|cannot open: No such file or directory|x.json" }, { NULL }, NULL,
      false },
};

static void every_case(void **state) {
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) wrong += case_run(&cases[i]);
    assert_int_equal(wrong, 0);
}

/* ── What is no text ── */

static void dump_beside(temp_folder *temp, const sft_info_options *options) {
    sft_info info;
    sft_set *set;
    case_write(temp, &(case_file){ "x.safetensors", NULL });
    const char *path = temp_path(temp, "x.safetensors");
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    case_begin(&info, set, path, false);
    if (options) info.options = *options;
    sfti_info_sidecars(&info, NULL);
    assert_int_equal(info.code, SFT_OK);
    case_dump(&info);
    sfti_arena_free(&info.arena);
    sft_set_close(set);
}

static void wants(const char *part) {
    if (!strstr(case_text, part)) fail_msg("expected %s in\n%s", part, case_text);
}

static void lacks(const char *part) {
    if (strstr(case_text, part)) fail_msg("did not expect %s in\n%s", part, case_text);
}

static const char png[] = "\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\1\0\0\0\0\x80\x08\2\0\0\0ABCD"
                          "\0\0\0\x22tEXtparameters\0neon\nSteps: 20, Seed: 7XXXXX"
                          "\0\0\0\0IENDABCD";

static void previews_by_magic(void **state) {
    temp_folder temp;
    (void)state;
    temp_begin(&temp);
    (void)temp_file(&temp, "x.preview.png", png, sizeof png - 1);
    (void)temp_file(&temp, "x.JPEG", "\xFF\xD8\xFF\xE0\0\x10JFIF\0", 11);
    (void)temp_text(&temp, "x.png", "<html>not found</html>");
    (void)temp_file(&temp, "x.mp4", "\0\0\0\x18" "ftypmp42\0\0\0\0", 16);
    (void)temp_file(&temp, "xy.png", png, sizeof png - 1);
    dump_beside(&temp, NULL);
    wants("preview=x.preview.png|image/png|");
    wants("|256x128|sidecar:x.preview.png");
    wants("preview=x.JPEG|image/jpeg|11|0x0|sidecar:x.JPEG");
    wants("preview=x.mp4|video/mp4|16|0x0|");
    wants("sidecar=preview|null|expected an image or a film, found neither|x.png");
    wants("prompt=neon");
    lacks("xy.png");
    temp_end(&temp);
}

static void hostile_files(void **state) {
    temp_folder temp;
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    (void)state;
    temp_begin(&temp);
    options.max_file_bytes = 8;
    (void)temp_text(&temp, "x.civitai.info", "{\"id\":1,\"modelId\":2}");
    (void)temp_text(&temp, "x.txt", "12345678");
    temp_must(mkfifo(temp_path(&temp, "x.json"), 0600) == 0, "mkfifo");
    temp_must(symlink("x.json", temp_path(&temp, "x.yaml")) == 0, "symlink");
    dump_beside(&temp, &options);
    wants("sidecar=civitai.info|null|expected at most 8 bytes, found 20|");
    wants("trigger=12345678|70|");
    wants("sidecar=yaml|null|expected a file, found a pipe|x.yaml");
    lacks("|x.json");
    lacks("civitai=");
    temp_end(&temp);
}

static void header_only(void **state) {
    temp_folder temp;
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    (void)state;
    temp_begin(&temp);
    options.header_only = true;
    (void)temp_text(&temp, "x.txt", "neon");
    dump_beside(&temp, &options);
    lacks("trigger=");
    dump_beside(&temp, NULL);
    wants("trigger=neon|");
    temp_end(&temp);
}

/* Demoted trusts come back when digests tell otherwise. */
static void matching_again(void **state) {
    temp_folder temp;
    sft_info info;
    sft_set *set;
    (void)state;
    temp_begin(&temp);
    case_write(&temp, &(case_file){ "x.safetensors", NULL });
    (void)temp_text(&temp, "x.civitai.info", SIZED("100"));
    const char *path = temp_path(&temp, "x.safetensors");
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    case_begin(&info, set, path, false);
    sfti_info_sidecars(&info, NULL);
    static const struct { const char *computed, *with; } steps[] = {
        { "", "name=N|65|" },
        { "{\"sha256\":\"" SHA_B "\",\"autov3\":\"000000000001\"}", "name=N|10|" },
        { "{\"sha256\":\"" SHA_A "\"}", "name=N|95|" },
        { "not JSON", "name=N|65|" },
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        case_match(&info, steps[i].computed);
        case_dump(&info);
        wants(steps[i].with);
    }
    sfti_arena_free(&info.arena);
    sft_set_close(set);
    temp_end(&temp);
}

/* ── Folders ── */

static void folders(void **state) {
    temp_folder temp;
    sft_info_folder *folder = NULL;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_info_folder_open("/no/such/folder", NULL, NULL, &folder, &err),
                     SFT_NOT_FOUND);
    assert_null(folder);
    temp_begin(&temp);
    const char *file = temp_text(&temp, "x.txt", "neon");
    assert_int_not_equal(sft_info_folder_open(file, NULL, NULL, &folder, NULL), SFT_OK);
    assert_int_equal(sft_info_folder_open(temp.path, NULL, NULL, &folder, &err), SFT_OK);
    sft_info_folder_close(folder);
    sft_info_folder_close(NULL);
    temp_end(&temp);
}

/* Every allocation fails once: the code says so, nothing leaks. */
typedef struct failing { size_t calls, fail_on, held; } failing;

static void *resize_failing(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    if (new_size == 0) {
        f->held -= old_size;
        free(ptr);
        return NULL;
    }
    if (++f->calls == f->fail_on) return NULL;
    f->held += new_size - old_size;
    return realloc(ptr, new_size);
}

static void memory_runs_out(void **state) {
    temp_folder temp;
    sft_set *set;
    sft_info info;
    failing f = { 0, 0, 0 };
    bool failed = true;
    (void)state;
    temp_begin(&temp);
    case_write(&temp, &(case_file){ "x.safetensors", NULL });
    (void)temp_text(&temp, "x.civitai.info", VERSION);
    (void)temp_text(&temp, "README.md", "---\ntags: [a, b]\n---\n## Trigger words\n`w`\n");
    const char *path = temp_path(&temp, "x.safetensors");
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    for (size_t n = 1; failed; n++) {
        f = (failing){ 0, n, 0 };
        case_begin(&info, set, path, false);
        info.arena.alloc = (sft_allocator){ resize_failing, &f };
        info.options.alloc = &info.arena.alloc;
        sfti_info_sidecars(&info, NULL);
        failed = f.calls >= n;
        assert_int_equal(info.code, failed ? SFT_OUT_OF_MEMORY : SFT_OK);
        sfti_arena_free(&info.arena);
        assert_int_equal(f.held, 0);
    }
    sft_set_close(set);
    temp_end(&temp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case),      cmocka_unit_test(previews_by_magic),
        cmocka_unit_test(hostile_files),   cmocka_unit_test(header_only),
        cmocka_unit_test(matching_again),  cmocka_unit_test(folders),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
