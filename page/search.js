// Search: every word must be somewhere in a model's text, in the order of any field.
import { folded } from './text.js';

/**
 * @typedef {object} Term
 * @property {string} text folded
 * @property {string} field "" for all
 * @property {boolean} not
 *
 * @typedef {object} Haystack
 * @property {import('./data.js').Catalog} catalog
 * @property {Record<string, string[]>} dict the dictionaries, folded
 * @property {string[]} names by model, folded: name and file name
 * @property {string[]} texts by model, folded: all that the rows have
 * @property {string[]} more by model, folded: description and whatever else the details have
 * @property {string[]} words by model, folded: all trigger words; those of the rows until then
 * @property {number} done how many models have their `more`
 */

/** Operators. */
export const FIELDS = ['base', 'kind', 'arch', 'word', 'tag', 'folder', 'by', 'licence', 'name', 'hash'];
/** What a query may have, for people. */
export const SEARCH_HELP = `Search: words, -word, "a phrase", the start of a hash; in one field: ${FIELDS.join(': ')}:`;
/** Fields whose dictionary has another name, and other names of fields. @type {Record<string, string>} */
const DICTIONARY = { arch: 'architecture', by: 'author' };
/** @type {Record<string, string>} */
const ALIASES = { words: 'word', tags: 'tag', author: 'by', license: 'licence', path: 'folder' };
const SEARCHED = /** @type {const} */ (['folder', 'kind', 'base', 'architecture', 'author', 'licence']);

/**
 * Words, -word, "a phrase", field:word, field:"a phrase".
 * @param {string} text
 * @returns {Term[]}
 */
export function parseQuery(text) {
    /** @type {Term[]} */
    const terms = [];
    for (const [, minus, name, phrase, word] of folded(text).matchAll(/(-?)(?:([a-z0-9]+):)?(?:"([^"]*)"?|([^\s"]+))/g)) {
        const field = ALIASES[name] ?? name ?? '',
            value = (phrase ?? word).trim();
        if (field && !FIELDS.includes(field)) terms.push({ text: `${name}:${value}`, field: '', not: !!minus });
        else if (value) terms.push({ text: value, field, not: !!minus });
    }
    return terms;
}

/** @param {(string | undefined)[]} parts */
const joined = (parts) => folded(parts.join('\n'));

/** Text of every model, from the rows. @param {import('./data.js').Catalog} catalog @returns {Haystack} */
export function makeHaystack(catalog) {
    const { rows, count } = catalog, words = rows.words.map(joined),
        dict = Object.fromEntries(Object.entries(rows.dict).map(([key, list]) => [key, list.map((one) => joined([one].flat()))])),
        names = rows.name.map((name, i) => joined([name, rows.file[i]])),
        texts = words.map((text, i) => `${names[i]}\n${joined([rows.what[i]])}\n${text}\n${
            SEARCHED.map((key) => dict[key][rows[key][i]]).join('\n')}\n${rows.tags[i].map((k) => dict.tag[k]).join('\n')}`);
    return { catalog, dict, names, texts, words, more: new Array(count).fill(''), done: 0 };
}

/**
 * Adds the details of the next models to the haystack.
 * @param {Haystack} haystack
 * @param {number} upto at most this many models
 * @returns {boolean} whether all are in
 */
export function addDetails(haystack, upto) {
    const { catalog, more, words } = haystack, end = Math.min(catalog.count, haystack.done + upto);
    for (let i = haystack.done; i < end; i++) {
        const { model, file, path, trigger_words: all = [], frequent_tags: tags = [] } = catalog.more(i);
        more[i] = joined([...['description', 'version_name', 'version_description', 'usage_hint'].map((key) => model[key]?.value), file && path,
            ...all.flatMap((word) => [word.text, word.prompt]), ...tags.map((tag) => tag.tag), ...(model.notes ?? []).map((note) => note.text)].filter((part) => typeof part === 'string'));
        if (all.length > catalog.rows.words[i].length) words[i] = joined(all.map((word) => word.text));
    }
    haystack.done = end;
    return end === catalog.count;
}

/**
 * What tells whether a model matches a term.
 * @param {Haystack} haystack
 * @param {Term} term
 * @returns {(i: number) => boolean}
 */
function tester({ catalog: { rows }, dict, names, texts, words, more }, { text, field }) {
    const column = DICTIONARY[field] ?? field, hits = dict[column]?.map((one) => one.includes(text));
    /* The row has the beginnings of its hashes: "sha256 autov3". */
    const startsHash = (/** @type {number} */ i) => rows.hash[i].split(' ').some((hash) => hash && (hash.startsWith(text) || text.startsWith(hash)));
    if (field === 'tag') return (i) => rows.tags[i].some((k) => hits[k]);
    if (hits) return (i) => hits[/** @type {any} */ (rows)[column][i]] === true;
    if (field === 'word') return (i) => words[i].includes(text);
    if (field === 'hash') return startsHash;
    if (field === 'name') return (i) => names[i].includes(text);
    const isHash = /^[0-9a-f]{6,}$/.test(text);
    return (i) => texts[i].includes(text) || more[i].includes(text) || isHash && startsHash(i);
}

/** 1 for every model that matches. @param {Haystack} haystack @param {Term[]} query */
export function search(haystack, query) {
    const found = new Uint8Array(haystack.catalog.count).fill(1);
    for (const term of query) {
        const has = tester(haystack, term);
        for (let i = 0; i < found.length; i++)
            if (found[i] && has(i) === term.not) found[i] = 0;
    }
    return found;
}

/** Those first whose name or file name has all words. @param {Haystack} haystack @param {Term[]} query @param {Uint32Array} order */
export function namedFirst({ names }, query, order) {
    const words = query.filter((term) => !term.field && !term.not),
        isNamed = (/** @type {number} */ i) => words.every((term) => names[i].includes(term.text));
    return words.length ? Uint32Array.from([...order.filter(isNamed), ...order.filter((i) => !isNamed(i))]) : order;
}
