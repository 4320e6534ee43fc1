// The data of a catalogue: columns for the rows, and details that are parsed when first asked for.

/** What flags says. */
export const FLAG = { conflicts: 1, hashed: 2, site: 4, differs: 8, broken: 16, foreign: 32, code: 64 };

const TEXT_COLUMNS = /** @type {const} */ (['name', 'file', 'date', 'hash']);
const LIST_COLUMNS = /** @type {const} */ (['words', 'tags', 'preview', 'what']);
const NUMBER_COLUMNS = /** @type {const} */ (['folder', 'kind', 'base', 'architecture', 'precision', 'licence', 'author',
    'rank', 'modified', 'word_count', 'copies', 'flags', 'picture_count']);
const WIDE_COLUMNS = /** @type {const} */ (['bytes', 'parameters']);
const DICTIONARIES = /** @type {const} */ (['kind', 'base', 'architecture', 'precision', 'folder', 'tag', 'licence', 'author']);

/**
 * @typedef {object} Catalog
 * @property {Rows} rows columns of numbers are typed arrays; `what` is text only
 * @property {number} count
 * @property {(i: number) => string} path folder and file name
 * @property {(i: number) => string} stem file name without its extension
 * @property {(path: string) => number} find row of a path, -1 if there is none
 * @property {(i: number) => Info} more
 * @property {(picture: Picture) => string} picture address of a picture, embedded or not; "" if missing
 */

/** @param {string} id */
function blockText(id) {
    return document.getElementById(id)?.textContent ?? null;
}

/** @param {string} what */
function damaged(what) {
    return new Error(`The data of this page is damaged: ${what}. Write the catalogue again.`);
}

/** @param {string | null} text @returns {Rows} */
function parseRows(text) {
    if (!text) throw damaged('it has no rows');
    let rows;
    try {
        rows = JSON.parse(text);
    } catch {
        throw damaged('the rows are cut off or not JSON');
    }
    if (rows?.format !== 1) throw damaged(`expected format 1, found ${String(rows?.format)}`);
    if (!Number.isInteger(rows.count) || rows.count < 0) throw damaged('no count of models');
    for (const column of [...TEXT_COLUMNS, ...LIST_COLUMNS, ...NUMBER_COLUMNS, ...WIDE_COLUMNS])
        if (rows[column]?.length !== rows.count)
            throw damaged(`expected ${rows.count} items in column ${column}, found ${rows[column]?.length ?? 'none'}`);
    for (const name of DICTIONARIES)
        if (!Array.isArray(rows.dict?.[name])) throw damaged(`no dictionary ${name}`);
    return rows;
}

/** @param {string} file */
function fileStem(file) {
    return file.replace(/(?!^)\.[^.]*$/, '');
}

/**
 * Facts of `model` and sources, spelled out. Values lie at most a few levels deep.
 * @param {any} value
 * @param {(source: number) => string} source
 * @param {boolean} facts whether arrays may be facts
 * @returns {any}
 */
function expand(value, source, facts) {
    if (!value || typeof value !== 'object') return value;
    if (Array.isArray(value)) {
        if (!facts || typeof value[1] !== 'number' || typeof value[2] !== 'number')
            return value.map((one) => expand(one, source, false));
        return { value: value[0], source: source(value[1]), trust: value[2],
            others: (value[3] ?? []).map((/** @type {any[]} */ other) => ({ value: other[0], source: source(other[1]), trust: other[2] })) };
    }
    return Object.fromEntries(Object.entries(value).map(([key, one]) =>
        [key, key === 'source' && typeof one === 'number' ? source(one) : expand(one, source, facts)]));
}

/**
 * A packed value (More in types.d.ts).
 * @param {any} value
 * @param {More} part
 * @returns {any}
 */
function unpack(value, part) {
    if (typeof value === 'string' && value[0] === '~')
        return value[1] === '~' ? value.slice(1) : unpack(part.shared?.[Number(value.slice(1))], part);
    if (!Array.isArray(value)) return value;
    const [kind, ...items] = value;
    const whole = items.map((one) => unpack(one, part));
    return kind < 0 ? whole
        : Object.fromEntries((part.shapes?.[kind] ?? []).map((key, k) => [key, whole[k]]));
}

/**
 * @param {CompactInfo} compact
 * @param {string[]} sources
 * @param {string} stem
 * @returns {Info}
 */
export function expandInfo(compact, sources, stem) {
    const source = (/** @type {number} */ k) => (sources[k] ?? '').replaceAll('*', () => stem);
    return /** @type {any} */ (Object.fromEntries(Object.entries(compact).map(([key, value]) => [key, expand(value, source, key === 'model')])));
}

/** Parses blocks when asked for; keeps the last few. @param {(id: string) => string | null} read */
function makeBlocks(read) {
    /** @type {Map<string, any>} */
    const kept = new Map();
    return (/** @type {string} */ id) => {
        if (kept.has(id)) return kept.get(id);
        let value = null;
        try {
            value = JSON.parse(read(id) ?? 'null');
        } catch { /* cut off: as if it were missing */ }
        if (kept.size >= 16) kept.delete(/** @type {string} */ (kept.keys().next().value));
        kept.set(id, value);
        return value;
    };
}

/**
 * Reads the page's data; throws an Error whose message is for people.
 * @param {(id: string) => string | null} [read] text of a block
 * @returns {Catalog}
 */
export function openCatalog(read = blockText) {
    const rows = parseRows(read('rows'));
    const block = makeBlocks(read);
    const columns = /** @type {any} */ (rows);
    for (const name of NUMBER_COLUMNS) columns[name] = Int32Array.from(columns[name]);
    for (const name of WIDE_COLUMNS) columns[name] = Float64Array.from(columns[name]);
    for (let i = 0; i < rows.count; i++)
        if (typeof columns.what[i] === 'number') columns.what[i] = columns.what[columns.what[i]] ?? '';
    rows.error ??= {};
    /** @type {Map<string, number> | undefined} */
    let places;

    const path = (/** @type {number} */ i) => {
        const folder = rows.dict.folder[rows.folder[i]];
        return folder ? `${folder}/${rows.file[i]}` : rows.file[i];
    };
    const stem = (/** @type {number} */ i) => fileStem(rows.file[i]);
    return {
        rows, count: rows.count, path, stem,
        find(text) {
            if (!places) {
                places = new Map();
                for (let i = 0; i < rows.count; i++) places.set(path(i), i);
            }
            return places.get(text) ?? -1;
        },
        more(i) {
            const size = rows.block || 256;
            const part = block(`more-${Math.floor(i / size)}`);
            const packed = part?.models?.[i % size];
            const compact = part?.shapes ? unpack(packed, part) : packed;
            const info = compact ? expandInfo(compact, part.sources ?? [], stem(i))
                : /** @type {Info} */ ({ error: { code: '', message: 'The details of this model are missing from the page.' } });
            info.path ??= path(i);
            info.model ??= {};
            if (rows.error[i]) info.error ??= { code: '', message: rows.error[i] };
            if (!info.pictures && rows.preview[i]) info.pictures = [/** @type {Picture} */ (rows.preview[i])];
            return info;
        },
        picture(picture) {
            if (typeof picture.href !== 'number') return picture.href;
            return read(`embed-${picture.href}`)?.slice(1, -1) ?? ''; // without its quotes
        },
    };
}
