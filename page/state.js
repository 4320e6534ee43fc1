// What the page shows, in the URL's fragment: a bookmark or a link brings it back.
import { noFilters, TRAITS } from './filter.js';
import { ORDERS } from './sort.js';

/**
 * @typedef {object} State
 * @property {string} q
 * @property {import('./filter.js').Filters} filters
 * @property {string} order key of ORDERS
 * @property {boolean} reverse
 * @property {string} open path of the model that is open, "" if none
 */

const FACETS = ['kind', 'base', 'arch', 'precision', 'size', 'year', 'licence'];
const MOST = 64;

/** @returns {State} */
export function emptyState() {
    return { q: '', filters: noFilters(), order: 'name', reverse: false, open: '' };
}

/**
 * What a fragment says; what it cannot mean is ignored.
 * @param {string} fragment with or without #
 * @returns {State}
 */
export function parseState(fragment) {
    const state = emptyState();
    const { filters } = state;
    if (fragment.length > 16384) return state;
    const items = new URLSearchParams(fragment.replace(/^#/, ''));
    const texts = (/** @type {string} */ key) => [...new Set(items.getAll(key).filter((text) => text && text.length <= 1024))].slice(0, MOST);
    state.q = texts('q')[0] ?? '';
    state.open = texts('m')[0] ?? '';
    for (const key of FACETS)
        if (items.has(key)) filters.only[key] = texts(key);
    filters.folder = items.getAll('folder').filter((text) => text.length <= 4096).slice(0, MOST);
    filters.tag = texts('tag');
    filters.not = texts('-tag').filter((tag) => !filters.tag.includes(tag));
    filters.all = items.get('tags') === 'all';
    for (const text of texts('is')) {
        const id = text.replace(/^-/, '');
        if (TRAITS.some((trait) => trait.id === id)) filters.is[id] = id === text;
    }
    const sort = items.get('sort') ?? '', order = sort.replace(/^-/, '');
    if (Object.hasOwn(ORDERS, order)) {
        state.order = order;
        state.reverse = order !== sort;
    }
    return state;
}

/** @param {State} state @returns {string} without #; "" of the empty state */
export function formatState({ q, filters, order, reverse, open }) {
    const items = new URLSearchParams();
    if (q.trim()) items.append('q', q);
    for (const key of FACETS) for (const id of filters.only[key] ?? []) items.append(key, id);
    for (const path of filters.folder) items.append('folder', path);
    for (const tag of filters.tag) items.append('tag', tag);
    for (const tag of filters.not) items.append('-tag', tag);
    if (filters.all && filters.tag.length) items.append('tags', 'all');
    for (const [id, wanted] of Object.entries(filters.is)) items.append('is', wanted ? id : '-' + id);
    if (order !== 'name' || reverse) items.append('sort', (reverse ? '-' : '') + order);
    if (open) items.append('m', open);
    return items.toString();
}

/**
 * Keeps the fragment in step with the state. A new entry of the history only where a model is opened,
 * so that Back closes it.
 * @param {State} state
 * @param {boolean} [push]
 */
export function writeState(state, push = false) {
    const text = formatState(state);
    if (text === location.hash.slice(1)) return;
    try {
        history[push ? 'pushState' : 'replaceState'](push ? { opened: true } : history.state, '', '#' + text);
    } catch { /* too often, or not allowed here: the page works without it */ }
}
