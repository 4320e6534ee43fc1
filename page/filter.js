// Filters, and how many models each choice would show. Columns hold indices into dictionaries, so
// that a count is one pass over an array.
import { FLAG } from './data.js';

/**
 * @typedef {object} Filters
 * @property {Record<string, string[]>} only by key of a facet: ids, any of them
 * @property {string[]} folder paths, with all below them
 * @property {string[]} tag
 * @property {boolean} all whether all tags must be there, not any
 * @property {string[]} not tags that must not be there
 * @property {Record<string, boolean>} is by id of a trait: must be so, or must not
 *
 * @typedef {object} Facet
 * @property {string} key
 * @property {string} title
 * @property {string[]} ids
 * @property {string[]} labels
 * @property {Int32Array} column index into ids
 *
 * @typedef {object} Folder
 * @property {string} path
 * @property {string} label
 * @property {number} parent index of a folder, -1 of the outermost
 * @property {number} depth
 *
 * @typedef {object} Facets
 * @property {number} count
 * @property {Facet[]} list
 * @property {Folder[]} folders parents before children
 * @property {Int32Array} place index into folders, by model
 * @property {string[]} tags
 * @property {Int32Array} tagStart of model i, tags tagStart[i] to tagStart[i + 1] of tagList
 * @property {Int32Array} tagList
 * @property {Uint16Array} traits bits, by model
 *
 * @typedef {object} Counts
 * @property {Uint8Array} mask 1 for each model that is shown
 * @property {number} total
 * @property {Record<string, Int32Array>} only by key of a facet, by id
 * @property {Int32Array} folder
 * @property {Int32Array} tag
 * @property {Int32Array} is
 */

export const TRAITS = [
    { id: 'words', label: 'has trigger words' }, { id: 'preview', label: 'has a preview' },
    { id: 'site', label: 'has a CivitAI page' }, { id: 'hashed', label: 'hash is known' },
    { id: 'copies', label: 'duplicates' }, { id: 'conflicts', label: 'facts conflict' },
    { id: 'differs', label: 'digest differs' }, { id: 'broken', label: 'cannot be read' },
    { id: 'foreign', label: 'other formats' }, { id: 'code', label: 'would run code' },
];

const SIZES = [['10MB', 'up to 10 MB', 1e7], ['50MB', '10 to 50 MB', 5e7], ['200MB', '50 to 200 MB', 2e8], ['1GB', '200 MB to 1 GB', 1e9],
    ['4GB', '1 to 4 GB', 4e9], ['10GB', '4 to 10 GB', 1e10], ['more', 'over 10 GB', Infinity]];

/** @returns {Filters} */
export function noFilters() {
    return { only: {}, folder: [], tag: [], all: false, not: [], is: {} };
}

/** Number of choices. @param {Filters} filters */
export function filterCount(filters) {
    return Object.values(filters.only).reduce((sum, ids) => sum + ids.length, 0) + filters.folder.length
        + filters.tag.length + filters.not.length + Object.keys(filters.is).length;
}

/**
 * @param {string} key
 * @param {string} title
 * @param {[string, string][]} entries
 * @param {ArrayLike<number>} column -1 where it is unknown
 * @returns {Facet}
 */
function facetOf(key, title, entries, column) {
    /* Models that cannot be read are as unknown as those of which no more is known. */
    const id = entries.findIndex(([one]) => one === 'unknown'), unknown = id < 0 ? entries.length : id;
    return { key, title, ids: [...entries.map(([id]) => id), '?'], labels: [...entries.map(([, label]) => label), 'unknown'],
        column: Int32Array.from(column, (k) => k >= 0 && k < entries.length ? k : unknown) };
}

/** The folders with those between them, parents first, and the place of each. @param {string[]} paths */
function folderTree(paths) {
    /** @type {Folder[]} */
    const folders = [];
    /** @type {Map<string, number>} */
    const known = new Map();
    const places = paths.map((path) => {
        let parent = -1, at = '';
        for (const [depth, label] of (path === '' ? [''] : path.split('/')).entries()) {
            at = depth ? `${at}/${label}` : label;
            let index = known.get(at);
            if (index === undefined) {
                index = folders.push({ path: at, label, parent, depth }) - 1;
                known.set(at, index);
            }
            parent = index;
        }
        return parent;
    });
    return { folders, places };
}

/** @param {import('./data.js').Catalog} catalog @returns {Facets} */
export function makeFacets(catalog) {
    const { rows, count } = catalog;
    const plain = (/** @type {string[]} */ list) => list.map((one) => /** @type {[string, string]} */ ([one, one]));
    const years = [...new Set(rows.date.map((date) => date.slice(0, 4)).filter((year) => /^\d{4}$/.test(year)))].sort().reverse();
    const yearOf = new Map(years.map((year, k) => [year, k]));
    const list = [
        facetOf('kind', 'Kind', rows.dict.kind, rows.kind),
        facetOf('base', 'Base model', rows.dict.base, rows.base),
        facetOf('arch', 'Architecture', rows.dict.architecture, rows.architecture),
        facetOf('precision', 'Precision', rows.dict.precision, rows.precision),
        facetOf('size', 'Size', SIZES.map(([id, label]) => [String(id), String(label)]),
            Array.from(rows.bytes, (bytes) => bytes < 0 ? -1 : SIZES.findIndex(([, , most]) => bytes <= Number(most)))),
        facetOf('year', 'Published', plain(years), rows.date.map((date) => yearOf.get(date.slice(0, 4)) ?? -1)),
        facetOf('licence', 'Licence', plain(rows.dict.licence), rows.licence),
    ];
    const { folders, places } = folderTree(rows.dict.folder);
    const tagStart = new Int32Array(count + 1), traits = new Uint16Array(count);
    for (let i = 0; i < count; i++) {
        tagStart[i + 1] = tagStart[i] + rows.tags[i].length;
        const flags = rows.flags[i];
        const bits = [rows.word_count[i] > 0, rows.preview[i] !== 0, flags & FLAG.site, flags & FLAG.hashed, rows.copies[i] >= 0,
            flags & FLAG.conflicts, flags & FLAG.differs, flags & FLAG.broken, flags & FLAG.foreign, flags & FLAG.code];
        for (let k = 0; k < bits.length; k++) if (bits[k]) traits[i] |= 1 << k;
    }
    const tagList = new Int32Array(tagStart[count]);
    for (let i = 0; i < count; i++) tagList.set(rows.tags[i], tagStart[i]);
    return { count, list, folders, place: Int32Array.from(rows.folder, (k) => places[k] ?? -1), tags: rows.dict.tag, tagStart, tagList, traits };
}

/** 1 for each of the names that is chosen. @param {string[]} names @param {string[]} chosen */
function chosenOf(names, chosen) {
    const set = new Set(chosen);
    return Uint8Array.from(names, (name) => +set.has(name));
}

/* Bits of `fails`: which facet hides a model. A facet's counts leave its own bit out. */
const FOLDER = 1 << 20, TAG = 1 << 21, NOT = 1 << 22;

/**
 * @param {Facets} facets
 * @param {Filters} filters
 * @param {Uint8Array} found
 */
function failsOf(facets, filters, found) {
    const { count, tagStart, tagList } = facets;
    const fails = new Uint32Array(count);
    for (let i = 0; i < count; i++) if (!found[i]) fails[i] = 1 << 31;
    facets.list.forEach((facet, k) => {
        if (!filters.only[facet.key]?.length) return;
        const chosen = chosenOf(facet.ids, filters.only[facet.key]), { column } = facet;
        for (let i = 0; i < count; i++) if (!chosen[column[i]]) fails[i] |= 1 << k;
    });
    if (filters.folder.length) {
        const chosen = chosenOf(facets.folders.map((one) => one.path), filters.folder);
        facets.folders.forEach((one, k) => { if (one.parent >= 0) chosen[k] |= chosen[one.parent]; });
        for (let i = 0; i < count; i++) if (!chosen[facets.place[i]]) fails[i] |= FOLDER;
    }
    if (filters.tag.length || filters.not.length) {
        const tag = chosenOf(facets.tags, filters.tag), not = chosenOf(facets.tags, filters.not);
        const needed = filters.all ? filters.tag.length : Math.min(1, filters.tag.length);
        for (let i = 0; i < count; i++) {
            let having = 0;
            for (let k = tagStart[i]; k < tagStart[i + 1]; k++) {
                having += tag[tagList[k]];
                if (not[tagList[k]]) fails[i] |= NOT;
            }
            if (having < needed) fails[i] |= TAG;
        }
    }
    TRAITS.forEach(({ id }, k) => {
        if (filters.is[id] === undefined) return;
        const wanted = +filters.is[id];
        for (let i = 0; i < count; i++) if ((facets.traits[i] >> k & 1) !== wanted) fails[i] |= 1 << k + 8;
    });
    return fails;
}

/**
 * What the filters leave of the models that the search found, and counts for every choice: of the
 * models that all other facets leave.
 * @param {Facets} facets
 * @param {Filters} filters
 * @param {Uint8Array} found
 * @returns {Counts}
 */
export function applyFilters(facets, filters, found) {
    const { count, tagStart, tagList } = facets;
    const fails = failsOf(facets, filters, found);
    const mask = new Uint8Array(count);
    let total = 0;
    for (let i = 0; i < count; i++) if (!fails[i]) { mask[i] = 1; total++; }
    /** @type {Record<string, Int32Array>} */
    const only = {};
    facets.list.forEach(({ key, ids, column }, k) => {
        const counts = only[key] = new Int32Array(ids.length), others = ~(1 << k);
        for (let i = 0; i < count; i++) if (!(fails[i] & others)) counts[column[i]]++;
    });
    const folder = new Int32Array(facets.folders.length), tag = new Int32Array(facets.tags.length), is = new Int32Array(TRAITS.length);
    const notFolder = ~FOLDER, notTag = filters.all ? -1 : ~TAG;
    for (let i = 0; i < count; i++) {
        if (!(fails[i] & notFolder) && facets.place[i] >= 0) folder[facets.place[i]]++;
        if (!(fails[i] & notTag)) for (let k = tagStart[i]; k < tagStart[i + 1]; k++) tag[tagList[k]]++;
    }
    for (let k = folder.length - 1; k >= 0; k--)
        if (facets.folders[k].parent >= 0) folder[facets.folders[k].parent] += folder[k];
    for (let k = 0; k < TRAITS.length; k++) {
        const others = ~(1 << k + 8);
        let n = 0;
        for (let i = 0; i < count; i++) n += (fails[i] & others) ? 0 : facets.traits[i] >> k & 1;
        is[k] = n;
    }
    return { mask, total, only, folder, tag, is };
}
