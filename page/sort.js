// Orders of the models. Each is computed once: a result is read off it.
import { folded } from './text.js';

/** @type {Record<string, { label: string, down: boolean, up: string, fall: string }>} */
export const ORDERS = {
    name: { label: 'Name', down: false, up: 'A to Z', fall: 'Z to A' },
    path: { label: 'Path', down: false, up: 'A to Z', fall: 'Z to A' },
    modified: { label: 'File date', down: true, up: 'oldest first', fall: 'newest first' },
    date: { label: 'Published', down: true, up: 'oldest first', fall: 'newest first' },
    size: { label: 'Size', down: true, up: 'smallest first', fall: 'largest first' },
    rank: { label: 'Rank', down: true, up: 'lowest first', fall: 'highest first' },
    parameters: { label: 'Parameters', down: true, up: 'fewest first', fall: 'most first' },
    copies: { label: 'Duplicates', down: false, up: 'in their order', fall: 'in reverse order' },
};

/**
 * A name as it is sorted: without punctuation, accents and case; numbers by their value.
 * @param {string} name
 */
export function sortKey(name) {
    const plain = folded(name).normalize('NFD').replace(/\p{M}+/gu, '');
    const bare = plain.replace(/[^\p{L}\p{N}]+/gu, ' ').trim() || plain;
    return bare.replace(/\d+/g, (digits) => {
        const value = digits.replace(/^0+(?=\d)/, '');
        return String.fromCharCode(48 + Math.min(value.length, 40)) + value;
    });
}

/** @type {WeakMap<object, Map<string, { order: Uint32Array, known: number }>>} */
const cache = new WeakMap();

/** All models in ascending order, unknown ones last. @param {import('./data.js').Catalog} catalog @param {string} key */
function ascending(catalog, key) {
    const orders = cache.get(catalog) ?? new Map();
    cache.set(catalog, orders);
    const before = orders.get(key);
    if (before) return before;
    const { rows, count } = catalog;
    const order = Uint32Array.from({ length: count }, (_, i) => i);
    /** @type {ArrayLike<string | number>} */
    const values = key === 'path' ? order : key === 'name' ? rows.name.map(sortKey) : key === 'size' ? rows.bytes
        : /** @type {any} */ (rows)[key];
    const unknown = (/** @type {number} */ i) => values[i] === '' || /** @type {number} */ (values[i]) < 0
        || values[i] === 0 && key !== 'path' && key !== 'copies';
    let known = 0;
    const rest = [];
    for (let i = 0; i < count; i++)
        if (unknown(i)) rest.push(i);
        else order[known++] = i;
    if (key !== 'path')
        order.subarray(0, known).sort((a, b) => values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : a - b);
    order.set(rest, known);
    const made = { order, known };
    orders.set(key, made);
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
    const { order, known } = ascending(catalog, key);
    const out = new Uint32Array(order.length);
    let n = 0;
    for (let k = 0; k < order.length; k++) {
        const i = order[reverse && k < known ? known - 1 - k : k];
        if (mask[i]) out[n++] = i;
    }
    return out.subarray(0, n);
}
