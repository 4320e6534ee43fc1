/* The data in a page: what `safetensors catalog` writes (cli/catalog) and the scripts read. Checked
 * by tsc; a test compares what the command writes with it.
 *
 * Data lies in <script type="application/json"> blocks, with < > & as \u003c \u003e \u0026:
 *   id="rows"      Rows, of a catalogue
 *   id="more-K"    More, of models K*block .. K*block+block-1
 *   id="embed-K"   string: embedded picture K as a data: URL, in either kind of page
 *   id="model"     ModelPage, of a page about one model
 * All text comes from strangers: it is shown by textContent only. Text that was cut ends in "…".
 * -1 in a column of numbers, "" in a column of texts: unknown. */

/** What an index into a dictionary stands for: an id as in info --json, and words for people. */
type Entry = [id: string, label: string];

/** One picture or video. href: relative to the page, percent-encoded, or of an embedded picture its
 * number. level: CivitAI's bits (PG 1, PG13 2, R 4, X 8, XXX 16, blocked 32), 0 unknown. */
interface Picture {
    href: string | number;
    video?: boolean;
    width?: number; height?: number;
    level?: number;
    bytes?: number;
    /** Why it is not shown: "too large", "outside the folder"; href is "" then. */
    why?: string;
}

/** The catalogue. Columns have `count` items, in natural order of paths. */
interface Rows {
    format: 1;
    title: string;
    id: string;        // 16 hexadecimal digits: names this catalogue in localStorage
    generator: string; // "libsafetensors 0.3.0"
    newest: string;    // date of the newest file, "2026-11-20"
    roots: string[];   // the folders, as they were given
    takes: string[];   // of an empty catalogue: how files in other formats end
    count: number;
    block: number;     // models in a more-K block: 256
    /* Dictionaries, most frequent first; an adapter's kind has its type ("adapter:lora", "LoRA");
     * folder in natural order, and relative to its root, with the root's name first if there are
     * several ("" is the root itself). */
    dict: {
        kind: Entry[]; base: Entry[]; architecture: Entry[]; precision: Entry[];
        folder: string[]; tag: string[]; licence: string[]; author: string[];
    };
    name: string[];    // of the model, else the file's stem; at most 256 bytes
    file: string[];    // file name, or folder name of a model in a folder
    folder: number[];
    kind: number[]; base: number[]; architecture: number[]; precision: number[];
    licence: number[]; author: number[];
    what: string[];    // "LoRA r16 for SDXL", as in `info -r`; in the file also the number of a row before
    bytes: number[];   // of its files
    parameters: number[];
    rank: number[];
    date: string[];    // published or trained: "2024-05-01"
    modified: number[]; // of the file, days since 1970
    words: string[][]; // trigger words as shown, at most 3 of at most 80 bytes; all are in More
    word_count: number[];
    tags: number[][];  // into dict.tag, at most 32
    hash: string[];    // first 12 digits of sha256 (recorded or computed), of autov3: "… …"
    /** Models with the same number have the same weights; -1: not known to have a copy. */
    copies: number[];
    /** Bits: 1 conflicts, 2 hashed, 4 has a CivitAI page, 8 a digest differs, 16 broken (error),
     * 32 another format than safetensors, 64 a loader of its format would run code, 128 a favourite,
     * 256 has facts of one's own. */
    flags: number[];
    rating: number[];  // 0 to 5 stars
    preview: (Picture | 0)[];
    picture_count: number[];
    /** The sentence of each broken model. Keys are row numbers. */
    error: Record<string, string>;
    /** Likewise what a card says of them: the name of an icon, and two words ("cut short"). */
    fault: Record<string, Entry>;
}

/** Details of up to `block` models. Facts are [value, source, trust, others]; sources are numbers
 * into `sources`, where "*" stands for the file name's stem. */
interface More {
    sources: string[];
    /* With shapes the models are packed: an object is [shape, values...], its keys are those of the
     * shape; any other list begins with -1; a text "~3" is shared[3], "~~x" is "~x". Objects
     * within are as they are. */
    shapes?: string[][];
    shared?: unknown[];
    models: CompactInfo[];
}
type CompactFact = [value: unknown, source: number, trust: number,
                    others?: [value: unknown, source: number, trust: number][]];

/** As `info --json` has it (docs/json-info.md), without what is null or empty, bounded; `source`
 * is a number and facts are CompactFact. data.js expands it to Info. */
type CompactInfo = Record<string, unknown>;

/** A fact as in info --json. */
interface Fact {
    value: string | number | boolean | string[];
    source: string;
    trust: number;
    others: { value: unknown; source: string; trust: number }[];
}

/** info --json of one model, as far as the page has it. Absent: null, empty or cut. */
interface Info {
    path: string;          // relative to the page's folder, for people: "loras/a.safetensors"
    error?: { code: string; message: string; hint?: string };
    file?: { bytes?: number; tensors?: number; parameters?: number;
             dtypes?: Record<string, { tensors: number; parameters: number; bytes: number }>;
             [key: string]: any };
    model: { components?: any[]; notes?: any[]; [key: string]: any }; // Facts, and what else docs/json-info.md lists
    adapter?: { components?: any[]; [key: string]: any };
    trigger_words?: { text: string; prompt: string; source: string; trust: number;
                      group?: number; folder?: string; coverage?: number;
                      words?: string[]; others?: any[] }[];
    prompts?: { a1111?: string; comfy?: string };
    frequent_tags?: { tag: string; count: number; coverage?: number }[];
    example_prompts?: Record<string, any>[];
    civitai?: Record<string, any>;    // url is rebuilt from the ids by the page
    links?: { url: string; source: string }[];
    training?: { datasets?: any[]; buckets?: any[]; [key: string]: any };
    merge?: { sources?: any[]; [key: string]: any };
    import?: { globals?: any[]; left_out?: any[]; branches?: any[]; [key: string]: any };
    hashes?: { recorded?: { algo: string; value: string; source: string }[];
               computed?: Record<string, string | null>;
               mismatches?: Record<string, any>[]; lookup_url?: string };
    sidecars?: { path: string; kind?: string; match?: string; error?: string }[];
    privacy?: { key: string; what: string }[];
    conflicts?: { field: string; candidates: { value: unknown; source: string; trust: number }[] }[];
    metadata?: Record<string, string>; // a page about one model: all; a catalogue: none
    metadata_keys?: string[];          // a catalogue: at most 32 keys
    pictures?: Picture[];              // all of them, if there are several
    cut?: string[];                    // members that were cut: "description", "tags", …
    files?: number;                    // in how many files it is, if not 1
}

/** A page about one model. Tensors are columns, in the order of the file. */
interface ModelPage {
    format: 1;
    title: string;
    id: string;
    generator: string;
    info: Info;
    count: number;
    /* Names share what they begin with: shared[i] characters (UTF-16) of the previous name, then
     * rest[i]. */
    shared: number[];
    rest: string[];
    dtypes: string[];     // dictionary
    dtype: number[];
    shapes: string[];     // dictionary: "4096,4096"; "" of a scalar
    shape: number[];
    bytes: number[];
    offset: number[];     // in its file
    files?: string[];     // names of the shards
    shard?: number[];
    /** With --deep: one array a value, in the order of the tensors; null: not computed. "NaN",
     * "Infinity" and "-Infinity" are texts. Histograms: [first, counts...] of magnitudes,
     * first = exponent of the lowest bin; bin k counts 2^(first+k) <= |x| < 2^(first+k+1). */
    stats?: {
        min: (number | string)[]; max: (number | string)[]; mean: (number | string)[];
        std: (number | string)[]; zeros: number[]; nan: number[]; inf: number[];
        histogram: number[][];
    };
    /** Of an adapter, by module. With --deep: Frobenius norm of what it adds at strength 1, and
     * singular values in hundredths of the greatest, at most 16 of them. */
    norms?: { module: string; method?: string; rank?: number; norm?: number | string; spectrum?: number[] }[];
    adapter_error?: string; // why it cannot be read as one
}
