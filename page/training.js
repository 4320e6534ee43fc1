// How a model was trained: settings, datasets, frequent tags as bars, what it was merged from.
import { copyButton, copyText } from './copy.js';
import { append, bar, el, foreign } from './dom.js';
import { isGiven, labelOf, timeText, valueText } from './facts.js';
import { plural } from './text.js';

/** Those that are known, as one text. @param {...unknown} words */
export const wordsOf = (...words) => words.filter(Boolean).join(' ');

/** "1 h 20 min". @param {number} seconds */
export function durationText(seconds) {
    const minutes = Math.round(seconds / 60), hours = Math.floor(minutes / 60);
    return minutes < 1 ? `${Math.round(seconds)} s` : wordsOf(hours && `${hours} h`, minutes % 60 && `${minutes % 60} min`);
}

/** "94 %", and "<1 %" of what is there at all. @param {number} share */
export const percentText = (share) => share > 0 && share < 0.01 ? '<1 %' : `${Math.round(share * 100)} %`;

/** "8 of 10". @param {unknown} at @param {unknown} planned */
const progressText = (at, planned) => isGiven(at) && isGiven(planned) && at !== planned ? `${at} of ${planned}` : at ?? planned;

/**
 * A heading with what belongs to it; null if nothing does.
 * @param {import('./dom.js').Child} title
 * @param {...(import('./dom.js').Child | import('./dom.js').Child[])} children
 */
export function groupOf(title, ...children) {
    const all = children.flat().filter(Boolean);
    return all.length ? el('div.group', el('h4.heading', title), all) : null;
}

/** Keys and values, those that are known; a third item is what a button copies. @param {[string, unknown, string?][]} pairs @param {string} [className] */
export function pairList(pairs, className = '') {
    const kept = pairs.filter((pair) => isGiven(pair[1]));
    return kept.length ? el('dl', { class: `pairs ${className}` }, kept.map(([key, value, copied]) => el('div', el('dt.muted', labelOf(key)),
        el('dd', foreign(valueText(value)), copied && copyButton(copied, labelOf(key)))))) : null;
}

/** Columns without any value are left out. @param {string[]} head @param {unknown[][]} rows */
export function tableOf(head, rows) {
    const has = (/** @type {unknown} */ _, /** @type {number} */ i) => rows.some((row) => isGiven(row[i])), shown = head.filter(has);
    return el('div.scroll', { tabindex: 0, role: 'group', label: shown.join(', ') }, el('table.table', el('tr', shown.map((one) => el('th', { scope: 'col' }, one))),
        rows.map((row) => el('tr', row.filter(has).map((one) => el('td', foreign(valueText(one))))))));
}

/** @param {Info} info */
function tagBars({ frequent_tags: tags = [] }) {
    const most = Math.max(1, ...tags.map((one) => one.count || 0)),
        bars = (/** @type {typeof tags} */ some) => some.map(({ tag, count, coverage }) => el('li', el('button.tag', { title: 'Copy', onclick: () => copyText(tag) },
            el('span.cut', foreign(tag)), bar(coverage ?? count / most), el('span.muted.tiny.number', isGiven(coverage) ? percentText(Number(coverage)) : plural(count, 'time'))))),
        list = el('ul.tags', bars(tags.slice(0, 30))),
        more = el('button.button.small', { onclick: () => {
            append(list, bars(tags.slice(30)));
            more.remove();
        } }, `Show all ${tags.length}`);
    return tags.length ? groupOf('Most frequent tags, by share of the pictures', list,
        el('div.row', tags.length > 30 && more, copyButton(tags.map((one) => one.tag).join(', '), 'all frequent tags', 'Copy all'))) : null;
}

const SETTINGS = 'tool finished took epoch step pictures regularisation_images batch_size resolution learning_rate unet_lr text_encoder_lr optimizer scheduler '
    + 'network_module network_args mixed_precision clip_skip noise_offset seed base_checkpoint vae comment';

/** Elements of the section. @param {Info} info */
export function trainingParts(info) {
    const of = info.training ?? {}, merge = info.merge,
        shown = /** @type {Record<string, any>} */ ({
            ...of, tool: wordsOf(of.tool, of.tool_version?.slice(0, 12)), finished: timeText(of.finished_at ?? of.started_at),
            took: of.duration_s && durationText(of.duration_s), epoch: progressText(of.epoch, of.epochs), step: progressText(of.step, of.steps),
            pictures: of.images && wordsOf(of.images, of.images_with_repeats && `(${of.images_with_repeats} with repeats)`),
            regularisation_images: of.regularisation_images || null, base_checkpoint: of.base?.file, vae: of.vae?.file,
        });
    return [
        groupOf('Settings', pairList(SETTINGS.split(' ').map((key) => [key, shown[key], key === 'base_checkpoint' ? of.base?.sha256 : '']), 'two')),
        of.datasets?.length && groupOf('Datasets', tableOf(['folder', 'pictures', 'repeats', 'words'],
            of.datasets.map((one) => [one.folder, one.images, one.repeats, wordsOf(one.class_tokens, one.regularisation && '(regularisation)')]))),
        tagBars(info),
        of.buckets?.length && groupOf('Buckets', el('p.small-text', foreign(of.buckets.map((one) => `${one.resolution}: ${one.count}`).join(' · ')))),
        merge && groupOf('Merged from', pairList([['method', merge.method], ['tool', merge.tool]]),
            merge.sources?.length && tableOf(['model', 'weight', 'made of'], merge.sources.map((m) => [m.name ?? m.sha256, m.weight, m.made_from])),
            merge.recipe && el('details', el('summary', 'Recipe'), el('pre', { tabindex: 0 }, foreign(JSON.stringify(merge.recipe, null, 1))))),
    ];
}
