// Statistics of a tensor, histograms, norms of LoRA modules.
import { countText, plural, sizeText } from './text.js';
import { bar, el, foreign } from './dom.js';
import { copyButton } from './copy.js';
import { pairList } from './training.js';
import { numberText, shapeText, total } from './tensors.js';
import { compare, nodeName, partEnds } from './tree.js';

/** The least of any number of values, which arguments of a call are not. @param {number[]} values */
const least = (values) => values.reduce((a, b) => a < b ? a : b, Infinity);
/** @param {number[]} values */
const greatest = (values) => values.reduce((a, b) => a > b ? a : b, -Infinity);

/** Histograms of several tensors as one. @param {(number[] | null)[]} all @returns {[first: number, counts: number[]]} */
export function sumHistograms(all) {
    const full = all.flatMap((one) => one && one.length > 1 ? [one] : []);
    if (!full.length) return [0, []];
    const first = least(full.map((one) => one[0]));
    /** @type {number[]} */
    const counts = new Array(greatest(full.map((one) => one[0] + one.length - 1)) - first).fill(0);
    for (const [from, ...own] of full) own.forEach((count, k) => { counts[from - first + k] += count; });
    return [first, counts];
}

/** Bars of magnitudes by powers of two. @param {number} first @param {number[]} counts */
function histogramView(first, counts) {
    const most = greatest(counts), peak = counts.indexOf(most), power = (/** @type {number} */ k) => numberText(2 ** (first + k));
    return el('figure',
        el('div.histogram', { 'aria-hidden': 'true' }, counts.map((count, k) => {
            const made = el(k === peak ? 'b' : 'i');
            made.style.height = count ? `max(1px, ${count / most * 100}%)` : '0';
            return made;
        })),
        el('figcaption.tiny.muted', `|x| from ${power(0)} to ${power(counts.length)}, most from ${power(peak)} to ${power(peak + 1)}`));
}

/** Tensors of equal form that a row is; none of a group. @param {import('./tree.js').TreeNode[]} all nodes that it stands for */
export const leavesOf = (all) => all.flatMap((one) => one.fold ? one.kids : one).filter((one) => !one.kids.length).map((one) => one.tensor);

/**
 * What there is to know about a row of the tree.
 * @param {import('./tensors.js').Tensors} tensors
 * @param {import('./tree.js').TreeRow} row
 * @param {import('./tree.js').TreeNode[]} all nodes that the row stands for
 */
export function rowDetails({ page, names }, { node, outer }, all) {
    const leaves = leavesOf(all), [i] = leaves, isOne = leaves.length === 1, name = nodeName(names, node);
    const known = leaves.filter((k) => page.stats && page.stats.min[k] !== null);
    return el('div.stack', el('div.row', foreign(name, 'mono tensor-name'), copyButton(name, 'the name')),
        pairList([
            ['Tensors', !isOne && (leaves.length ? `${numberText(leaves.length)} of equal form` : numberText(outer * node.tensors))],
            ['Dtype', page.dtypes[node.dtype]], ['Shape', leaves.length > 0 && shapeText(page.shapes[page.shape[i]])],
            ['Parameters', countText(outer * node.parameters)], ['Size', sizeText(outer * node.bytes)],
            ['Bytes', isOne && `${numberText(page.offset[i])} to ${numberText(page.offset[i] + page.bytes[i])}`],
            ['File', isOne && page.shard && page.files?.[page.shard[i]]],
        ], 'two'),
        page.stats && known.length > 0 && statistics(page.stats, known));
}

/** @param {NonNullable<ModelPage['stats']>} stats @param {number[]} known tensors */
function statistics(stats, known) {
    const [first, counts] = sumHistograms(known.map((i) => stats.histogram[i]));
    const sum = (/** @type {number[]} */ column) => total(known.map((i) => column[i]));
    const range = (/** @type {(number | string)[]} */ column) => {
        const values = known.map((i) => column[i]).filter((value) => typeof value === 'number');
        const low = least(values), high = greatest(values);
        return !values.length ? numberText(column[known[0]]) : low === high ? numberText(low) : `${numberText(low)} … ${numberText(high)}`;
    };
    const nan = sum(stats.nan), inf = sum(stats.inf);
    return [
        pairList([['Minimum', range(stats.min)], ['Maximum', range(stats.max)], ['Mean', range(stats.mean)],
            ['Deviation', range(stats.std)], ['Zeros', countText(sum(stats.zeros))],
            ['NaN, infinite', nan + inf ? `${countText(nan)}, ${countText(inf)}` : 'none']], 'two'),
        counts.length > 0 && histogramView(first, counts),
    ];
}

/** The block of a module: its name up to the first number. @param {string} module */
export function blockOf(module) {
    const ends = [...partEnds(module), module.length];
    const end = ends.find((end, i) => /^\d+$/.test(module.slice(i && ends[i - 1] + 1, end)));
    return module.slice(0, end ?? ends[0]);
}

/** Modules by block, in natural order: their ranks, the root of the sum of squares of their norms, their spectra. @param {NonNullable<ModelPage['norms']>} norms */
export function blockNorms(norms) {
    /** @type {Map<string, { block: string, end: string, norm: number, isNormed: boolean, count: number, low: number, high: number, spectra: number[][], methods: Set<string> }>} */
    const blocks = new Map();
    for (const { module, norm, rank = 0, spectrum, method = '' } of norms) {
        const block = blockOf(module), sum = blocks.get(block)
            ?? { block, end: module[block.length] ?? '', norm: 0, isNormed: true, count: 0, low: Infinity, high: 0, spectra: [], methods: new Set() };
        blocks.set(block, { ...sum, norm: Math.hypot(sum.norm, Number(norm ?? 0)), isNormed: sum.isNormed && norm !== undefined, count: sum.count + 1,
            low: Math.min(sum.low, rank), high: Math.max(sum.high, rank) });
        if (spectrum) sum.spectra.push(spectrum);
        if (method) sum.methods.add(method);
    }
    return [...blocks.values()].sort((a, b) => compare(a.block, b.block));
}

/** Means of what is at the same place. @param {number[][]} spectra */
export const meanSpectrum = (spectra) => Array.from({ length: greatest(spectra.map((one) => one.length)) }, (_, k) => total(spectra.map((one) => one[k] ?? 0)) / spectra.length);

/** @param {number[][]} spectra */
const spectrumView = (spectra) => el('span.spectrum', { 'aria-hidden': 'true' }, spectra.length > 0 && meanSpectrum(spectra).map((one) => {
    const made = el('i');
    made.style.height = `max(1px, ${one}%)`;
    return made;
}));

/** @param {ModelPage} page @param {(prefix: string) => void} pick */
export function normsView({ norms = [], adapter_error: error }, pick) {
    const blocks = blockNorms(norms), most = greatest(blocks.map((one) => one.isNormed ? one.norm : 0).filter(Number.isFinite)), isDeep = norms.some((one) => one.norm !== undefined);
    return el('section.panel-card', { 'aria-labelledby': 'norms-title' },
        el('h2', { id: 'norms-title' }, 'Adapter by block'),
        error ? el('p.note.warn', 'It cannot be read as an adapter: ', foreign(error))
            : el('p.small-text.muted', `${plural(norms.length, 'module')}${isDeep ? ': rank; Frobenius norm of what is added at strength 1; mean singular values, each to its greatest' : '; --deep adds norms and singular values'}`),
        el('ul.norm-list', blocks.map(({ block, end, norm, isNormed, count, low, high, spectra, methods }) => el('li', el('button.norm', { onclick: () => pick(block + end), title: [plural(count, 'module'), ...methods].join(', ') },
            foreign(block, 'cut'), el('span.muted.number', high ? `r${low < high ? `${low}–` : ''}${high}` : ''), isDeep && (isNormed ? bar(norm / most) : el('span')), isDeep && spectrumView(spectra),
            isDeep && el('span.number', isNormed ? numberText(Number(norm.toPrecision(3))) : '–'))))));
}
