// Tensors of one model: columns, sums, search.

/**
 * @typedef {object} Tensors
 * @property {ModelPage} page
 * @property {string[]} names
 * @property {Float64Array} elements of each
 * @property {number} parameters of all: elements
 * @property {number} bytes of all
 * @property {number[]} hues of dtypes: places in the palette, 0 to 7
 */

/** Which colour a dtype has if no other of the file has it. */
const HUES = [/^F(32|64)$/, /^F16$/, /^BF16$/, /^F8|^MXFP|^NVFP/, /^U?I8$|^Q8/, /^F[46]|^U?I4|^I?Q/, /^[UI](16|32|64)$/];

/** Colours of dtypes, which differ as long as there are any left. @param {string[]} dtypes */
export function dtypeHues(dtypes) {
    const taken = new Set(), free = [5, 6, 4, 0, 1, 2, 3];
    const hues = dtypes.map((dtype) => {
        const hue = HUES.findIndex((known) => known.test(dtype));
        return hue < 0 || taken.has(hue) ? -1 : (taken.add(hue), hue);
    });
    return hues.map((hue) => {
        const other = hue < 0 ? free.find((one) => !taken.has(one)) ?? 7 : hue;
        taken.add(other);
        return other;
    });
}

/** @param {ModelPage} page @returns {Tensors} */
export function openTensors(page) {
    const names = new Array(page.count), elements = new Float64Array(page.count);
    const sizes = page.shapes.map((shape) => shape.split(',').reduce((size, dim) => size * (dim === '' ? 1 : +dim), 1));
    let before = '', parameters = 0, bytes = 0;
    for (let i = 0; i < page.count; i++) {
        names[i] = before = before.slice(0, page.shared[i]) + page.rest[i];
        parameters += elements[i] = sizes[page.shape[i]];
        bytes += page.bytes[i];
    }
    return { page, names, elements, parameters, bytes, hues: dtypeHues(page.dtypes) };
}

/** Sums by dtype, most bytes first. @param {Tensors} tensors */
export function dtypeSums(tensors) {
    const { page, elements, hues } = tensors;
    const sums = page.dtypes.map((name, i) => ({ name, hue: hues[i], tensors: 0, parameters: 0, bytes: 0 }));
    for (let i = 0; i < page.count; i++) {
        const sum = sums[page.dtype[i]];
        sum.tensors++;
        sum.parameters += elements[i];
        sum.bytes += page.bytes[i];
    }
    return sums.filter((sum) => sum.tensors).sort((a, b) => b.bytes - a.bytes);
}

/** "4096 × 4096"; "scalar". @param {string} shape */
export function shapeText(shape) {
    return shape === '' ? 'scalar' : shape.split(',').join(' × ');
}

/**
 * A query: words that a name has (-word: has not), dtype:f16, shape:4096 or shape:4096x*, file:,
 * is:nan. All must hold.
 * @param {Tensors} tensors
 * @param {string} query
 * @returns {{ hits: Uint8Array, count: number } | null} null: nothing was asked
 */
export function matchTensors(tensors, query) {
    const { page, names } = tensors;
    /** @type {((i: number) => boolean)[]} */
    const tests = [];
    for (const [, not, key, value] of query.toLowerCase().matchAll(/(-?)(?:(dtype|shape|file|is):)?(\S+)/g)) {
        const test = wordTest(page, names, key, value);
        tests.push(not ? (i) => !test(i) : test);
    }
    if (!tests.length) return null;
    const hits = new Uint8Array(page.count);
    let count = 0;
    for (let i = 0; i < page.count; i++) if (tests.every((test) => test(i))) count += hits[i] = 1;
    return { hits, count };
}

/** @param {ModelPage} page @param {string[]} names @param {string | undefined} key @param {string} value @returns {(i: number) => boolean} */
function wordTest(page, names, key, value) {
    if (key === 'dtype') {
        const which = page.dtypes.map((dtype) => dtype.toLowerCase().startsWith(value));
        return (i) => which[page.dtype[i]];
    }
    if (key === 'shape') {
        const dims = value.split(/[x×,]/).map((dim) => dim === '*' ? '\\d+' : dim.replace(/\D/g, '')).filter(Boolean);
        const wanted = new RegExp(dims.length ? `(^|,)${dims.join(',')}(,|$)` : '(?!)');
        const which = page.shapes.map((shape) => wanted.test(shape));
        return (i) => which[page.shape[i]];
    }
    if (key === 'file') return (i) => !!page.files?.[page.shard?.[i] ?? 0]?.toLowerCase().includes(value);
    if (key === 'is') return (i) => value === 'nan' && !!page.stats && page.stats.nan[i] + page.stats.inf[i] > 0;
    return (i) => names[i].toLowerCase().includes(value);
}
