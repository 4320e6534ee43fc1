// What the page shows, in the URL's fragment: a bookmark or a link brings it back.
import { choose, noFilters, TRAITS } from './filter.js';
import { ORDERS } from './sort.js';

/**
 * @typedef {object} State
 * @property {string} q
 * @property {import('./filter.js').Filters} filters
 * @property {string} order key of ORDERS
 * @property {boolean} reverse
 * @property {string} open path of the model that is open, "" if none
 */

const FACETS = ['kind', 'base', 'arch', 'precision', 'size', 'year', 'licence', 'folder', 'tag', 'is'];

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
    const state = emptyState(), { filters } = state;
    if (fragment.length > 16384) return state;
    const items = new URLSearchParams(fragment.replace(/^#/, '')), get = (/** @type {string} */ key) => items.get(key) ?? '';
    Object.assign(state, { q: get('q'), open: get('m') });
    for (const key of FACETS)
        for (const wanted of [false, true])
            for (const id of items.getAll(wanted ? key : '-' + key).slice(0, 64))
                if (key === 'is' ? Object.hasOwn(TRAITS, id) : id || key === 'folder') choose(filters, key, id, wanted);
    filters.all = get('tags') === 'all';
    const order = get('sort').replace(/^-/, '');
    if (Object.hasOwn(ORDERS, order)) Object.assign(state, { order, reverse: order !== get('sort') });
    return state;
}

/** @param {State} state @returns {string} without #; "" of the empty state */
export function formatState({ q, filters, order, reverse, open }) {
    const items = new URLSearchParams();
    if (q.trim()) items.append('q', q);
    for (const key of FACETS) {
        for (const id of filters.only[key] ?? []) items.append(key, id);
        for (const id of filters.not[key] ?? []) items.append('-' + key, id);
    }
    if (filters.all && filters.only.tag?.length) items.append('tags', 'all');
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
