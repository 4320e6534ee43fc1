/* Files beside a model whose values are of other types than they should be, are there twice or too
 * often, or lie. */
#define _GNU_SOURCE
#include "unit/beside_case.h"

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2"
#define INFO(text) { { "x.civitai.info", text } }

static const beside_case cases[] = {
    /* ── CivitAI's answers ── */
    { "values of other types", NULL,
      INFO("{\"id\":5,\"nsfwLevel\":\"3\",\"model\":{\"type\":7,\"allowNoCredit\":\"x\",\"allowDe"
           "rivatives\":1,"
           "\"allowCommercialUse\":3,\"nsfw\":\"y\"},\"air\":6,\"publishedAt\":\"soon\",\"trained"
           "Words\":[7,\"w\"],"
           "\"files\":[{\"name\":8,\"type\":9,\"primary\":\"z\",\"sizeKB\":\"q\",\"hashes\":{\"SH"
           "A256\":4,"
           "\"AutoV2\":\"g\"}}],\"images\":[{\"meta\":{\"prompt\":[1],\"seed\":true}}]}"),
      { "civitai=0/5|90|sidecar:x.civitai.info:/id||\n", "trigger=w|95|1|" },
      { "level=", "may=", "claim=", "prompt=", "kind=", "nsfw=" }, NULL, false },
    { "told twice", NULL,
      INFO("{\"id\":5,\"id\":6,\"nsfwLevel\":2,\"nsfwLevel\":4,\"air\":\"a\",\"air\":\"b\",\"mode"
           "l\":{\"type\":\"LORA\",\"type\":"
           "\"VAE\",\"allowCommercialUse\":[\"Image\",\"Image\",\" None \",\"Rent\"]}}"),
      { "civitai=0/6|90|sidecar:x.civitai.info:/id|b|", "level=4\n", "kind=vae|70|",
        "may=-1/-1/-1 Image Rent\n" },
      { "kind=adapter" }, NULL, false },
    { "a level beyond all", NULL, INFO("{\"id\":5,\"nsfwLevel\":2147483648}"), { "civitai=0/5" },
      { "level=" },
      NULL, false },
    { "the largest level", NULL, INFO("{\"id\":5,\"nsfwLevel\":2147483647}"),
      { "level=2147483647\n" }, { NULL },
      NULL, false },
    { "uses in braces", NULL,
      INFO("{\"id\":5,\"model\":{\"allowCommercialUse\":\"{Sell, Image}\"}}"),
      { "may=-1/-1/-1 Sell Image\n" }, { NULL }, NULL, false },
    { "half a brace", NULL, INFO("{\"id\":5,\"model\":{\"allowCommercialUse\":\"{\"}}"),
      { "may=-1/-1/-1 {\n" },
      { NULL }, NULL, false },
    { "permissions are the first's", NULL,
      { { "x.civitai.info",
          "{\"id\":5,\"model\":{\"allowNoCredit\":true,\"allowDifferentLicense\":true}}" },
        { "x.json", "{\"id\":7,\"modelVersions\":[],\"allowNoCredit\":false,\"allowCommercialUse"
          "\":\"Sell\"}" } },
      { "may=0/-1/1\n" }, { "Sell" }, NULL, false },
    { "a VAE among files", NULL,
      INFO("{\"id\":5,\"model\":{\"type\":\"Checkpoint\"},\"files\":[{\"name\":\"x.safetensors\","
           "\"type\":\"VAE\",\"hashes\":"
           "{\"SHA256\":\"" SHA_A "\"}},{\"name\":\"y\",\"type\":\"Pruned Model\",\"hashes\":{\"S"
           "HA256\":\"" SHA_B "\"}}]}"),
      { "kind=vae|70|", "claim=sha256:" SHA_A }, { "kind=checkpoint", "claim=sha256:" SHA_B },
        NULL, false },
    { "the primary of two", NULL,
      INFO("{\"id\":5,\"files\":[{\"hashes\":{\"SHA256\":\"" SHA_A "\"}},{\"primary\":true,\"hash"
           "es\":{\"SHA256\":\"" SHA_B
           "\"}},{\"primary\":false,\"hashes\":{\"SHA256\":\"" SHA_A "\"}}]}"),
      { "claim=sha256:" SHA_B }, { "claim=sha256:" SHA_A }, NULL, false },
    { "hashes without a file", NULL,
      INFO("{\"id\":5,\"files\":{\"hashes\":{\"SHA256\":\"" SHA_A "\"}}}"),
      { "civitai=0/5" }, { "claim=" }, NULL, false },
    { "a hash seven times", NULL,
      INFO("{\"id\":5,\"files\":[{\"hashes\":{\"AutoV2\":\"1111111111\",\"AutoV2\":\"2222222222\""
           ",\"AutoV2\":\"3333333333\","
           "\"AutoV2\":\"4444444444\",\"AutoV2\":\"5555555555\",\"AutoV2\":\"6666666666\",\"AutoV"
           "2\":\"7777777777\"}}]}"),
      { "claim=autov2:7777777777|" }, { "claim=autov2:6666666666" }, NULL, false },
    { "a version by its size", NULL,
      { { "x.json", "{\"id\":7,\"modelVersions\":[{\"id\":1,\"files\":[{\"name\":3,\"sizeKB\":900"
          "}]},{\"id\":2,\"files\":[{\"sizeKB\":"
          "0.07}]},{\"id\":3,\"files\":[{\"sizeKB\":-1}]}]}" } },
      { "sidecar=civitai.json|size|", "civitai=7/2|90|" }, { "civitai=7/1", "civitai=7/3" }, NULL,
        false },
    { "two versions of that size", NULL,
      { { "x.json", "{\"id\":7,\"modelVersions\":[{\"id\":1,\"files\":[{\"sizeKB\":0.07}]},{\"id"
          "\":2,\"files\":[{\"sizeKB\":0.07}]}]}" } },
      { "civitai=7/0|90|" }, { "civitai=7/1", "civitai=7/2" }, NULL, false },
    { "a version that another names", NULL,
      { { "x.civitai.info", "{\"id\":2,\"modelId\":7}" },
        { "x.json", "{\"id\":7,\"name\":\"N\",\"modelVersions\":[{\"id\":1,\"name\":\"one\",\"fil"
          "es\":[{\"name\":\"x.safetensors\"}]},"
          "{\"id\":2,\"name\":\"two\"}]}" } },
      { "version_name=two|95|sidecar:x.json", "civitai=7/2|90|sidecar:x.json" },
      { "version_name=one" }, NULL, false },

    /* ── NAME.json by its keys ── */
    { "what this library printed", NULL, { { "x.json",
      "{\"command\":\"info\",\"description\":\"no\",\"notes\":\"no\"}" } },
      { "sidecar=json|null||x.json" }, { "note=", "description=" }, NULL, false },
    { "another's command", NULL, { { "x.json", "{\"command\":\"train\",\"description\":\"d\"}" } },
      { "sidecar=a1111.json|", "description=d|100|" }, { NULL }, NULL, false },
    { "of Stability Matrix", NULL, { { "x.json",
      "{\"ModelName\":\"N\",\"ModelId\":3,\"Source\":\"Civitai\"}" } },
      { "sidecar=cm-info.json|", "name=N|95|", "civitai=3/0|90|" }, { NULL }, NULL, false },
    { "of another source", NULL, { { "x.cm-info.json",
      "{\"ModelName\":\"N\",\"ModelId\":3,\"Source\":\"OpenModelDb\"}" } },
      { "name=N|95|" }, { "civitai=" }, NULL, false },
    { "of SwarmUI", NULL, { { "x.json",
      "{\"modelspec.title\":\"T\",\"modelspec.tags\":\"a, b\",\"modelspec.trigger_phrase\":\"p||q"
      "\","
      "\"modelspec.is_negative_embedding\":\" TRUE \"}" } },
      { "sidecar=swarm.json|", "name=T|85|", "tags=a + b|95|", "trigger=p|100|0|",
        "trigger=q|100|1|", "negative=1\n" },
      { NULL }, NULL, false },
    { "no negative embedding", NULL, { { "x.swarm.json",
      "{\"is_negative_embedding\":\"false\",\"trigger_phrase\":5,\"tags\":[1,\"b\"]}" } },
      { "negative=0\n", "tags=b|95|" }, { "trigger=" }, NULL, false },
    { "neither nor", NULL, { { "x.swarm.json",
      "{\"is_negative_embedding\":\"maybe\",\"title\":\"T\"}" } }, { "name=T|85|" },
      { "negative=" }, NULL, false },
    { "a configuration", NULL, { { "x.json", "{\"description\":\"d\",\"model_type\":\"bert\"}" } },
      { "expected keys of a sidecar, found none that is known|x.json" }, { "description=" }, NULL,
        false },
    { "ids that are none", NULL, { { "x.json", "{\"id\":5,\"modelId\":0,\"notes\":\"n\"}" } },
      { "sidecar=a1111.json|", "note=n|" }, { "civitai=" }, NULL, false },
    { "A1111's types", NULL, { { "x.json",
      "{\"sd version\":\"SdVersion.SDXL\",\"activation text\":7,\"preferred weight\":\"0.7\","
      "\"notes\":\"see https://civitai.com/models/9\",\"modelId\":\"8\",\"sha256\":\"" SHA_A "\"}"
      "" } },
      { "architecture=sdxl|70|", "preferred_weight=0.7|100|", "link=https://civitai.com/models/9",
        "civitai=8/0|90|",
        "claim=sha256:" SHA_A }, { "trigger=" }, NULL, false },
    { "A1111 does not know", NULL, { { "x.json",
      "{\"sd version\":7,\"sd_version_str\":\"Unknown\",\"preferred weight\":\"x\"}" } },
      { "sidecar=a1111.json|" }, { "architecture=", "preferred_weight=" }, NULL, false },

    /* ── Managers ── */
    { "lora-manager's types", NULL,
      { { "x.metadata.json",
          "{\"model_name\":\"x\",\"base_model\":3,\"sub_type\":4,\"sha256\":5,\"size\":\"s\",\"no"
          "tes\":6,\"tags\":[7,\"t\"],"
          "\"favorite\":\"y\",\"usage_tips\":8,\"trainedWords\":[9],\"preview_url\":10}" } },
      { "sidecar=metadata.json|null||", "tags=t|95|" }, { "name=x|95", "base_model=", "kind=",
        "claim=", "note=", "trigger=" },
      NULL, false },
    { "its tips", NULL,
      { { "x.metadata.json",
          "{\"model_name\":\" N \",\"usage_tips\":\"{\\\"strength\\\":0.8,\\\"strength_min\\\":\\"
          "\"0.5\\\",\\\"strength_max\\\":"
          "true,\\\"clip_skip\\\":2}\"}" } },
      { "name=N|95|", "preferred_weight=0.8|95|", "clip_skip=2|95|" }, { NULL }, NULL, false },
    { "rgthree's words", NULL,
      { { "x.safetensors.rgthree-info.json",
          "{\"name\":\"N - v\",\"trainedWords\":[{\"word\":\"a\",\"civitai\":true},{\"word\":\"b"
          "\",\"user\":true,"
          "\"civitai\":true},{\"word\":\"c\",\"metadata\":true},{\"word\":7,\"user\":true},{\"wor"
          "d\":\"d\",\"user\":\"x\"}],\"links\":["
          "\"https://civitai.com/models/3?modelVersionId=4\",\"https://civitai.com/models/5\",6,"
          "\"https://x.org\"],"
          "\"strengthMin\":\"low\",\"strengthMax\":1.5}" } },
      { "trigger=a|95|0|", "trigger=b|100|1|",
        "civitai=3/4|90|sidecar:x.safetensors.rgthree-info.json:/links/0", "name=N - v|85|" },
      { "trigger=c|", "trigger=7|", "trigger=d|", "civitai=5/0|90|" }, NULL, false },
    { "and CivitAI's answer", NULL,
      { { "x.safetensors.rgthree-info.json",
          "{\"name\":\"N - v\",\"trainedWords\":[{\"word\":\"a\",\"civitai\":true},{\"word\":\"b"
          "\",\"user\":true}],"
          "\"raw\":{\"civitai\":{\"id\":4,\"modelId\":3,\"trainedWords\":[\"z\"],\"model\":{\"nam"
          "e\":\"N\"}}}}" } },
      { "trigger=z|95|0|", "trigger=b|100|1|", "civitai=3/4|90|", "name=N|95|" }, { "trigger=a|",
        "name=N - v" }, NULL, false },
    { "rgthree broken", NULL, { { "x.safetensors.rgthree-info.json", "{" } },
      { "|null|expected JSON, found text that is none|" },
      { "trigger=" }, NULL, false },
    { "one's own", NULL,
      { { "x.own.json", "{\"name\":\"Mine\",\"words\":[\"w\",3],\"rating\":6,\"favourite\":true,"
          "\"base\":4,\"note\":\"n\",\"weight\":\"heavy\"}" } },
      { "name=Mine|100|", "trigger=w|100|", "note=n|" }, { "base_model=", "preferred_weight=" },
        NULL, false },
    { "ten prompts", NULL,
      { { "x.civitai.info",
          "{\"id\":5,\"images\":[{\"meta\":{\"prompt\":\"p0\",\"seed\":7}},{\"meta\":{\"prompt\":"
          "\"p1\"}},{\"meta\":{\"prompt\":\"p2\"}},"
          "{\"meta\":{\"prompt\":\"p3\"}},{\"meta\":{\"prompt\":\"p4\"}},{\"meta\":{\"prompt\":\""
          "p5\"}},{\"meta\":{\"prompt\":\"p6\"}},{\"meta\":"
          "{\"prompt\":\"p7\"}},{\"meta\":{\"prompt\":\"p8\"}},{\"meta\":{\"prompt\":\"p9\"}},{\""
          "meta\":{\"prompt\":\"p10\"}}]}" } },
      { "prompt=p0||7|", "prompt=p9|" }, { "prompt=p10|" }, NULL, false },

    /* ── adapter_config.json ── */
    { "PEFT's types", NULL, { { "adapter_config.json", "{\"peft_type\":7,\"r\":8}" } },
      { "one_model=1" }, { "kind=" }, NULL, false },
    { "a type too long", NULL, { { "adapter_config.json",
      "{\"peft_type\":\"LORALORALORALORALORALORALORALORAx\",\"r\":8}" } },
      { "rank=8|90\n" }, { "kind=" }, NULL, false },
    { "told by both", NULL, { { "adapter_config.json",
      "{\"peft_type\":\"DORA\",\"fine_tune_type\":\"lora\",\"r\":\"x\",\"scaling\":-1,"
      "\"target_modules\":[5,\"q\"],\"base_model_name_or_path\":6}" } }, { "kind=adapter|90|",
      "dora\n" },
      { "base_checkpoint=" }, NULL, false },
    { "PEFT broken", NULL, { { "adapter_config.json", "{\"peft_type\":" } },
      { "expected JSON, found text that is none" },
      { "kind=" }, NULL, false },

    /* ── Cards ── */
    { "words of a section", NULL,
      { { "README.md", "---\nbase_model: [a/b, None, c/d]\nlicense: other\nlicense_name: mine\n--"
          "-\n# Trigger words\n- \"one\"\n- **two**\n"
          "- ''\n* *`*\n\ntext\n# Model description\n[More information needed]\n" } },
      { "trigger=one|70|0|", "trigger=two|70|1|", "base_checkpoint=a/b + c/d|70|",
        "license=mine|70|" },
      { "trigger=text", "description=", "license=other" }, NULL, false },
    { "one line of it", NULL, { { "README.md", "# Triggers\nfox <b>\n" } },
      { "trigger=fox <b>|70|0|" }, { NULL }, NULL, false },
    { "a sentence of it", NULL, { { "README.md", "# Triggers\nSay fox.\n" } }, { "one_model=1" },
      { "trigger=" }, NULL, false },
    { "two lines of it", NULL, { { "README.md", "# Triggers\nfox\nsnow\n" } }, { "one_model=1" },
      { "trigger=" }, NULL, false },
    { "a tag of it", NULL, { { "README.md", "# Triggers\n<Gallery />\n# Trigger phrase\nx\n" } },
      { "one_model=1" }, { "trigger=" },
      NULL, false },
    { "a picture of it", NULL, { { "README.md", "# Triggers\n![x](y)\n" } }, { "one_model=1" },
      { "trigger=" }, NULL, false },
    { "a long line of it", NULL,
      { { "README.md", "# Triggers\nfox and snow and fox and snow and fox and snow and fox and sn"
          "ow\n" } }, { "one_model=1" },
      { "trigger=" }, NULL, false },
    { "none of it", NULL, { { "README.md", "# Triggers\nNo specific words\n" } },
      { "one_model=1" }, { "trigger=" }, NULL, false },
    { "none at all", NULL, { { "README.md", "# Triggers\nN/A\n" } }, { "one_model=1" },
      { "trigger=" }, NULL, false },
    { "none needed", NULL, { { "README.md", "# Triggers\nThey are not needed\n" } },
      { "one_model=1" }, { "trigger=" }, NULL, false },
    { "quoted in it", NULL, { { "README.md",
      "# Triggers\nSay `fox`, `` or `snow\n```\n`code`\n```\n" } },
      { "trigger=fox|70|0|" }, { "snow", "code" }, NULL, false },
    { "the usual sentence", NULL, { { "README.md",
      "# Triggers\nYou should use fox to trigger the image generation.\nYou should use "
      "`a`, `b` to trigger it.\nYou should use no trigger words to trigger it.\nYou should use no"
      "thing.\n" } },
      { "trigger=fox|70|0|", "trigger=a|70|1|", "trigger=b|70|2|" }, { "trigger=no ", "nothing" },
        NULL, false },
    { "elsewhere", NULL, { { "README.md",
      "# About\nYou should use fox to trigger it.\nYou should use snow to trigger it.\n# Descript"
      "ion\nA fox.\n" } },
      { "trigger=fox|70|0|", "description=A fox.|70|" }, { "snow" }, NULL, false },
    { "its pictures", NULL,
      { { "README.md", "---\nthumbnail: ./a.png\nwidget:\n- text: '-'\n  output:\n    url: None\n"
          "- text: a fox\n  parameters:\n    negative_prompt: b\n"
          "  output:\n    url: gone/b.png\n---\n" } },
      { "prompt=a fox|b|" }, { "preview=", "prompt=-" }, NULL, false },
    { "a base that is a label", NULL, { { "README.md",
      "---\nbase_model: SDXL 1.0\nlicense: mit\ntags: [LoRA, simpletuner]\n---\n" } },
      { "base_model=SDXL 1.0|60|", "license=mit|70|", "kind=adapter|60|" }, { "base_checkpoint=" },
        NULL, false },
};

static void every_case(void **state) {
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) wrong += case_run(&cases[i]);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_case) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
