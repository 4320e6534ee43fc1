// How a model was trained: settings, datasets, frequent tags as bars, what it was merged from.
import { copyButton, copyText } from './copy.js';
import { el, foreign } from './dom.js';
import { labelOf, valueText } from './facts.js';
import { plural } from './text.js';

/** "1 h 20 min". @param {number} seconds */
export function durationText(seconds) {
    const minutes = Math.round(seconds / 60), hours = Math.floor(minutes / 60);
    if (minutes < 1) return `${Math.round(seconds)} s`;
    return hours ? `${hours} h${minutes % 60 ? ` ${minutes % 60} min` : ''}` : `${minutes} min`;
}

/** "94 %", and "<1 %" of what is there at all. @param {number} share */
export function shareText(share) {
    return share > 0 && share < 0.01 ? '<1 %' : `${Math.round(share * 100)} %`;
}

/** @param {any} of @param {any} planned */
const progress = (of, planned) => of === undefined ? valueText(planned) : planned !== undefined && planned !== of ? `${of} of ${planned}` : valueText(of);

/**
 * A list of keys and values; empty ones are left out.
 * @param {[string, unknown, string?][]} pairs key, value, and what a copy button copies
 */
export function pairList(pairs) {
    const kept = pairs.filter(([, value]) => value !== undefined && value !== null && value !== '');
    return kept.length ? el('dl', { class: 'kv' }, kept.flatMap(([key, value, copied]) => [el('dt', null, foreign(key)),
        el('dd', null, value instanceof Node ? value : foreign(valueText(value)), copied && copyButton(copied, labelOf(key)))])) : null;
}

/** A heading with what belongs to it; null without. @param {string} title @param {...(import('./dom.js').Child | import('./dom.js').Child[])} children */
export function groupOf(title, ...children) {
    return children.flat().some(Boolean) ? el('div', { class: 'group' }, el('h4', { class: 'heading' }, title), ...children) : null;
}

/** @param {string[]} head @param {unknown[][]} rows */
export function tableOf(head, rows) {
    return el('div', { class: 'scroll' }, el('table', { class: 'table' }, el('thead', null, el('tr', null, head.map((one) => el('th', { scope: 'col' }, one)))),
        el('tbody', null, rows.map((row) => el('tr', null, row.map((one) => el('td', { class: typeof one === 'number' ? 'number' : null },
            one instanceof Node ? one : foreign(valueText(typeof one === 'number' ? one.toLocaleString('en') : one)))))))));
}

const SHOWN = 30;

/** @param {Info} info */
function tagBars(info) {
    const tags = info.frequent_tags ?? [];
    if (!tags.length) return null;
    const most = Math.max(...tags.map((one) => one.count || 0), 1);
    const bar = (/** @type {any} */ one) => {
        const share = el('span');
        share.style.width = `${Math.min(100, 100 * (one.coverage ?? one.count / most))}%`;
        return el('li', null, el('button', { type: 'button', class: 'tag', title: 'Copy', onclick: () => copyText(one.tag) },
            el('span', { class: 'tag-name' }, foreign(one.tag)), el('span', { class: 'bar', 'aria-hidden': 'true' }, share),
            el('span', { class: 'tag-share' }, one.coverage === undefined || one.coverage === null ? plural(one.count, 'time') : shareText(one.coverage))));
    };
    const list = el('ul', { class: 'tags' }, tags.slice(0, SHOWN).map(bar));
    const more = tags.length > SHOWN && el('button', {
        type: 'button', class: 'button small',
        onclick: (/** @type {any} */ event) => {
            list.append(...tags.slice(SHOWN).map(bar));
            event.target.remove();
        },
    }, `Show all ${tags.length}`);
    return groupOf('Most frequent tags, by share of the pictures', list,
        el('div', { class: 'row' }, more, copyButton(tags.map((one) => one.tag).join(', '), 'all frequent tags', 'Copy all')));
}

/** Elements of the section, or []. @param {Info} info */
export function trainingParts(info) {
    const of = info.training ?? {}, merge = info.merge;
    const rates = [of.unet_lr, of.text_encoder_lr].some((one) => one !== undefined && valueText(one) !== valueText(of.learning_rate));
    const time = (/** @type {any} */ text) => text && String(text).replace('T', ' ').replace(/(:\d\d):\d\d.*$/, '$1');
    const settings = pairList([
        ['tool', of.tool && valueText([of.tool, of.tool_version?.slice?.(0, 12)].filter(Boolean)).replace(',', '')],
        ['finished', time(of.finished_at) ?? time(of.started_at)], ['took', of.duration_s && durationText(of.duration_s)],
        ['epoch', progress(of.epoch, of.epochs)], ['step', progress(of.step, of.steps)],
        ['pictures', of.images && `${of.images}${of.images_with_repeats ? ` (${of.images_with_repeats} with repeats)` : ''}`],
        ['regularisation', of.regularisation_images || ''], ['batch size', of.batch_size], ['resolution', of.resolution],
        ['learning rate', of.learning_rate], ['of the U-Net', rates ? of.unet_lr : ''], ['of text encoders', rates ? of.text_encoder_lr : ''],
        ['optimizer', of.optimizer], ['scheduler', of.scheduler], ['network', of.network_module],
        ['arguments', of.network_args && valueText(of.network_args)], ['precision', of.mixed_precision], ['clip skip', of.clip_skip],
        ['noise offset', of.noise_offset], ['seed', of.seed], ['base', of.base?.file, of.base?.sha256 ?? of.base?.file], ['VAE', of.vae?.file],
        ['comment', of.comment],
    ]);
    return [
        groupOf('Settings', settings),
        of.datasets?.length && groupOf('Datasets', tableOf(['folder', 'pictures', 'repeats', 'words'],
            of.datasets.map((/** @type {any} */ one) => [one.folder, one.images, one.repeats, `${one.class_tokens ?? ''}${one.regularisation ? ' (regularisation)' : ''}`]))),
        tagBars(info),
        of.buckets?.length && groupOf('Buckets', el('p', { class: 'small-text' }, foreign(of.buckets.map((/** @type {any} */ one) => `${one.resolution}: ${one.count}`).join(' · ')))),
        merge && groupOf('Merged from', pairList([['method', merge.method], ['tool', merge.tool]]),
            merge.sources?.length && tableOf(['model', 'weight'], merge.sources.map((/** @type {any} */ one) => [one.name ?? one.sha256 ?? one.autov1, one.weight])),
            merge.recipe && el('details', null, el('summary', null, 'Recipe'), el('pre', { tabindex: 0 }, foreign(JSON.stringify(merge.recipe, null, 1))))),
    ].filter(Boolean);
}
