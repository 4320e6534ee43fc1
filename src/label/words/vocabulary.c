/* Words that are never a model's own: common tags, nouns of classes, versions. */
#include "label/words/triggers.h"

#include <string.h>

/* Each table is sorted by bytes. */

static const char *const generic_tags[] = {
    "1boy", "1girl", "1other", "2boys", "2girls", "3boys", "3d", "3girls", "4girls", "4k", "5girls",
    "6+boys", "6+girls", "8k", "absurdly detailed", "absurdres", "adult", "aesthetic", "ahoge",
    "ai-generated", "alternate costume", "amazing quality", "animated", "anime", "anime coloring",
    "anime screencap", "anime screenshot", "anime style", "apron", "arm at side", "arm up",
    "armpits", "arms at sides", "arms behind back", "arms up", "artist name", "ass",
    "average quality", "awa", "back", "background", "bad aesthetic", "bad anatomy", "bad quality",
    "bangs", "bar censor", "bare arms", "bare legs", "bare shoulders", "barefoot", "bed", "belt",
    "best aesthetic", "best quality", "bikini", "black background", "black footwear",
    "black gloves", "black shirt", "blouse", "blunt bangs", "blurry", "blurry background", "blush",
    "bokeh", "boots", "bow", "boy", "bra", "braid", "breasts", "building", "cape", "censored",
    "chair", "choker", "cinematic", "cinematic lighting", "cleavage", "close-up", "closed eyes",
    "closed mouth", "clothed", "cloud", "cloudy sky", "collage", "collar", "collarbone",
    "collared shirt", "colored photo", "comic", "commentary", "commentary request", "commission",
    "cosplay", "covered navel", "cowboy shot", "crop top", "crossed arms", "cute", "dark", "day",
    "depth of field", "detached sleeves", "detailed", "detailed background", "displeasing",
    "drawing", "dress", "dslr", "dutch angle", "early", "earrings", "elbow gloves", "english text",
    "explicit", "expressionless", "eyebrows", "eyelashes", "eyes", "eyewear", "face",
    "facing viewer", "fang", "feet", "female", "female focus", "film grain", "fingerless gloves",
    "fingernails", "flat chest", "flower", "food", "forest", "formal", "frills", "fringe",
    "from above", "from behind", "from below", "from side", "full body", "full-length", "general",
    "girl", "glasses", "gloves", "good quality", "gradient background", "grass", "great quality",
    "grey background", "groin", "hair", "hair between eyes", "hair bow", "hair flower",
    "hair intakes", "hair ornament", "hair ribbon", "hairband", "hairclip", "hand", "hand on hip",
    "hand on own hip", "hand up", "hands", "hands on own hips", "hat", "hd", "hdr", "headshot",
    "heart", "hi res", "high heels", "high quality", "high resolution", "highres", "holding",
    "holding weapon", "hood", "hoodie", "horns", "human", "illustration", "image",
    "incredibly absurdres", "indoors", "intricate", "intricate details", "jacket", "jewelry",
    "jpeg artifacts", "kimono", "kneehighs", "large breasts", "late", "leaf", "leaning forward",
    "lens flare", "leotard", "light", "lips", "logo", "loli", "long dress", "long hair",
    "long legs", "long skirt", "long sleeves", "looking at another", "looking at camera",
    "looking at viewer", "looking away", "looking back", "looking to the side", "looking up",
    "low quality", "lowres", "lying", "male", "male focus", "man", "masterpiece", "medium breasts",
    "medium hair", "medium shot", "mid", "midriff", "miniskirt", "mole", "monochrome",
    "mosaic censoring", "mouth", "multicolored hair", "multiple boys", "multiple girls",
    "multiple views", "nail polish", "narrow waist", "natural light", "natural lighting", "navel",
    "neck", "necklace", "necktie", "newest", "night", "nipples", "no humans", "no_humans",
    "normal quality", "nose", "nsfw", "nude", "official art", "official style", "old", "oldest",
    "on back", "one eye closed", "open clothes", "open mouth", "original", "outdoors", "outside",
    "own hands together", "painting", "panties", "pants", "pantyhose", "parted bangs",
    "parted lips", "pencil skirt", "people", "person", "photo", "photo (medium)", "photograph",
    "photography", "photorealistic", "plant", "pleated skirt", "pointy ears", "ponytail",
    "portrait", "pose", "profile", "puffy sleeves", "questionable", "rating:explicit",
    "rating:general", "rating:questionable", "rating:safe", "rating:sensitive", "realistic",
    "recent", "red background", "ribbon", "ring", "safe", "scan", "school uniform", "score_4_up",
    "score_5_up", "score_6_up", "score_7_up", "score_8_up", "score_9", "score_9_up", "screencap",
    "screenshot", "sensitive", "sexy", "shadow", "sharp focus", "shiny", "shiny hair", "shirt",
    "shoes", "short dress", "short hair", "short shorts", "short sleeves", "shorts", "shoulders",
    "sidelocks", "signature", "simple background", "sitting", "skin", "skindentation", "skirt",
    "sky", "sleeveless", "sleeveless dress", "sleeves", "small breasts", "smile", "snow", "socks",
    "soft lighting", "solo", "solo focus", "source_anime", "source_cartoon", "source_furry",
    "source_pony", "speech bubble", "spread legs", "standing", "straight hair", "straight-on",
    "studio lighting", "sunglasses", "sweat", "sweater", "swimsuit", "tagme", "tail", "tank top",
    "teeth", "text", "thigh strap", "thighhighs", "thighs", "tied hair", "tongue", "tongue out",
    "topless", "traditional media", "translation request", "tree", "turtleneck", "twin braids",
    "twintails", "two side up", "two-tone background", "uhd", "ultra detailed", "ultra-detailed",
    "uncensored", "underwear", "uniform", "upper body", "upper teeth only", "v-neck", "veil",
    "very aesthetic", "very awa", "very displeasing", "very long hair", "vest", "viewer",
    "virtual youtuber", "wallpaper", "wariza", "water", "watermark", "weapon", "web address",
    "white background", "white border", "white dress", "white gloves", "white shirt",
    "white thighhighs", "wide sleeves", "window", "wings", "woman", "woman focus",
    "worst aesthetic", "worst quality", "yellow background", "young", "zettai ryouiki",
};

static const char *const function_words[] = {
    "a", "about", "above", "after", "against", "along", "also", "an", "and", "another", "are",
    "around", "as", "at", "be", "been", "before", "behind", "being", "below", "beneath", "beside",
    "between", "beyond", "both", "but", "by", "can", "could", "do", "does", "down", "during",
    "each", "for", "from", "had", "has", "have", "he", "her", "here", "hers", "herself", "him",
    "himself", "his", "how", "i", "in", "inside", "into", "is", "it", "its", "itself", "like",
    "may", "more", "most", "near", "next", "no", "not", "of", "off", "on", "one", "onto", "or",
    "other", "out", "outside", "over", "own", "she", "so", "some", "such", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too",
    "toward", "towards", "two", "under", "up", "upon", "very", "was", "were", "what", "when",
    "where", "which", "while", "who", "whose", "will", "with", "within", "without", "would",
    "you", "your",
};

static const char *const common_words[] = {
    "across", "actually", "adorned", "air", "all", "almost", "angle", "anime", "appear",
    "appearance", "appearing", "appears", "area", "arm", "arms", "art", "artwork", "atmosphere",
    "back", "backdrop", "background", "beautiful", "black", "blonde", "blue", "blurred", "blurry",
    "body", "bold", "bottom", "bright", "brown", "camera", "capture", "captured", "captures",
    "capturing", "cartoon", "casual", "center", "character", "characters", "chest", "clear",
    "close", "close-up", "closeup", "clothes", "clothing", "color", "colored", "colorful",
    "colors", "composition", "contrast", "create", "creates", "creating", "dark", "day", "deep",
    "depicted", "depicting", "depicts", "depth", "design", "detail", "detailed", "details",
    "different", "digital", "directly", "distinct", "drawing", "drawn", "dress", "dressed",
    "dressing", "edge", "elegant", "emphasizing", "environment", "expression", "eyes", "face",
    "facial", "facing", "features", "featuring", "feel", "field", "figure", "filled", "focus",
    "focused", "foreground", "frame", "front", "full", "fully", "gaze", "gazing", "gentle",
    "giving", "gold", "golden", "gray", "green", "grey", "ground", "group", "hair", "hand",
    "hands", "head", "held", "high", "highlighting", "hold", "holding", "holds", "illustrated",
    "illustration", "image", "images", "indoor", "indoors", "intricate", "jacket", "large",
    "left", "legs", "light", "lighting", "lights", "line", "lines", "lips", "long", "look",
    "looking", "looks", "medium", "mid", "middle", "mood", "mouth", "natural", "nature",
    "neutral", "object", "objects", "orange", "outdoor", "outdoors", "outfit", "overall",
    "painting", "pair", "pale", "partially", "pattern", "patterns", "person", "photo",
    "photograph", "photography", "picture", "pink", "plain", "pose", "posed", "poses", "posing",
    "position", "positioned", "presented", "purple", "quality", "realistic", "red", "render",
    "rendered", "rendering", "resting", "right", "room", "scene", "scenes", "seated", "seen",
    "set", "setting", "several", "shades", "shadow", "shadows", "sharp", "shirt", "short", "shot",
    "show", "showing", "shown", "shows", "side", "simple", "simply", "sit", "sits", "sitting",
    "skin", "sky", "slight", "slightly", "small", "smile", "smiles", "smiling", "smooth", "soft",
    "softly", "solid", "stand", "standing", "stands", "strong", "studio", "style", "styled",
    "stylized", "subject", "subtle", "suggesting", "suggests", "surface", "surrounded", "tall",
    "text", "texture", "textured", "textures", "three", "tones", "top", "upper", "variety",
    "various", "vibrant", "viewer", "visible", "visual", "wall", "warm", "water", "wear",
    "wearing", "wears", "well", "white", "wide", "window", "wooden", "worn", "yellow", "young",
};

static const char *const class_nouns[] = {
    "animal", "animals", "anime", "baby", "bird", "boy", "boys", "building", "car", "cat", "cats",
    "character", "child", "children", "city", "clothes", "clothing", "concept", "creature", "dog",
    "dogs", "dress", "female", "figure", "flower", "food", "girl", "girls", "guy", "horse",
    "house", "human", "kid", "ladies", "lady", "landscape", "logo", "male", "man", "men", "model",
    "monster", "nature", "object", "outfit", "painting", "people", "person", "persons", "pet",
    "photo", "picture", "place", "plant", "portrait", "product", "robot", "room", "scene",
    "style", "thing", "things", "toy", "tree", "vehicle", "weapon", "woman", "women",
};

static const char *const weak_names[] = {
    "adapter", "and", "anime", "art", "artist", "bf16", "boy", "boys", "character", "checkpoint",
    "ckpt", "concept", "data", "dataset", "dev", "epoch", "final", "flux", "flux1", "for", "fp16",
    "girl", "girls", "illustrious", "image", "images", "img", "last", "locon", "loha", "lokr",
    "lora", "lycoris", "man", "men", "model", "new", "noob", "noobai", "output", "people",
    "person", "photo", "photos", "pony", "project", "real", "realism", "realistic", "safetensors",
    "sd", "sd1", "sd15", "sdxl", "step", "steps", "style", "test", "the", "train", "training",
    "ver", "version", "with", "woman", "women", "xl",
};

static int compare_word(const char *word, sft_span text) {
    size_t len = strlen(word);
    int order = memcmp(word, text.data, len < text.len ? len : text.len);
    return order ? order : len < text.len ? -1 : len > text.len;
}

static bool in_table(const char *const *words, size_t count, sft_span text) {
    size_t low = 0, high = count;
    while (text.len > 0 && low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_word(words[middle], text);
        if (order == 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

#define IN_TABLE(words, text) in_table(words, SFTI_COUNT(words), text)

/* "blue hair", "2 girls", "4koma": tags that stand on pictures of anything. */
static bool generic_shape(sft_span tag) {
    static const char *const ends[] = {
        " hair", " eyes", " background", "girl", "girls", "boy", "boys", " breasts", " quality",
        " sleeves", " skirt", " shirt", " dress", " legwear", " footwear",
    };
    bool counted = tag.data[0] >= '0' && tag.data[0] <= '9';
    for (size_t i = 0; i < SFTI_COUNT(ends); i++)
        if (sfti_ends_with(tag, ends[i]) && (ends[i][0] == ' ' || counted)) return true;
    return false;
}

/* "year 2024" */
static bool is_year(sft_span plain) {
    uint64_t year;
    return sfti_begins(plain, "year ") && sfti_parse_uint(sfti_from(plain, 5), &year);
}

bool sfti_is_generic_tag(sft_span tag) {
    char key[SFTI_WORD_MOST];
    if (tag.len == 0 || tag.len > sizeof key) return false;
    sft_span plain = { key, sfti_word_key(tag, key) };
    if (sfti_begins(plain, "rating ") || sfti_begins(plain, "rating:") || is_year(plain))
        return true;
    return IN_TABLE(generic_tags, plain) || IN_TABLE(generic_tags, tag)
        || IN_TABLE(class_nouns, plain) || generic_shape(plain);
}

bool sfti_is_function_word(sft_span word) {
    return IN_TABLE(function_words, word);
}

bool sfti_is_common_word(sft_span word) {
    return IN_TABLE(function_words, word) || IN_TABLE(common_words, word);
}

bool sfti_is_class_noun(sft_span word) {
    return IN_TABLE(class_nouns, word);
}

static bool is_version(sft_span word) {
    size_t i = word.len > 1 && word.data[0] == 'v';
    for (size_t j = i; j < word.len; j++)
        if (word.data[j] < '0' || word.data[j] > '9') return false;
    return word.len > i;
}

bool sfti_is_weak_name(sft_span word) {
    return is_version(word) || IN_TABLE(weak_names, word);
}

bool sfti_is_plain_word(sft_span word) {
    bool vowel = false;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.data[i];
        if ((c >= '0' && c <= '9') || c == '_') return false;
        vowel = vowel || memchr("aeiouyAEIOUY", c, 12) || (unsigned char)c >= 0x80;
    }
    return vowel;
}
