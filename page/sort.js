// Orders of the models. Each is computed once: a result is read off it.
import { folded } from './text.js';

/** What an order is called, and its two ways; the column it is of, if that has another name; whether it begins at the end. */
const order = (/** @type {string} */ label, /** @type {string} */ up, /** @type {string} */ fall, column = '', down = true) => ({ label, up, fall, column, down });

export const ORDERS = /** @type {Record<string, ReturnType<typeof order>>} */ ({
    name: order('Name', 'A to Z', 'Z to A', '', false),
    path: order('Path', 'A to Z', 'Z to A', 'folder', false),
    modified: order('File date', 'oldest first', 'newest first'),
    date: order('Published', 'oldest first', 'newest first'),
    size: order('Size', 'smallest first', 'largest first', 'bytes'),
    rank: order('Rank', 'lowest first', 'highest first'),
    parameters: order('Parameters', 'fewest first', 'most first'),
    rating: order('Rating', 'lowest first', 'highest first'),
    copies: order('Duplicates', 'in their order', 'in reverse order', '', false),
});

/**
 * A name as it is sorted: without punctuation, accents and case; numbers by their value.
 * @param {string} name
 */
export function sortKey(name) {
    const plain = folded(name).normalize('NFD').replace(/\p{M}+/gu, ''),
        bare = plain.replace(/[^\p{L}\p{N}]+/gu, ' ').trim() || plain;
    return bare.replace(/\d+/g, (digits) => {
        const value = digits.replace(/^0+(?=\d)/, '');
        return String.fromCharCode(48 + Math.min(value.length, 40)) + value;
    });
}

/** Whether most names are only digits: they tell nothing, the date of a file more. @param {import('./data.js').Catalog} catalog */
export const isByNumber = ({ name, count }) => {
    let digits = 0;
    for (let i = 0; i < count; i++) digits += +/^[\d _.-]*\d[\d _.-]*$/.test(name(i));
    return digits > count / 2;
};

/** By column. @type {WeakMap<object, { order: Uint32Array, known: number }>} */
const orders = new WeakMap();

/** All models in ascending order, unknown ones last. @param {import('./data.js').Catalog} catalog @param {string} key */
function ascending({ rows, count }, key) {
    /** @type {any[]} */
    const column = /** @type {any} */ (rows)[ORDERS[key].column || key], before = orders.get(column);
    if (before) return before;
    const all = Array.from({ length: count }, (_, i) => i), values = key === 'name' ? column.map(sortKey) : key === 'path' ? all : column,
        isKnown = (/** @type {number} */ i) => typeof values[i] === 'string' ? values[i] !== '' : values[i] > 0 || values[i] === 0 && /path|copies|rating/.test(key),
        known = all.filter(isKnown).sort((a, b) => values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : a - b),
        made = { order: Uint32Array.from([...known, ...all.filter((i) => !isKnown(i))]), known: known.length };
    orders.set(column, made);
    return made;
}

/**
 * The models of a result in order; unknown values come last both ways.
 * @param {import('./data.js').Catalog} catalog
 * @param {Uint8Array} mask 1 for each model of the result
 * @param {string} key of ORDERS
 * @param {boolean} reverse
 */
export function sorted(catalog, mask, key, reverse) {
    const { order, known } = ascending(catalog, key),
        all = reverse ? Uint32Array.from([...order.slice(0, known).reverse(), ...order.slice(known)]) : order;
    return all.filter((i) => mask[i]);
}
