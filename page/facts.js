// Facts: values, where they come from, how far they can be trusted, and what contradicts them.
import { el, foreign } from './dom.js';
import { icon } from './icons.js';
import { countText, sizeText, visible } from './text.js';

/** Words for keys and for ids that are the same in all pages. @type {Map<string, string>} */
const labels = new Map(Object.entries({
    vae: 'VAE', controlnet: 'ControlNet', control_lora: 'Control-LoRA', ip_adapter: 'IP-Adapter', t2i_adapter: 'T2I-Adapter', unet: 'U-Net',
    lora: 'LoRA', locon: 'LoCon', loha: 'LoHa', lokr: 'LoKr', glora: 'GLoRA', ia3: 'IA3', oft: 'OFT', boft: 'BOFT', full: 'full-weight',
    v: 'v-prediction', base_checkpoint: 'trained on', bytes: 'size', conv_rank: 'conv rank', dora: 'DoRA', license: 'licence', llm: 'layers',
    nsfw: 'not safe for work', preferred_weight: 'strength', preferred_weight_range: 'strength range', prediction_type: 'prediction',
    repo: 'repository', rslora: 'rsLoRA', size: 'extent', text_encoder_lr: 'text encoder rate', unet_lr: 'U-Net rate', version_name: 'version',
}));

/** @param {string} id */
export function labelOf(id) {
    return labels.get(id) ?? id.replace(/_/g, ' ');
}

/** Whether there is anything to show. @param {unknown} value */
export function isGiven(value) {
    return value !== undefined && value !== null && value !== '' && value !== false;
}

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
    const { min = null, max = null, mode = null } = range;
    if (min === null || max === null) return min === null ? `at most ${max}` : `at least ${min}`;
    if (min === max) return String(min);
    return mode === null ? `${min} to ${max}` : `${mode} (${min} to ${max})`;
}

/** "2025-04-05 17:41". @param {unknown} time */
export function timeText(time) {
    return isGiven(time) ? String(time).replace(/T(\d\d:\d\d).*/, ' $1') : '';
}

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
export function factText(key, value) {
    return FACT_TEXTS[key]?.(value) ?? valueText(value);
}

/** The name of a model's file without its ending. @param {{ path: string }} info */
export function stemOf({ path }) {
    return path.replace(/^.*[\\/]/, '').replace(/\.[^.]*$/, '');
}

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
    return { __proto__: null, filename: 'file name', folder: 'folder name', online: 'CivitAI, online', hub: 'Hugging Face' }[where] ?? where;
}

/** How well a fact is established, in a word. @param {string} source @param {number} trust */
export function trustWord(source, trust) {
    if (source === 'tensors') return trust >= 80 ? 'measured' : 'inferred';
    if (/^(filename|folder)/.test(source)) return trust >= 80 ? 'by name' : 'guessed';
    return trust <= 10 ? 'mismatched' : trust < 60 ? 'uncertain' : 'declared';
}

/** Trust and source, as a bar and in words. @param {any} fact @param {string} stem */
function trustBar({ source, trust }, stem) {
    const share = el('span');
    share.style.width = `${Math.max(6, Math.min(100, trust))}%`;
    return [el('span', { class: 'bar trust', 'data-trust': trust >= 80 ? 'high' : trust >= 60 ? 'fair' : 'low', 'aria-hidden': 'true' }, share),
        el('span', { class: 'trust-words' }, trustWord(source, trust), el('span', { class: 'muted' }, ' · ', foreign(sourceWords(source, stem))))];
}

/** Who says what; the first is what is shown elsewhere. @param {string} key @param {any[]} facts @param {string} stem @param {boolean} full */
function claims(key, facts, stem, full) {
    return el('ul', { class: 'claims' }, facts.map((one, i) => el('li', null,
        el('span', { class: 'claim' }, foreign(factText(key, one.value)), i === 0 && facts.length > 1 && el('span', { class: 'muted tiny' }, ' (shown)')),
        el('span', { class: 'from' }, trustBar(one, stem), full && el('span', { class: 'mono muted tiny' }, foreign(one.source), `, trust ${one.trust}`)))));
}

/** @param {{ field: string }} conflict */
const fieldOf = (conflict) => conflict.field.replace(/^\w+\./, '');

/** What contradicts itself, or null. @param {Info} info */
export function conflictNote(info) {
    const conflicts = info.conflicts ?? [];
    return conflicts.length ? el('div', { class: 'note', 'data-note': 'conflicts' },
        el('p', { class: 'note-title warn' }, icon('warn'), 'Sources disagree'),
        conflicts.map((one) => el('div', { class: 'conflict' }, el('p', { class: 'muted' }, visible(labelOf(fieldOf(one)))),
            claims(fieldOf(one), one.candidates, stemOf(info), false)))) : null;
}

/**
 * A row: value, trust and source; a click on these shows all candidates and their full source.
 * @param {string} key
 * @param {any} fact
 * @param {string} stem
 * @param {boolean} conflict
 */
function factRow(key, fact, stem, conflict) {
    const others = fact.others ?? [];
    const unlike = others.filter((/** @type {any} */ one) => valueText(one.value) !== valueText(fact.value)).length;
    const all = el('dd', { class: 'fact-all', hidden: true });
    const more = el('button', {
        type: 'button', class: 'from', 'aria-expanded': 'false', title: visible(`${fact.source}, trust ${fact.trust} of 100`),
        onclick: () => {
            if (!all.firstChild) all.append(claims(key, [fact, ...others], stem, true));
            all.hidden = !all.hidden;
            more.setAttribute('aria-expanded', String(!all.hidden));
        },
    }, trustBar(fact, stem), others.length > 0 && el('span', { class: 'muted' },
        unlike ? `${unlike} other${unlike > 1 ? 's' : ''}` : `+${others.length}`), icon('down'));
    return el('div', { class: conflict ? 'fact conflict' : 'fact', 'data-fact': key }, el('dt', null, labelOf(key)),
        el('dd', { class: 'fact-value' }, conflict && el('span', { class: 'warn' }, icon('warn'), el('span', { class: 'unseen' }, 'sources disagree: ')),
            foreign(factText(key, fact.value))),
        el('dd', null, more), all);
}

/** @type {[title: string, of: 'model' | 'adapter' | 'file', keys: string][]} */
const FACT_GROUPS = [
    ['Identity', 'model', 'name version_name kind architecture variant family base_model base_checkpoint repo author date license tags language nsfw rating'],
    ['Use', 'model', 'preferred_weight preferred_weight_range negative_prompt usage_hint prediction_type resolution clip_skip negative'],
    ['Adapter', 'adapter', 'type format rank alpha scale conv_rank dora rslora modules blocks targets'],
    ['Weights', 'model', 'precision quantization parameters size vectors llm evidence'],
    ['File', 'file', 'bytes tensors dtypes'],
];

/** All facts as lists with headings. @param {Info} info @returns {HTMLElement[]} */
export function factRows(info) {
    const conflicts = new Set(info.conflicts?.map(fieldOf));
    return FACT_GROUPS.flatMap(([title, of, keys]) => {
        const all = /** @type {any} */ (info)[of] ?? {};
        const rows = keys.split(' ').filter((key) => isGiven(all[key])).map((key) => {
            const fact = all[key].source === undefined ? { value: all[key], source: 'tensors', trust: 100 } : { value: all[key], ...all[key] };
            return factRow(key, fact, stemOf(info), conflicts.has(key));
        });
        return rows.length ? el('div', { class: 'group' }, el('h4', { class: 'heading' }, title), el('dl', { class: 'facts' }, rows)) : [];
    });
}
