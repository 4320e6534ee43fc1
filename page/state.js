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

const FACETS = /^(kind|base|architecture|precision|size|year|licence|folder|tag|rating)$/;
/** The order of a page whose address has none. */
export const firstOrder = { order: 'name', reverse: false };

/** @returns {State} */
export const emptyState = () => ({ q: '', filters: noFilters(), ...firstOrder, open: '' });

/**
 * What a fragment says; what it cannot mean is ignored.
 * @param {string} fragment with or without #
 * @returns {State}
 */
export function parseState(fragment) {
    const state = emptyState();
    if (fragment.length > 16384) return state;
    const items = new URLSearchParams(fragment.replace(/^#/, '')), get = (/** @type {string} */ key) => items.get(key) ?? '';
    Object.assign(state, { q: get('q'), open: get('m') });
    for (const [name, id] of items) {
        const key = name.replace(/^-/, '');
        if (key === 'is' ? Object.hasOwn(TRAITS, id) : FACETS.test(key) && (id || key === 'folder')) state.filters = choose(state.filters, key, id, key === name);
    }
    state.filters.all = get('tags') === 'all';
    const order = get('sort').replace(/^-/, '');
    if (Object.hasOwn(ORDERS, order)) Object.assign(state, { order, reverse: order !== get('sort') });
    return state;
}

/** @param {State} state @returns {string} without #; "" of the empty state */
export function formatState({ q, filters, order, reverse, open }) {
    const items = new URLSearchParams();
    if (q.trim()) items.append('q', q);
    for (const [key, id, wanted] of filters.choices) items.append((wanted ? '' : '-') + key, id);
    if (filters.all) items.append('tags', 'all');
    if (order !== firstOrder.order || reverse !== firstOrder.reverse) items.append('sort', (reverse ? '-' : '') + order);
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
