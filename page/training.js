// How a model was trained: settings, datasets, frequent tags as bars, what it was merged from.
import { copyButton, copyText } from './copy.js';
import { el, foreign } from './dom.js';
import { isGiven, labelOf, timeText, valueText } from './facts.js';
import { plural } from './text.js';

/** "1 h 20 min". @param {number} seconds */
export function durationText(seconds) {
    const minutes = Math.round(seconds / 60), hours = Math.floor(minutes / 60);
    if (minutes < 1) return `${Math.round(seconds)} s`;
    return [hours && `${hours} h`, minutes % 60 && `${minutes % 60} min`].filter(Boolean).join(' ');
}

/** "94 %", and "<1 %" of what is there at all. @param {number} share */
export function percentText(share) {
    return share > 0 && share < 0.01 ? '<1 %' : `${Math.round(share * 100)} %`;
}

/** "8 of 10". @param {unknown} at @param {unknown} planned */
const progressText = (at, planned) => isGiven(at) && isGiven(planned) && at !== planned ? `${at} of ${planned}` : at ?? planned;

/**
 * A heading with what belongs to it; null if nothing does.
 * @param {import('./dom.js').Child} title
 * @param {...(import('./dom.js').Child | import('./dom.js').Child[])} children
 */
export function groupOf(title, ...children) {
    const all = children.flat().filter(Boolean);
    return all.length ? el('div', { class: 'group' }, el('h4', { class: 'heading' }, title), all) : null;
}

/** Keys and values, those that are known; a third item is what a button copies. @param {[string, unknown, string?][]} pairs @param {string} [className] */
export function pairList(pairs, className = '') {
    const kept = pairs.filter((pair) => isGiven(pair[1]));
    return kept.length ? el('dl', { class: `pairs ${className}` }, kept.map(([key, value, copied]) => el('div', null, el('dt', null, labelOf(key)),
        el('dd', null, foreign(valueText(value)), copied && copyButton(copied, labelOf(key)))))) : null;
}

/** Columns without any value are left out. @param {string[]} head @param {unknown[][]} rows */
export function tableOf(head, rows) {
    const kept = head.map((_, i) => i).filter((i) => rows.some((row) => isGiven(row[i])));
    return el('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': head.join(', ') }, el('table', { class: 'table' },
        el('thead', null, el('tr', null, kept.map((i) => el('th', { scope: 'col' }, head[i])))),
        el('tbody', null, rows.map((row) => el('tr', null, kept.map((i) => el('td', null, foreign(valueText(row[i])))))))));
}

/** @param {Info} info */
function tagBars({ frequent_tags: tags = [] }) {
    if (!tags.length) return null;
    const most = Math.max(...tags.map((one) => one.count || 0), 1);
    const bars = (/** @type {typeof tags} */ some) => some.map((one) => {
        const share = el('span'), part = one.coverage ?? null;
        share.style.width = `${Math.min(100, 100 * (part ?? one.count / most))}%`;
        return el('li', null, el('button', { type: 'button', class: 'tag', title: 'Copy', onclick: () => copyText(one.tag) },
            el('span', { class: 'cut' }, foreign(one.tag)), el('span', { class: 'bar', 'aria-hidden': 'true' }, share),
            el('span', { class: 'muted tiny number' }, part === null ? plural(one.count, 'time') : percentText(part))));
    });
    const list = el('ul', { class: 'tags' }, bars(tags.slice(0, 30)));
    const more = el('button', { type: 'button', class: 'button small', onclick: () => {
        list.append(...bars(tags.slice(30)));
        more.remove();
    } }, `Show all ${tags.length}`);
    return groupOf('Most frequent tags, by share of the pictures', list,
        el('div', { class: 'row' }, tags.length > 30 && more, copyButton(tags.map((one) => one.tag).join(', '), 'all frequent tags', 'Copy all')));
}

const SETTINGS = 'tool finished took epoch step pictures regularisation_images batch_size resolution learning_rate unet_lr text_encoder_lr optimizer scheduler '
    + 'network_module network_args mixed_precision clip_skip noise_offset seed base_checkpoint vae comment';

/** Elements of the section. @param {Info} info */
export function trainingParts(info) {
    const of = info.training ?? {}, merge = info.merge;
    const shown = /** @type {Record<string, any>} */ ({
        ...of, tool: [of.tool, of.tool_version?.slice(0, 12)].filter(Boolean).join(' '), finished: timeText(of.finished_at ?? of.started_at),
        took: of.duration_s && durationText(of.duration_s), epoch: progressText(of.epoch, of.epochs), step: progressText(of.step, of.steps),
        pictures: of.images && `${of.images}${of.images_with_repeats ? ` (${of.images_with_repeats} with repeats)` : ''}`,
        regularisation_images: of.regularisation_images || null, base_checkpoint: of.base?.file, vae: of.vae?.file,
    });
    return [
        groupOf('Settings', pairList(SETTINGS.split(' ').map((key) => [key, shown[key], key === 'base_checkpoint' ? of.base?.sha256 : '']), 'two')),
        of.datasets?.length && groupOf('Datasets', tableOf(['folder', 'pictures', 'repeats', 'words'],
            of.datasets.map((one) => [one.folder, one.images, one.repeats, `${one.class_tokens ?? ''}${one.regularisation ? ' (regularisation)' : ''}`]))),
        tagBars(info),
        of.buckets?.length && groupOf('Buckets', el('p', { class: 'small-text' }, foreign(of.buckets.map((one) => `${one.resolution}: ${one.count}`).join(' · ')))),
        merge && groupOf('Merged from', pairList([['method', merge.method], ['tool', merge.tool]]),
            merge.sources?.length && tableOf(['model', 'weight'], merge.sources.map((one) => [one.name ?? one.sha256 ?? one.autov1, one.weight])),
            merge.recipe && el('details', null, el('summary', null, 'Recipe'), el('pre', { tabindex: 0 }, foreign(JSON.stringify(merge.recipe, null, 1))))),
    ];
}
