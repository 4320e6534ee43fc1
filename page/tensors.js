// Tensors of one model: columns, sums, search.
import { el } from './dom.js';

/**
 * @typedef {object} Tensors
 * @property {ModelPage} page
 * @property {string[]} names
 * @property {number[]} elements of each
 * @property {number} parameters of all: elements
 * @property {number} bytes of all
 * @property {string[]} colours of dtypes
 */

/* Colours of dtypes in their order, dark enough for white text in both themes; then the last one. */
const COLOURS = ['#8457c2', '#3c6fc4', '#14807a', '#b8611a', '#bd4468', '#8c7411', '#4a8032', '#66707f'];

/** @param {string} colour */
export function swatch(colour) {
    const made = el('i.swatch', { 'aria-hidden': 'true' });
    made.style.background = colour;
    return made;
}

/** @param {number[]} values */
export const total = (values) => values.reduce((sum, value) => sum + value, 0);

/** A number as it is read: four digits. @param {number | string | null | undefined} value */
export function numberText(value) {
    if (typeof value !== 'number') return value ?? '–';
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e15) return value.toLocaleString('en');
    return size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(3).replace(/\.?0+e/, 'e');
}

/** "12.5 %" of all. @param {Tensors} tensors @param {number} bytes */
export function partText(tensors, bytes) {
    const part = bytes / tensors.bytes * 100 || 0;
    return part > 0 && part < 0.1 ? '< 0.1 %' : part.toFixed(part > 0 && part < 99.95 ? 1 : 0) + ' %';
}

/** "4096 × 4096"; "scalar". @param {string} shape */
export const shapeText = (shape) => shape.replaceAll(',', ' × ') || 'scalar';

/** With values that are no numbers. @param {ModelPage} page @param {number} i */
export const isBad = ({ stats }, i) => !!stats && stats.nan[i] + stats.inf[i] > 0;

/** @param {ModelPage} page @returns {Tensors} */
export function openTensors(page) {
    const sizes = page.shapes.map((shape) => shape.split(',').reduce((size, dim) => size * Number(dim || 1), 1));
    const elements = page.shape.map((shape) => sizes[shape]);
    /** @type {string[]} */
    const names = [];
    page.rest.forEach((rest, i) => names.push((names[i - 1] ?? '').slice(0, page.shared[i]) + rest));
    return { page, names, elements, parameters: total(elements), bytes: total(page.bytes), colours: page.dtypes.map((_, i) => COLOURS[Math.min(i, 7)]) };
}

/** Sums by dtype, most bytes first. @param {Tensors} tensors */
export function dtypeSums({ page, colours }) {
    const sums = page.dtypes.map((name, i) => ({ name, colour: colours[i], tensors: 0, bytes: 0 }));
    page.dtype.forEach((dtype, i) => {
        sums[dtype].tensors++;
        sums[dtype].bytes += page.bytes[i];
    });
    return sums.filter((sum) => sum.tensors).sort((a, b) => b.bytes - a.bytes);
}

/**
 * A query: words that a name has (-word: has not), dtype:f16, shape:4096 or shape:4096x*, file:,
 * is:nan. All must hold.
 * @param {Tensors} tensors
 * @param {string} query
 * @returns {{ hits: number[], count: number } | null} null: nothing was asked
 */
export function matchTensors({ page, names }, query) {
    const tests = [...query.toLowerCase().matchAll(/(-?)(?:(dtype|shape|file|is):)?(\S+)/g)].map(([, not, key, value]) => {
        const test = wordTest(page, names, key, value);
        return (/** @type {number} */ i) => test(i) !== !!not;
    });
    if (!tests.length) return null;
    const hits = names.map((_, i) => Number(tests.every((test) => test(i))));
    return { hits, count: total(hits) };
}

/** @param {ModelPage} page @param {string[]} names @param {string | undefined} key @param {string} value @returns {(i: number) => boolean} */
function wordTest(page, names, key, value) {
    if (key === 'dtype') return (i) => page.dtypes[page.dtype[i]].toLowerCase().startsWith(value);
    if (key === 'shape') {
        const dims = value.split(/[x,×]/).map((dim) => dim === '*' ? '\\d+' : dim.replace(/\D/g, '')).filter(Boolean);
        const wanted = new RegExp(`(^|,)${dims.join(',') || '(?!)'}(,|$)`);
        return (i) => wanted.test(page.shapes[page.shape[i]]);
    }
    if (key === 'file') return (i) => !!page.files?.[page.shard?.[i] ?? 0]?.toLowerCase().includes(value);
    if (key === 'is') return (i) => value === 'nan' && isBad(page, i);
    return (i) => names[i].toLowerCase().includes(value);
}
