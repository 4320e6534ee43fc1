// Facts: values, where they come from, how far they can be trusted, and what contradicts them.
import { el, foreign } from './dom.js';
import { icon } from './icons.js';
import { countText, sizeText, visible } from './text.js';

/** Words for ids, by id: data.js adds those of the catalogue. @type {Map<string, string>} */
export const labels = new Map(Object.entries({
    diffusion_model: 'diffusion model', text_encoder: 'text encoder', vae: 'VAE', image_encoder: 'image encoder',
    controlnet: 'ControlNet', control_lora: 'Control-LoRA', ip_adapter: 'IP-Adapter', t2i_adapter: 'T2I-Adapter',
    motion_module: 'motion module', language_model: 'language model', audio_model: 'audio model', vision_model: 'vision model',
    lora: 'LoRA', locon: 'LoCon', loha: 'LoHa', lokr: 'LoKr', glora: 'GLoRA', ia3: 'IA3', oft: 'OFT', boft: 'BOFT',
    full: 'full-weight', v: 'v-prediction', edm: 'EDM', unet: 'U-Net', ema: 'EMA', transformer: 'transformer',
    license: 'licence', nsfw: 'not safe for work', prediction_type: 'prediction', preferred_weight: 'strength',
    base_checkpoint: 'trained on', version_name: 'version', conv_rank: 'rank of convolutions', dora: 'DoRA', rslora: 'rsLoRA',
    vectors: 'vectors', llm: 'layers', repo: 'repository', dtypes: 'dtypes',
}));

/** @param {string} id */
export function labelOf(id) {
    return labels.get(id) ?? id.replace(/_/g, ' ');
}

/** A value as text. @param {unknown} value @returns {string} */
export function valueText(value) {
    if (typeof value === 'boolean') return value ? 'yes' : 'no';
    if (Array.isArray(value)) return value.map(valueText).join(', ');
    if (value && typeof value === 'object') return Object.entries(value).filter((pair) => pair[1] !== null)
        .map(([key, one]) => `${labelOf(key)} ${valueText(one)}`).join(', ');
    return String(value ?? '');
}

/** "4" or "16 (4 to 32)" of an object with min, max and mode. @param {any} range */
export function rangeText(range) {
    if (typeof range !== 'object' || !range) return valueText(range);
    const { min = null, max = null, mode = null } = range;
    if (min === null || max === null) return min === null ? `at most ${max}` : `at least ${min}`;
    if (min === max) return String(min);
    return mode === null ? `${min} to ${max}` : `${mode} (${min} to ${max})`;
}

/**
 * Where a fact comes from, in words: "civitai.info file" of "sidecar:a.civitai.info:/name".
 * @param {string} source
 * @param {string} [stem] of the model's file
 */
export function sourceWords(source, stem) {
    const [, where, rest] = /^(\w+):?([^]*)$/.exec(source) ?? ['', source, ''];
    if (where === 'header') return 'header';
    if (where === 'sidecar') {
        const file = rest.replace(/:\/[^]*$/, '').replace(/^[^]*[\\/]/, '');
        return stem && file.startsWith(stem + '.') ? `${file.slice(stem.length + 1)} file` : file;
    }
    return { filename: 'file name', folder: 'folder name', online: 'CivitAI, online', hub: 'Hugging Face' }[where] ?? source;
}

/** How well a fact is established, in a word. @param {string} source @param {number} trust */
export function trustWord(source, trust) {
    if (source === 'tensors') return trust >= 80 ? 'measured' : 'inferred';
    if (/^(filename|folder)/.test(source)) return trust >= 80 ? 'by name' : 'guessed';
    return trust <= 10 ? 'mismatched' : trust < 60 ? 'uncertain' : 'declared';
}

/** @param {string} source @param {number} trust @param {string} [stem] */
function trustBar(source, trust, stem) {
    const share = el('span');
    share.style.width = `${Math.max(6, Math.min(100, trust))}%`;
    return [el('span', { class: 'bar trust', 'data-trust': trust >= 80 ? 'high' : trust >= 60 ? 'fair' : 'low', 'aria-hidden': 'true' }, share),
        el('span', { class: 'trust-words' }, trustWord(source, trust), el('span', { class: 'muted' }, ' · ', foreign(sourceWords(source, stem))))];
}

/** The name of a model's file without its ending. @param {Info} info */
export function stemOf(info) {
    return info.path.replace(/^.*[\\/]/, '').replace(/\.[^.]*$/, '');
}

/** @param {any} one @param {string} stem @param {boolean} [used] */
function candidate(one, stem, used) {
    return el('tr', null, el('td', null, foreign(labelOf(valueText(one.value))), used && el('span', { class: 'badge' }, 'shown')),
        el('td', null, el('span', { class: 'fact-source' }, trustBar(one.source, one.trust, stem))),
        el('td', { class: 'mono tiny muted' }, foreign(one.source), ` trust ${one.trust}`));
}

/** @param {any[]} list @param {string} stem @param {boolean} [first] */
function candidates(list, stem, first) {
    return el('table', { class: 'table candidates' }, el('tbody', null, list.map((one, i) => candidate(one, stem, first && i === 0))));
}

/** What contradicts itself, or null. @param {Info} info */
export function conflictNote(info) {
    if (!info.conflicts?.length) return null;
    return el('div', { class: 'note warn', 'data-note': 'conflicts' },
        el('p', { class: 'note-title' }, icon('warn'), 'Sources disagree'),
        info.conflicts.map((one) => el('div', { class: 'conflict' },
            el('p', null, 'about the ', el('strong', null, visible(labelOf(one.field.replace(/^\w+\./, ''))))),
            candidates(one.candidates, stemOf(info), true))));
}

/**
 * A row: value, trust and source; a click on these shows all candidates.
 * @param {string} key
 * @param {any} fact
 * @param {string} stem
 * @param {boolean} conflict
 */
function factRow(key, fact, stem, conflict) {
    const others = fact.others ?? [];
    const differing = others.filter((/** @type {any} */ one) => valueText(one.value) !== valueText(fact.value)).length;
    const all = el('dd', { class: 'fact-all', hidden: true });
    const more = el('button', {
        type: 'button', class: 'fact-source', 'aria-expanded': 'false', title: visible(`${fact.source}, trust ${fact.trust} of 100`),
        onclick: () => {
            if (!all.firstChild) all.append(candidates([fact, ...others], stem, others.length > 0));
            all.hidden = !all.hidden;
            more.setAttribute('aria-expanded', String(!all.hidden));
        },
    }, trustBar(fact.source, fact.trust, stem), others.length > 0 && el('span', { class: 'muted fact-more' },
        differing ? `${differing} other${differing > 1 ? 's' : ''}` : `+${others.length}`), icon('down'));
    return el('div', { class: conflict ? 'fact conflict' : 'fact', 'data-fact': key }, el('dt', null, labelOf(key)),
        el('dd', { class: 'fact-value' }, conflict && el('span', { class: 'warn', title: 'sources disagree' }, icon('warn'), el('span', { class: 'unseen' }, 'sources disagree: ')),
            foreign(fact.text ?? labelOf(valueText(fact.value)))),
        el('dd', { class: 'fact-from' }, more), all);
}

/** @type {[title: string, of: 'model' | 'adapter' | 'file', keys: string][]} */
const GROUPS = [
    ['Identity', 'model', 'name version_name kind architecture variant family base_model base_checkpoint repo author date license tags language nsfw rating'],
    ['Use', 'model', 'preferred_weight preferred_weight_range negative_prompt usage_hint prediction_type resolution clip_skip negative'],
    ['Adapter', 'adapter', 'type format rank alpha scale conv_rank dora rslora modules blocks targets'],
    ['Weights', 'model', 'precision quantization parameters size vectors llm evidence'],
    ['File', 'file', 'bytes tensors dtypes'],
];

/** @type {Record<string, (value: any) => string>} */
const TEXTS = {
    rank: rangeText, alpha: rangeText, preferred_weight_range: rangeText, parameters: countText, bytes: sizeText,
    dtypes: (all) => Object.entries(all).map(([name, one]) => `${name} ${sizeText(one.bytes)}`).join(', '),
    blocks: (all) => all.join(' '), targets: (all) => all.join(' '),
};

/** All facts as lists with headings. @param {Info} info @returns {HTMLElement[]} */
export function factRows(info) {
    const stem = stemOf(info);
    const conflicts = new Set((info.conflicts ?? []).map((one) => one.field.replace(/^\w+\./, '')));
    return GROUPS.flatMap(([title, of, keys]) => {
        const all = /** @type {any} */ (info)[of] ?? {};
        const rows = keys.split(' ').filter((key) => all[key] !== undefined && all[key] !== null && all[key] !== false).map((key) => {
            const one = all[key];
            const isFact = one?.source !== undefined;
            const value = isFact && one.value !== undefined ? one.value : one;
            const fact = { source: isFact ? one.source : 'tensors', trust: isFact ? one.trust : 100, value, others: one.others, text: TEXTS[key]?.(value) };
            return factRow(key, fact, stem, conflicts.has(key));
        });
        return rows.length ? el('div', { class: 'group' }, el('h4', { class: 'heading' }, title), el('dl', { class: 'facts' }, rows)) : [];
    });
}
