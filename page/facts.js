// Facts: values, where they come from, how far they can be trusted, and what contradicts them.
import { bar, el, foreign } from './dom.js';
import { icon } from './icons.js';
import { countText, plural, sizeText, visible } from './text.js';

/** Words for keys and for ids that are the same in all pages. @type {Map<string, string>} */
const labels = new Map(Object.entries({
    vae: 'VAE', controlnet: 'ControlNet', control_lora: 'Control-LoRA', ip_adapter: 'IP-Adapter', t2i_adapter: 'T2I-Adapter', unet: 'U-Net',
    lora: 'LoRA', locon: 'LoCon', loha: 'LoHa', lokr: 'LoKr', glora: 'GLoRA', ia3: 'IA3', oft: 'OFT', boft: 'BOFT', full: 'full-weight',
    v: 'v-prediction', base_checkpoint: 'trained on', bytes: 'size', conv_rank: 'conv rank', dora: 'DoRA', license: 'licence', llm: 'layers',
    nsfw: 'not safe for work', preferred_weight: 'strength', preferred_weight_range: 'strength range', prediction_type: 'prediction',
    repo: 'repository', rslora: 'rsLoRA', size: 'extent', text_encoder_lr: 'text encoder rate', unet_lr: 'U-Net rate', version_name: 'version',
}));

/** @param {string} id */
export const labelOf = (id) => labels.get(id) ?? id.replace(/_/g, ' ');

/** Whether there is anything to show. @param {unknown} value */
export const isGiven = (value) => Boolean(value) || value === 0;

/** A value as text. @param {unknown} value @returns {string} */
export function valueText(value) {
    if (typeof value === 'boolean') return value ? 'yes' : 'no';
    if (Array.isArray(value)) return value.map(valueText).join(', ');
    if (!value || typeof value !== 'object') return String(value ?? '');
    return Object.entries(value).filter((pair) => isGiven(pair[1])).map(([key, one]) => `${labelOf(key)} ${valueText(one)}`).join(', ');
}

/** "4", or "16 (4 to 32)" of min, max and the most common one. @param {any} range */
export function rangeText(range) {
    if (typeof range !== 'object' || !range) return valueText(range);
    const { min, max, mode } = range;
    if (!isGiven(min) || !isGiven(max)) return isGiven(max) ? `at most ${max}` : `at least ${min}`;
    const both = `${min} to ${max}`;
    return min === max ? `${min}` : isGiven(mode) ? `${mode} (${both})` : both;
}

/** "2025-04-05 17:41". @param {unknown} time */
export const timeText = (time) => isGiven(time) ? `${time}`.replace(/T(\d\d:\d\d).*/, ' $1') : '';

/** Words for the ids of a catalogue. @type {Map<string, string>} */
const idWords = new Map();

/** @param {Entry[]} entries */
export function addIds(entries) {
    for (const [id, words] of entries) idWords.set(id, words);
}

/** @param {string} id */
const named = (id) => idWords.get(id) ?? labels.get(id) ?? valueText(id);

/** @type {Record<string, (value: any) => string>} */
const FACT_TEXTS = {
    kind: labelOf, type: labelOf, architecture: named, base_model: named, precision: named, prediction_type: named,
    rank: rangeText, alpha: rangeText, preferred_weight_range: rangeText, parameters: countText, bytes: sizeText, date: timeText,
    dtypes: (all) => Object.entries(all).map(([name, one]) => `${name} ${sizeText(one.bytes)}`).join(', '),
    blocks: (all) => all.join(' '), targets: (all) => all.join(' '),
};

/** A fact's value in words. @param {string} key @param {unknown} value */
export const factText = (key, value) => FACT_TEXTS[key]?.(value) ?? valueText(value);

/** The name of a model's file without its ending. @param {{ path: string }} info */
export const stemOf = ({ path }) => path.replace(/^.*[\\/]/, '').replace(/\.[^.]*$/, '');

/**
 * Where a fact comes from, in words: "civitai.info file" of "sidecar:a.civitai.info:/name".
 * @param {string} source
 * @param {string} [stem] of the model's file
 */
export function sourceWords(source, stem) {
    const [where, rest = ''] = source.split(/:([^]*)/);
    if (where === 'sidecar') {
        const file = rest.replace(/:\/[^]*$/, '').replace(/^[^]*[\\/]/, '');
        return stem && file.startsWith(stem + '.') ? `${file.slice(stem.length + 1)} file` : file;
    }
    return { __proto__: null, own: 'your note', filename: 'file name', folder: 'folder name', online: 'CivitAI, online', hub: 'Hugging Face' }[where] ?? where;
}

/** How well a fact is established, in a word. @param {string} source @param {number} trust */
export function trustWord(source, trust) {
    if (source === 'tensors') return trust >= 80 ? 'measured' : 'inferred';
    if (/^(filename|folder)/.test(source)) return trust >= 80 ? 'by name' : 'guessed';
    return trust <= 10 ? 'mismatched' : trust < 60 ? 'uncertain' : 'declared';
}

/** Trust and source, as a bar and in words. @param {any} fact @param {string} stem */
const trustBar = ({ source, trust }, stem) => [bar(Math.max(.06, trust / 100), trust >= 80 ? 'trust high' : trust >= 60 ? 'trust' : 'trust low'),
    el('span.trust-words', trustWord(source, trust), el('span.muted', ' · ', foreign(sourceWords(source, stem))))];

/** Who says what; the first is what is shown elsewhere. @param {string} key @param {any[]} facts @param {string} stem @param {boolean} [full] */
const claims = (key, facts, stem, full) => el('ul.claims', facts.map((one, i) => el('li',
    el('span.claim', foreign(factText(key, one.value)), i === 0 && facts[1] && el('span.muted.tiny', ' (shown)')),
    el('span.from', trustBar(one, stem), full && el('span.mono.muted.tiny', foreign(one.source), `, trust ${one.trust}`)))));

/** @param {{ field: string }} conflict */
const fieldOf = (conflict) => conflict.field.replace(/^\w+\./, '');

/** A warning with its title. @param {string} id @param {import('./dom.js').Child} title @param {...(import('./dom.js').Child | import('./dom.js').Child[])} more */
export const noteOf = (id, title, ...more) =>
    el('div.note', { 'data-note': id }, el('p', { class: `note-title ${id === 'conflicts' ? 'warn' : 'bad'}` }, icon('warn'), title), ...more);

/** What contradicts itself, or null. @param {Info} info */
export const conflictNote = ({ conflicts = [], ...info }) =>
    conflicts.length ? noteOf('conflicts', 'Sources disagree', conflicts.map((one) => el('div.conflict',
    el('p.muted', visible(labelOf(fieldOf(one)))), claims(fieldOf(one), one.candidates, stemOf(info))))) : null;

/**
 * A row: value, trust and source; a click on these shows all candidates and their full source.
 * @param {string} key
 * @param {any} fact
 * @param {string} stem
 * @param {boolean} conflict
 */
function factRow(key, fact, stem, conflict) {
    const others = fact.others ?? [], unlike = others.filter((/** @type {any} */ one) => valueText(one.value) !== valueText(fact.value)).length,
        all = el('dd.fact-all', { hidden: true }),
        more = el('button.from', {
            'aria-expanded': 'false', title: visible(`${fact.source}, trust ${fact.trust} of 100`),
            onclick: () => {
                if (!all.firstChild) all.append(claims(key, [fact, ...others], stem, true));
                all.hidden = !all.hidden;
                more.ariaExpanded = `${!all.hidden}`;
            },
        }, trustBar(fact, stem), others.length > 0 && el('span.muted', unlike ? plural(unlike, 'other') : `+${others.length}`), icon('down'));
    return el('div', { class: conflict ? 'fact conflict' : 'fact', 'data-fact': key }, el('dt.muted', labelOf(key)),
        el('dd.fact-value', conflict && el('span.warn', icon('warn'), el('span.unseen', 'sources disagree: ')), foreign(factText(key, fact.value))),
        el('dd', more), all);
}

/** @type {[title: string, of: 'model' | 'adapter' | 'file', keys: string][]} */
const FACT_GROUPS = [
    ['Identity', 'model', 'name version_name kind architecture variant family base_model base_checkpoint repo author date license tags language nsfw rating favourite'],
    ['Use', 'model', 'preferred_weight preferred_weight_range negative_prompt usage_hint prediction_type resolution clip_skip negative'],
    ['Adapter', 'adapter', 'type format rank alpha scale conv_rank dora rslora modules blocks targets'],
    ['Weights', 'model', 'precision quantization parameters size vectors llm evidence'],
    ['File', 'file', 'bytes tensors dtypes'],
];

/** Where a rating is from: facts of one's own go first. @param {Info} info */
const ownSource = ({ sidecars = [] }) => sidecars.some((one) => one.kind === 'own.json') ? 'own' : 'sidecars';

/** All facts as lists with headings. @param {Info} info @returns {HTMLElement[]} */
export function factRows(info) {
    const conflicts = new Set(info.conflicts?.map(fieldOf));
    return FACT_GROUPS.flatMap(([title, of, keys]) => {
        const all = /** @type {any} */ (info)[of] ?? {},
            rows = keys.split(' ').filter((key) => isGiven(all[key])).map((key) =>
                factRow(key, all[key].source === undefined ? { value: all[key], source: /^(rating|favourite)$/.test(key) ? ownSource(info) : 'tensors', trust: 100 } : all[key], stemOf(info), conflicts.has(key)));
        return rows.length ? el('div.group', el('h4.heading', title), el('dl.facts', rows)) : [];
    });
}
