// Files of a model: hashes, licence, sidecars, components, metadata, and what the page leaves out.
import { copyButton } from './copy.js';
import { el, foreign } from './dom.js';
import { factText, labelOf, sourceWords, stemOf, valueText } from './facts.js';
import { countText, plural, sizeText, visible } from './text.js';
import { groupOf, pairList, tableOf } from './training.js';

/**
 * A row for each digest: verified, differs (and the recorded one), computed or recorded.
 * @param {Info['hashes']} hashes
 * @returns {{ algo: string, value: string, state: string, source?: string, note?: string }[]}
 */
export const hashRows = ({ computed = {}, recorded = [], mismatches = [] } = {}) =>
    [...new Set([...recorded.map((one) => one.algo), ...Object.keys(computed)])].flatMap((algo) => {
        const said = recorded.filter((one) => one.algo === algo), wrong = mismatches.filter((one) => one.algo === algo),
            value = Object.hasOwn(computed, algo) && computed[algo], agrees = said[0] && !wrong[0];
        return value ? [{ algo, value, state: agrees ? 'verified' : 'computed', source: agrees ? said[0].source : undefined },
            ...wrong.map(({ recorded: other, source, known }) => ({ algo, value: other, state: known ? 'differs, harmless' : 'differs', source, note: known }))]
            : said.filter((one, i) => said.findIndex((other) => other.value === one.value) === i).map((one) => ({ ...one, state: 'recorded' }));
        });

const USES = /** @type {Record<string, string>} */ (/** @type {unknown} */ ({
    __proto__: null,
    image: 'selling pictures', rentcivit: 'generation on CivitAI', rent: 'generation services', sell: 'selling the model',
}));

/** What CivitAI's permissions say, in words. @param {any} may @returns {string[]} */
export function permissionWords(may) {
    const uses = may?.commercial?.map((/** @type {string} */ one) => USES[one.toLowerCase()]).filter(Boolean),
        answer = (/** @type {unknown} */ is, /** @type {string} */ yes, /** @type {string} */ no) => is === true ? [yes] : is === false ? [no] : [];
    return [...answer(may?.credit, 'credit is required', 'no credit needed'),
        ...uses ? [uses.length ? `commercial use: ${uses.join(', ')}` : 'no commercial use'] : [],
        ...answer(may?.derivatives, 'merges may be shared', 'merges may not be shared'),
        ...answer(may?.relicense, 'merges may have other permissions', 'merges keep these permissions')];
}

const MATCHES = /** @type {Record<string, [tone: string, words: string]>} */ (/** @type {unknown} */ ({
    __proto__: null,
    sha256: ['good', 'about this very file'], weights: ['good', 'same weights, edited metadata'], differs: ['bad', 'about another file'],
    size: ['', 'same size'], 'size-differs': ['warn', 'another size'],
}));

/** A word for a shell: as it is, or in single quotes. @param {string} text */
export function shellWord(text) {
    const word = text.startsWith('-') ? './' + text : text;
    return /^[\w.,/:@%+-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

/** A line to copy. @param {string | (() => string)} text @param {Node} shown @param {string} what @param {...import('./dom.js').Child} more */
export const copyLine = (text, shown, what, ...more) => el('p.command', shown, copyButton(text, what, 'Copy'), more);

/** A command for a terminal. @param {string} verb @param {Info} info */
export function commandLine(verb, { path }) {
    const text = `safetensors ${verb} ${shellWord(path)}`;
    return copyLine(text, el('code', foreign(text)), 'the command');
}

/** @param {import('./dom.js').Child[][]} items */
const plainList = (items) => el('ul.plain', items.map((one) => el('li', one)));

/** @param {Info} info */
function metadataPart({ metadata = {}, metadata_keys: keys = [] }) {
    const pairs = Object.entries(metadata);
    return !pairs.length ? groupOf('Metadata keys', keys.length && el('ul.row.keys.mono', keys.map((key) => el('li', foreign(key)))))
        : groupOf(`Metadata, ${plural(pairs.length, 'key')}`, el('dl.metadata', pairs.map(([key, value]) => el('div',
        el('dt.mono.muted', foreign(key), copyButton(value, key)),
        el('dd', value.length <= 200 ? foreign(value) : el('details',
            el('summary', foreign(value.slice(0, 120) + '…'), el('span.muted', ` ${plural(value.length, 'character')}`)), el('pre', { tabindex: 0 }, foreign(value))))))));
}

/** @param {Info} info */
const importPart = ({ import: of }) => of && groupOf(el('span', 'Format: ', foreign(of.title ?? of.format)),
    of.left_out?.length && tableOf(['left out', 'count', 'what'], of.left_out.map((one) => [one.reason, one.count, one.text ?? one.path])),
    of.branches?.[1] && tableOf(['part', 'tensors', 'read'], of.branches.map((one) => [one.path || '(all)', one.tensors, one.chosen])),
    el('p.small-text.muted', '“safetensors convert” makes it safetensors.'));

/** Elements of the section. @param {Info} info */
export function fileParts(info) {
    const stem = stemOf(info), { file, civitai, sidecars = [], privacy = [], cut = [] } = info,
        licence = [info.model.license && foreign(valueText(info.model.license.value)), ...permissionWords(civitai?.permissions)].filter(Boolean),
        parts = [...info.model.components ?? [], ...info.adapter?.components ?? []],
        tones = /** @type {Record<string, string>} */ ({ verified: 'good', differs: 'bad' }),
        badge = (/** @type {string} */ tone, /** @type {string} */ words) => el('span', { class: `badge ${tone}` }, words),
        hashes = hashRows(info.hashes).map(({ algo, value, state, source, note }) => el('li', el('span.muted', visible(algo)),
            el('span.hash', el('code', foreign(value)), copyButton(value, algo)), el('span', badge(tones[state] ?? '', state)),
            el('span.muted.tiny', foreign([source && sourceWords(source, stem), note].filter(Boolean).join(', ')))));
    return [
        groupOf('File', pairList([['path', info.path, info.path],
            ['bytes', file?.bytes !== undefined && `${sizeText(file.bytes)} (${plural(file.bytes, 'byte')})`],
            ['files', (info.files ?? 1) > 1 && info.files], ['AIR', civitai?.air, civitai?.air]])),
        importPart(info),
        hashes.length && groupOf('Hashes', el('ul.hashes', hashes)),
        licence.length && groupOf('Licence', plainList(licence.map((one) => [one]))),
        parts.length && groupOf('Components', tableOf(['part', 'architecture', 'dtype', 'parameters', 'size'],
            parts.map((one) => [labelOf(one.part), factText('architecture', one.architecture), one.dtype, countText(one.parameters), sizeText(one.bytes)]))),
        sidecars.length && groupOf('Sidecars', plainList(sidecars.map(({ path, error, match = '' }) => [foreign(path), ' ',
            error ? el('span.bad', 'not used: ', foreign(error)) : MATCHES[match] && badge(...MATCHES[match])]))),
        privacy.length && groupOf('Private data in the metadata', plainList(privacy.map(({ key, what }) => [el('span.mono', foreign(key)), `: ${visible(what.replace('-', ' '))}`]))),
        metadataPart(info),
        cut.length && groupOf('Left out of this page', el('p.small-text', foreign(cut.map(labelOf).join(', ')), ': shown in full by'), commandLine('info', info)),
    ];
}
