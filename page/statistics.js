// Statistics of a tensor, histograms, norms of LoRA modules.
import { countText, plural, sizeText } from './text.js';
import { el, foreign } from './dom.js';
import { copyButton } from './copy.js';
import { shapeText } from './tensors.js';
import { nodeName, orderKey, partEnds } from './tree.js';

/** A number as it is read: four digits. @param {number | string | null | undefined} value */
export function numberText(value) {
    if (typeof value !== 'number') return value ?? '–';
    if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString('en');
    const size = Math.abs(value);
    return size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(4))) : value.toExponential(3).replace(/\.?0+e/, 'e');
}

/** Of any number of values, which arguments of a call are not. @param {number[]} values */
const least = (values) => values.reduce((a, b) => a < b ? a : b, Infinity);
/** @param {number[]} values */
const greatest = (values) => values.reduce((a, b) => a > b ? a : b, -Infinity);

/** Histograms of several tensors as one. @param {(number[] | null)[]} all @returns {[first: number, counts: number[]]} */
export function sumHistograms(all) {
    const full = /** @type {number[][]} */ (all.filter((one) => one && one.length > 1));
    if (!full.length) return [0, []];
    const first = least(full.map((one) => one[0])), end = greatest(full.map((one) => one[0] + one.length - 1));
    /** @type {number[]} */
    const counts = new Array(end - first).fill(0);
    for (const one of full) for (let k = 1; k < one.length; k++) counts[one[0] - first + k - 1] += one[k];
    return [first, counts];
}

/** Bars of magnitudes by powers of two. @param {number} first @param {number[]} counts */
export function histogramView(first, counts) {
    const make = /** @type {any} */ (el), most = greatest(counts), total = counts.reduce((sum, count) => sum + count, 0);
    const wide = Math.max(2, Math.min(24, Math.floor(300 / counts.length))), peak = counts.indexOf(most);
    const tall = 72, power = (/** @type {number} */ k) => `2^${k}`;
    return el('figure', { class: 'histogram' },
        make('svg', {
            viewBox: `0 0 ${counts.length * wide} ${tall}`, width: counts.length * wide, height: tall, role: 'img',
            'aria-label': `Histogram of magnitudes from ${power(first)} to ${power(first + counts.length)}; most values, `
                + `${(most / total * 100).toFixed(0)} %, from ${power(first + peak)} to ${power(first + peak + 1)}`,
        }, counts.map((count, k) => {
            const height = count ? Math.max(1, count / most * tall) : 0;
            return make('rect', { x: k * wide + 0.5, y: tall - height, width: wide - 1, height, class: k === peak ? 'peak' : null });
        })),
        el('figcaption', { class: 'tiny muted' }, `|x| from ${numberText(2 ** first)} to ${numberText(2 ** (first + counts.length))}, `
            + `most around ${numberText(2 ** (first + peak))}`));
}

/**
 * What there is to know about a row of the tree.
 * @param {import('./tensors.js').Tensors} tensors
 * @param {import('./tree.js').TreeRow} row
 * @param {import('./tree.js').TreeNode[]} all nodes that the row stands for
 */
export function rowDetails(tensors, row, all) {
    const { page } = tensors, { node, outer } = row, list = node.fold && !node.kids[0].kids.length ? node.kids : all;
    const leaves = list.filter((one) => one.tensor >= 0).map((one) => one.tensor);
    const only = leaves.length === 1 ? leaves[0] : -1;
    /** @type {[string, import('./dom.js').Child][]} */
    const facts = [];
    if (!leaves.length) facts.push(['Tensors', (outer * node.tensors).toLocaleString('en')]);
    else if (only < 0) facts.push(['Tensors', `${plural(leaves.length, 'tensor')} of equal form`]);
    if (node.dtype >= 0) facts.push(['Dtype', page.dtypes[node.dtype]]);
    if (leaves.length) facts.push(['Shape', shapeText(page.shapes[page.shape[leaves[0]]])]);
    facts.push(['Parameters', countText(outer * node.parameters)], ['Size', sizeText(outer * node.bytes)]);
    if (only >= 0) {
        facts.push(['Bytes', `${page.offset[only].toLocaleString('en')} to ${(page.offset[only] + page.bytes[only]).toLocaleString('en')}`]);
        if (page.files && page.shard) facts.push(['File', foreign(page.files[page.shard[only]])]);
    }
    const { stats } = page;
    const known = stats ? leaves.filter((i) => stats.min[i] !== null) : [];
    return el('div', { class: 'stack' }, el('div', { class: 'name-row' }, foreign(nodeName(tensors.names, node), 'mono tensor-name'),
        copyButton(() => nodeName(tensors.names, node), 'the name')), factList(facts),
        stats && known.length > 0 && statistics(stats, known));
}

/** @param {[string, import('./dom.js').Child][]} facts */
function factList(facts) {
    return el('dl', { class: 'kv numbers' }, facts.flatMap(([key, value]) => [el('dt', null, key), el('dd', null, value)]));
}

/** @param {NonNullable<ModelPage['stats']>} stats @param {number[]} known tensors */
function statistics(stats, known) {
    const [first, counts] = sumHistograms(known.map((i) => stats.histogram[i]));
    const sum = (/** @type {number[]} */ column) => known.reduce((all, i) => all + (column[i] ?? 0), 0);
    const range = (/** @type {(number | string)[]} */ column) => {
        const values = known.map((i) => column[i]).filter((value) => typeof value === 'number');
        if (!values.length) return numberText(column[known[0]]);
        const low = least(values), high = greatest(values);
        return low === high ? numberText(low) : `${numberText(low)} … ${numberText(high)}`;
    };
    const bad = sum(stats.nan) + sum(stats.inf);
    return [
        factList([['Minimum', range(stats.min)], ['Maximum', range(stats.max)], ['Mean', range(stats.mean)],
            ['Deviation', range(stats.std)], ['Zeros', countText(sum(stats.zeros))],
            ['NaN, infinite', bad ? el('strong', { class: 'bad' }, `${countText(sum(stats.nan))}, ${countText(sum(stats.inf))}`) : 'none']]),
        counts.length > 0 && histogramView(first, counts),
        known.length > 1 && layerBars(stats, known),
    ];
}

/** Standard deviations layer by layer. @param {NonNullable<ModelPage['stats']>} stats @param {number[]} known */
function layerBars(stats, known) {
    const values = known.slice(0, 300).map((i) => Number(stats.std[i]) || 0), most = greatest(values);
    const make = /** @type {any} */ (el), wide = Math.max(1, Math.min(24, Math.floor(300 / values.length)));
    if (!(most > 0)) return null;
    return el('figure', { class: 'histogram' }, make('svg', {
        viewBox: `0 0 ${values.length * wide} 40`, width: values.length * wide, height: 40, role: 'img',
        'aria-label': `Standard deviation of ${values.length} layers: from ${numberText(least(values))} to ${numberText(most)}`,
    }, values.map((value, k) => make('rect', { x: k * wide, y: 40 - value / most * 40, width: Math.max(1, wide - 1), height: value / most * 40 }))),
    el('figcaption', { class: 'tiny muted' }, 'Standard deviation, layer by layer'));
}

/** The block of a module: its name up to the first number. @param {string} module */
export function blockOf(module) {
    const ends = [...partEnds(module), module.length];
    let from = 0;
    for (const end of ends) {
        if (/^\d+$/.test(module.slice(from, end))) return module.slice(0, end);
        from = end + 1;
    }
    return module.slice(0, ends[0]);
}

/** Norms of blocks, in natural order: the root of the sum of squares. @param {NonNullable<ModelPage['norms']>} norms */
export function blockNorms(norms) {
    /** @type {Map<string, { block: string, end: string, square: number, modules: number }>} */
    const blocks = new Map();
    for (const { module, norm } of norms) {
        const block = blockOf(module);
        const sum = blocks.get(block) ?? { block, end: module.slice(block.length, block.length + 1), square: 0, modules: 0 };
        sum.square += Number(norm) ** 2;
        sum.modules++;
        blocks.set(block, sum);
    }
    return [...blocks.values()].map((sum) => ({ ...sum, norm: Math.sqrt(sum.square) })).sort((a, b) => orderKey(a.block) < orderKey(b.block) ? -1 : 1);
}

/** @param {NonNullable<ModelPage['norms']>} norms @param {(prefix: string) => void} pick */
export function normsView(norms, pick) {
    const blocks = blockNorms(norms), most = greatest(blocks.map((one) => one.norm).filter(Number.isFinite));
    const ranks = [...new Set(norms.map((one) => one.rank))].sort((a, b) => a - b);
    return el('section', { class: 'panel-card norms', 'aria-labelledby': 'norms-title' },
        el('h2', { id: 'norms-title' }, 'Strength by block'),
        el('p', { class: 'small-text muted' }, `Frobenius norms of up × down × alpha / rank, of ${plural(norms.length, 'module')}, `
            + (ranks.length > 1 ? `ranks ${ranks[0]} to ${ranks[ranks.length - 1]}` : `rank ${ranks[0]}`)),
        el('ul', { class: 'norm-list' }, blocks.map((one) => {
            const bar = el('span');
            bar.style.width = (Number.isFinite(one.norm) && most > 0 ? one.norm / most * 100 : 0) + '%';
            return el('li', null, el('button', {
                type: 'button', class: 'norm', title: `Show the tensors of ${one.modules === 1 ? 'this module' : plural(one.modules, 'module')}`,
                onclick: () => pick(one.block + one.end),
            }, foreign(one.block, 'cut'), el('span', { class: 'bar', 'aria-hidden': 'true' }, bar),
            el('span', { class: 'number' }, Number.isNaN(one.norm) ? 'NaN' : numberText(Number(one.norm.toPrecision(3))))));
        })));
}
