/* First words of records and of their rows: how each is read, and where it may stand. */
#include "label/records/read.h"

#define NAME(text) { text, sizeof(text) - 1 }

const sft_span sfti_record_types[SFTI_RECORD_TYPES] = {
    NAME("several"), NAME("model"), NAME("kind"), NAME("family"), NAME("variant"),
    NAME("prediction"), NAME("quantisation"), NAME("method"), NAME("blocks"),
};

#define IN(type) (1u << SFTI_##type)
#define SPEAKERS (IN(SEVERAL) | IN(MODEL) | IN(KIND) | IN(PREDICTION) | IN(QUANTISATION))
#define NAMED_FILES (IN(MODEL) | IN(VARIANT) | IN(PREDICTION))

const sfti_word_row sfti_word_rows[SFTI_ROW_WORDS] = {
    [SFTI_PARENT] = { NAME("parent"), SFTI_READ_WORDS, IN(MODEL) | IN(QUANTISATION), false,
        "what it descends from; derived: the same layers, trained to other ends; other-layers" },
    [SFTI_OVER] = { NAME("over"), SFTI_READ_WORDS, IN(MODEL) | IN(FAMILY), true,
        "records whose rows hold for it, too: it is more particular" },
    [SFTI_LIKE] = { NAME("like"), SFTI_READ_WORDS, IN(MODEL), true,
        "a record whose variants are this one's, too" },
    [SFTI_MEMBERS] = { NAME("members"), SFTI_READ_WORDS, IN(MODEL) | IN(QUANTISATION), true,
        "names that others declare for it, of which nothing more is known; vit_* begins so" },
    [SFTI_BRANCH] = { NAME("branch"), SFTI_READ_WORDS, IN(MODEL), true,
        "a word in names of checkpoints that are trained far from it, and their label" },
    [SFTI_OF_FAMILY] = { NAME("family"), SFTI_READ_WORDS, IN(MODEL), false,
        "the family that its tensors show" },
    [SFTI_GROUP] = { NAME("group"), SFTI_READ_WORDS, IN(FAMILY) | IN(VARIANT), false,
        "of one group a model has one" },
    [SFTI_VAES] = { NAME("vae"), SFTI_READ_WORDS, IN(MODEL), false,
        "the VAEs that it uses, or none" },
    [SFTI_TEXT_ENCODERS] = { NAME("text"), SFTI_READ_WORDS, IN(MODEL), false,
        "the text encoders that it uses" },
    [SFTI_DENOISER_PART] = { NAME("part"), SFTI_READ_WORDS, IN(MODEL), false,
        "what its denoiser is called as a component, where that is not transformer" },
    [SFTI_WHOLE] = { NAME("whole"), SFTI_READ_WORDS, IN(MODEL), false,
        "people expect a file with all its parts" },
    [SFTI_DECODER] = { NAME("decoder"), SFTI_READ_WORDS, IN(MODEL), false,
        "a language model that also serves, without its head, as a text encoder" },
    [SFTI_CLASS] = { NAME("class"), SFTI_READ_WORDS, IN(SEVERAL) | IN(MODEL) | IN(KIND), true,
        "classes of diffusers and transformers; of a kind patterns with *" },
    [SFTI_PIPELINE] = { NAME("pipeline"), SFTI_READ_WORDS, IN(SEVERAL) | IN(MODEL), true,
        "how the names of its pipelines begin" },
    [SFTI_MODEL_TYPE] = { NAME("type"), SFTI_READ_WORDS, IN(MODEL), true,
        "model_type of config.json; kind= what such a model is" },
    [SFTI_SAYS] = { NAME("says"), SFTI_READ_PRODUCER, SPEAKERS, true,
        "what a producer calls it: the producer, then words" },
    [SFTI_FILE_WORDS] = { NAME("file"), SFTI_READ_WORDS, NAMED_FILES, true,
        "words in names of files that hint at it" },
    [SFTI_TENSORS] = { NAME("tensors"), SFTI_READ_TENSORS, IN(SEVERAL) | IN(MODEL), true,
        "kind and trust, then clauses: what tensors such a model has" },
    [SFTI_VARIANT_ROW] = { NAME("variant"), SFTI_READ_NAMED, IN(MODEL), true,
        "a variant's name and a colon, then clauses" },
    [SFTI_ADAPTER_ROW] = { NAME("adapter"), SFTI_READ_TRUST, IN(MODEL), true,
        "trust, then clauses: what layers an adapter for it adapts" },
    [SFTI_ADAPTER_VARIANT] = { NAME("adapter-variant"), SFTI_READ_NAMED, IN(MODEL), true,
        "a variant's name and a colon, then clauses about an adapter's layers" },
    [SFTI_STRUCTURE] = { NAME("structure"), SFTI_READ_TENSORS, IN(FAMILY), true,
        "kind or -, and trust, then clauses about layers" },
    [SFTI_EXCESS] = { NAME("excess"), SFTI_READ_CLAUSES, IN(KIND), true,
        "layers that no model of the kind has, but others that hold one" },
    [SFTI_SIZES] = { NAME("sizes"), SFTI_READ_WORDS, IN(SEVERAL) | IN(MODEL), false,
        "tensors of a language model whose shapes tell its sizes" },
    [SFTI_HEAD] = { NAME("head"), SFTI_READ_WORDS, IN(MODEL), false,
        "size of an attention head, or HIDDEN:SIZE by the hidden size" },
    [SFTI_TOPS] = { NAME("tops"), SFTI_READ_WORDS, IN(BLOCKS), false,
        "how the names of layers begin that only some models have" },
    [SFTI_HOLDS] = { NAME("holds"), SFTI_READ_CLAUSES, IN(BLOCKS), false, "the same as clauses" },
    [SFTI_MODELS] = { NAME("models"), SFTI_READ_WORDS, IN(BLOCKS), false, "these models" },
    [SFTI_PREFIXES] = { NAME("prefixes"), SFTI_READ_TABLE, IN(SEVERAL), true,
        "what may stand before the names that rows tensors tell of, in the order of trying" },
    [SFTI_CONFIG] = { NAME("config"), SFTI_READ_WORDS, IN(MODEL), true,
        "a kind, and a number of config.json that tells it from others of the same class" },
    [SFTI_TWINS] = { NAME("twins"), SFTI_READ_WORDS, IN(MODEL), false,
        "VAEs with the same layers were made for others, too" },
    [SFTI_PREDICTS] = { NAME("predicts"), SFTI_READ_WORDS, IN(MODEL), false,
        "what it predicts where nobody says otherwise, if that is not flow" },
    [SFTI_SGM] = { NAME("sgm"), SFTI_READ_WORDS, IN(MODEL), false,
        "a file whose names begin model.diffusion_model. has the implementation sgm" },
    [SFTI_EMBEDDING] = { NAME("embedding"), SFTI_READ_WORDS, IN(MODEL), true,
        "width of a learned token for it, or the encoders it has vectors for: l, g, t5" },
    [SFTI_END] = { NAME("end"), SFTI_READ_WORDS, IN(SEVERAL), true,
        "a mark, and ends of names of tensors that accompany packed weights" },
    [SFTI_MARKS] = { NAME("marks"), SFTI_READ_WORDS, IN(QUANTISATION) | IN(METHOD), true,
        "marks that are all there, or, after !, are not; bits= of a packed weight" },
    [SFTI_PRECISION] = { NAME("precision"), SFTI_READ_WORDS, IN(QUANTISATION), false,
        "the precision that it is told as" },
};

const sft_span sfti_tensor_tables[SFTI_TENSOR_TABLES] = {
    NAME("special"), NAME("denoiser"), NAME("vae"), NAME("image"), NAME("encoder"), NAME("other"),
    NAME("language"),
};

const sft_span sfti_producers[SFTI_PRODUCERS] = {
    NAME("any"), NAME("ss_base_model_version"), NAME("ss_network_module"), NAME("onetrainer"),
    NAME("use"), NAME("modelspec"), NAME("civitai"), NAME("tag"), NAME("a1111"),
    NAME("nunchaku"), NAME("task"), NAME("people"), NAME("base_model"), NAME("ss_v2"),
    NAME("gguf"), NAME("title"),
};
