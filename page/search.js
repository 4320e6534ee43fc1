// Search: every word must be somewhere in a model's text, in the order of any field.
import { folded } from './text.js';

/**
 * @typedef {object} Term
 * @property {string} text folded
 * @property {string} field "" for all
 * @property {boolean} not
 * @property {Uint8Array} [hits] of a field with a dictionary: which of its entries match
 *
 * @typedef {object} Haystack
 * @property {import('./data.js').Catalog} catalog
 * @property {string[]} texts by model, folded: all that the rows have
 * @property {string[]} more by model, folded: description and whatever else the details have
 * @property {string[]} words by model, folded: all trigger words; those of the rows until then
 * @property {number} done how many models have their `more`
 */

/** Operators, and what they look at. */
export const FIELDS = /** @type {Record<string, string>} */ ({
    base: 'base model', kind: 'kind', arch: 'architecture', word: 'trigger words', tag: 'tags', folder: 'folder',
    by: 'author', licence: 'licence', name: 'name and file name', hash: 'hash, from its start',
});
/** @type {Record<string, 'base' | 'kind' | 'architecture' | 'folder' | 'author' | 'licence' | 'tag'>} */
const DICTIONARY = { base: 'base', kind: 'kind', arch: 'architecture', folder: 'folder', by: 'author', licence: 'licence', tag: 'tag' };
/** @type {Record<string, string>} */
const ALIASES = { architecture: 'arch', words: 'word', tags: 'tag', author: 'by', license: 'licence', path: 'folder', file: 'name', sha256: 'hash' };

/**
 * Words, -word, "a phrase", field:word, field:"a phrase".
 * @param {string} text
 * @returns {Term[]}
 */
export function parseQuery(text) {
    /** @type {Term[]} */
    const terms = [];
    for (const [, minus, name, phrase, word] of folded(text).matchAll(/(-?)(?:([a-z0-9]+):)?(?:"([^"]*)"?|([^\s"]+))/g)) {
        const field = ALIASES[name] ?? name ?? '';
        const value = (phrase ?? word).trim();
        if (field && !Object.hasOwn(FIELDS, field)) terms.push({ text: `${name}:${value}`, field: '', not: !!minus });
        else if (value) terms.push({ text: value, field, not: !!minus });
    }
    return terms;
}

/** @param {string[]} parts */
function joined(parts) {
    return folded(parts.join('\n'));
}

/** Text of every model, from the rows. @param {import('./data.js').Catalog} catalog @returns {Haystack} */
export function makeHaystack(catalog) {
    const { rows, count } = catalog;
    const entry = (/** @type {Entry[]} */ list) => list.map(([id, label]) => joined([label, id]));
    const [kind, base, architecture] = [entry(rows.dict.kind), entry(rows.dict.base), entry(rows.dict.architecture)];
    const [folder, tag, licence, author] = [rows.dict.folder, rows.dict.tag, rows.dict.licence, rows.dict.author].map((list) => list.map(folded));
    const texts = new Array(count), words = new Array(count);
    for (let i = 0; i < count; i++) {
        words[i] = rows.words[i].length ? joined(rows.words[i]) : '';
        let text = `${joined([rows.name[i], rows.file[i], rows.what[i]])}\n${words[i]}\n${folder[rows.folder[i]] ?? ''}\n${kind[rows.kind[i]] ?? ''}\n${base[rows.base[i]] ?? ''}\n${architecture[rows.architecture[i]] ?? ''}\n${author[rows.author[i]] ?? ''}\n${licence[rows.licence[i]] ?? ''}`;
        for (const k of rows.tags[i]) text += '\n' + tag[k];
        texts[i] = text;
    }
    return { catalog, texts, words, more: new Array(count).fill(''), done: 0 };
}

/**
 * Adds the details of the next models to the haystack.
 * @param {Haystack} haystack
 * @param {number} upto at most this many models
 * @returns {boolean} whether all are in
 */
export function addDetails(haystack, upto) {
    const { catalog, more, words } = haystack;
    const end = Math.min(catalog.count, haystack.done + upto);
    for (let i = haystack.done; i < end; i++) {
        const info = catalog.more(i);
        const model = info.model;
        const all = info.trigger_words?.map((word) => word.text) ?? [];
        more[i] = joined([model.description?.value, model.version_name?.value, model.version_description?.value, model.usage_hint?.value,
            info.file && info.path, ...(info.trigger_words ?? []).flatMap((word) => [word.text, word.prompt]),
            ...(info.frequent_tags ?? []).map((tag) => tag.tag)].filter((part) => typeof part === 'string'));
        if (all.length > catalog.rows.words[i].length) words[i] = joined(all);
    }
    haystack.done = end;
    return end === catalog.count;
}

/** @param {string} hashes "sha256 autov3", their beginnings @param {string} text */
function startsHash(hashes, text) {
    return hashes !== '' && hashes.split(' ').some((hash) => hash !== '' && (hash.startsWith(text) || text.length > hash.length && text.startsWith(hash)));
}

/** Looks the terms up in the dictionaries, once a query. @param {Haystack} haystack @param {Term[]} query */
function prepare(haystack, query) {
    const { dict } = haystack.catalog.rows;
    for (const term of query) {
        const name = DICTIONARY[term.field];
        if (!name || term.hits) continue;
        term.hits = Uint8Array.from(/** @type {(string | Entry)[]} */ (dict[name]), (one) => +folded(typeof one === 'string' ? one : one.join('\n')).includes(term.text));
    }
}

/**
 * @param {Haystack} haystack
 * @param {Term} term
 * @param {number} i
 */
function has(haystack, term, i) {
    const { rows } = haystack.catalog;
    if (term.hits) {
        const hits = term.hits;
        if (term.field === 'tag') return rows.tags[i].some((k) => hits[k]);
        return hits[/** @type {any} */ (rows)[DICTIONARY[term.field]][i]] === 1;
    }
    if (term.field === 'word') return haystack.words[i].includes(term.text);
    if (term.field === 'hash') return startsHash(rows.hash[i], term.text);
    if (term.field === 'name') return joined([rows.name[i], rows.file[i]]).includes(term.text);
    return haystack.texts[i].includes(term.text) || haystack.more[i].includes(term.text)
        || term.text.length >= 6 && /^[0-9a-f]+$/.test(term.text) && startsHash(rows.hash[i], term.text);
}

/**
 * Whether a model matches all terms.
 * @param {Haystack} haystack
 * @param {Term[]} query
 * @param {number} i
 */
export function matches(haystack, query, i) {
    prepare(haystack, query);
    return query.every((term) => has(haystack, term, i) !== term.not);
}

/** 1 for every model that matches. @param {Haystack} haystack @param {Term[]} query */
export function search(haystack, query) {
    const found = new Uint8Array(haystack.catalog.count).fill(1);
    prepare(haystack, query);
    for (const term of query)
        for (let i = 0; i < found.length; i++)
            if (found[i] && has(haystack, term, i) === term.not) found[i] = 0;
    return found;
}

/**
 * A result with those models first that have all words in their name or file name.
 * @param {Haystack} haystack
 * @param {Term[]} query
 * @param {Uint32Array} order
 */
export function namedFirst(haystack, query, order) {
    const words = query.filter((term) => !term.field && !term.not).map((term) => term.text);
    if (!words.length) return order;
    const isNamed = (/** @type {number} */ i) => {
        const text = haystack.texts[i], name = text.slice(0, text.indexOf('\n', text.indexOf('\n') + 1));
        return words.every((word) => name.includes(word));
    };
    return Uint32Array.from([...order.filter(isNamed), ...order.filter((i) => !isNamed(i))]);
}
