// The data of a catalogue: columns for the rows, and details that are parsed when first asked for.
import { stars } from './prefs.js';

/** What flags says. */
export const FLAG = { conflicts: 1, hashed: 2, site: 4, differs: 8, broken: 16, foreign: 32, code: 64, favourite: 128, noted: 256 };

const NUMBERS = /** @type {const} */ (['folder', 'kind', 'base', 'architecture', 'precision', 'licence', 'author', 'bytes', 'parameters', 'rank',
    'modified', 'word_count', 'copies', 'flags', 'rating', 'picture_count']);
const COLUMNS = /** @type {const} */ (['name', 'file', 'date', 'hash', 'words', 'tags', 'preview', 'what', ...NUMBERS]);

/**
 * @typedef {object} Catalog
 * @property {Rows} rows columns of numbers are typed arrays; `what` is text only
 * @property {number} count
 * @property {(i: number) => string} path folder and file name
 * @property {(i: number) => string} stem file name without its extension
 * @property {(i: number) => string} name of the model, else its stem
 * @property {(path: string) => number} find row of a path, -1 if there is none
 * @property {(i: number) => boolean} isStarred by the files, or in this page
 * @property {(i: number) => Info} more
 * @property {(picture: Picture) => string} picture address of a picture, embedded or not; "" if missing
 */

/** @param {string} what */
function damaged(what) {
    return new Error(`The data of this page is damaged: ${what}. Write the catalogue again.`);
}

/** @param {string | null | undefined} text @returns {Rows} */
function parseRows(text) {
    let rows;
    try {
        rows = JSON.parse(text || 'null');
    } catch {
        throw damaged('the rows are cut off or not JSON');
    }
    if (rows?.format !== 1) throw damaged(`expected rows of format 1, found ${String(rows?.format ?? 'none')}`);
    for (const column of COLUMNS)
        if (!Array.isArray(rows[column]) || rows[column].length !== rows.count)
            throw damaged(`expected ${rows.count} items in column ${column}, found ${rows[column]?.length ?? 'none'}`);
    for (const name of ['kind', 'base', 'architecture', 'precision', 'folder', 'tag', 'licence', 'author'])
        if (!Array.isArray(rows.dict?.[name])) throw damaged(`no dictionary ${name}`);
    return rows;
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
    if (!Array.isArray(value))
        return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, key === 'source' && typeof one === 'number' ? source(one) : expand(one, source, facts)]));
    if (!facts || typeof value[1] !== 'number' || typeof value[2] !== 'number') return value.map((one) => expand(one, source, false));
    /** @type {any} */
    const [first, ...others] = [value, ...value[3] ?? []].map(([one, place, trust]) => ({ value: one, source: source(place), trust }));
    return { ...first, others };
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
    const [kind, ...items] = value, whole = items.map((one) => unpack(one, part));
    return kind < 0 ? whole : Object.fromEntries((part.shapes?.[kind] ?? []).map((key, k) => [key, whole[k]]));
}

/**
 * Reads the page's data; throws an Error whose message is for people.
 * @param {(id: string) => string | null | undefined} [read] text of a block
 * @returns {Catalog}
 */
export function openCatalog(read = (id) => document.getElementById(id)?.textContent) {
    const rows = parseRows(read('rows')), { count } = rows, columns = /** @type {any} */ (rows);
    for (const name of NUMBERS) columns[name] = Float64Array.from(columns[name]);
    for (let i = 0; i < count; i++)
        if (typeof columns.what[i] === 'number') columns.what[i] = columns.what[columns.what[i]] ?? '';
    rows.error ??= {};
    rows.fault ??= {};

    /** Blocks that were parsed lately. @type {Map<string, any>} */
    const kept = new Map();
    /** @param {string} id */
    function block(id) {
        if (kept.has(id)) return kept.get(id);
        if (kept.size > 15) kept.clear();
        let value = null;
        try {
            value = JSON.parse(read(id) ?? 'null');
        } catch { /* cut off: as if it were missing */ }
        kept.set(id, value);
        return value;
    }
    const path = (/** @type {number} */ i) => [rows.dict.folder[rows.folder[i]], rows.file[i]].filter(Boolean).join('/'),
        stem = (/** @type {number} */ i) => rows.file[i].replace(/(?!^)\.[^.]*$/, '');
    return {
        rows, count, path, stem,
        isStarred: (i) => (stars.size > 0 ? stars.get(path(i)) : undefined) ?? (rows.flags[i] & FLAG.favourite) > 0,
        name: (i) => rows.name[i] || stem(i),
        find: (text) => rows.file.findIndex((file, i) => text.endsWith(file) && path(i) === text),
        more(i) {
            const part = block(`more-${Math.floor(i / rows.block)}`), packed = part?.models?.[i % rows.block],
                source = (/** @type {number} */ k) => (part.sources?.[k] ?? '').replaceAll('*', () => stem(i));
            /** @type {any} */
            const info = {};
            for (const [key, value] of Object.entries((part?.shapes ? unpack(packed, part) : packed) ?? {})) info[key] = expand(value, source, key === 'model');
            if (!packed) info.error = { code: '', message: 'The details of this model are missing from the page.' };
            info.path ??= path(i);
            info.model ??= {};
            if (rows.error[i]) info.error ??= { code: '', message: rows.error[i] };
            if (rows.preview[i]) info.pictures ??= [rows.preview[i]];
            return info;
        },
        picture({ href }) {
            return typeof href === 'number' ? read(`embed-${href}`)?.slice(1, -1) ?? '' : href; // without its quotes
        },
    };
}
