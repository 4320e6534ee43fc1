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
export function hashRows({ computed = {}, recorded = [], mismatches = [] } = {}) {
    return [...new Set([...recorded.map((one) => one.algo), ...Object.keys(computed)])].flatMap((algo) => {
        const value = Object.hasOwn(computed, algo) ? computed[algo] : null, [claim] = recorded.filter((one) => one.algo === algo);
        const wrong = mismatches.filter((one) => one.algo === algo);
        const agrees = claim && !wrong.length;
        if (value) return [{ algo, value, state: agrees ? 'verified' : 'computed', source: agrees ? claim.source : undefined },
            ...wrong.map(({ recorded: other, source, known }) => ({ algo, value: other, state: known ? 'differs, harmless' : 'differs', source, note: known }))];
        return recorded.filter((one, i) => one.algo === algo && recorded.findIndex((other) => other.algo === algo && other.value === one.value) === i)
            .map((one) => ({ ...one, state: 'recorded' }));
    });
}

const USES = /** @type {Record<string, string>} */ (/** @type {unknown} */ ({
    __proto__: null,
    image: 'selling pictures', rentcivit: 'generation on CivitAI', rent: 'generation services', sell: 'selling the model',
}));

/** What CivitAI's permissions say, in words. @param {any} may @returns {string[]} */
export function permissionWords(may) {
    const uses = may?.commercial?.map((/** @type {string} */ one) => USES[one.toLowerCase()]).filter(Boolean);
    const answer = (/** @type {unknown} */ is, /** @type {string} */ yes, /** @type {string} */ no) => is === true ? [yes] : is === false ? [no] : [];
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
export function copyLine(text, shown, what, ...more) {
    return el('p', { class: 'command' }, shown, copyButton(text, what, 'Copy'), more);
}

/** A command for a terminal. @param {string} text */
export function commandLine(text) {
    return copyLine(text, el('code', null, foreign(text)), 'the command');
}

/** @param {import('./dom.js').Child[][]} items */
const plainList = (items) => el('ul', { class: 'plain' }, items.map((one) => el('li', null, one)));

/** @param {Info} info */
function metadataPart({ metadata = {}, metadata_keys: keys = [] }) {
    const pairs = Object.entries(metadata);
    if (!pairs.length) return keys.length ? groupOf('Metadata keys', el('ul', { class: 'row keys mono' }, keys.map((key) => el('li', null, foreign(key))))) : null;
    return groupOf(`Metadata, ${plural(pairs.length, 'key')}`, el('dl', { class: 'metadata' }, pairs.map(([key, value]) => el('div', null,
        el('dt', { class: 'mono' }, foreign(key), copyButton(value, key)),
        el('dd', null, value.length <= 200 ? foreign(value) : el('details', null,
            el('summary', null, foreign(value.slice(0, 120) + '…'), el('span', { class: 'muted' }, ` ${plural(value.length, 'character')}`)),
            el('pre', { tabindex: 0 }, foreign(value))))))));
}

/** @param {Info} info */
function importPart({ import: of }) {
    return of && groupOf(el('span', null, 'Format: ', foreign(of.title ?? of.format)), of.left_out?.length && tableOf(['left out', 'count', 'what'],
        of.left_out.map((one) => [one.reason, one.count, one.text ?? one.path])),
    (of.branches?.length ?? 0) > 1 && tableOf(['part', 'tensors', 'read'], (of.branches ?? []).map((one) => [one.path || '(all)', one.tensors, one.chosen])),
    el('p', { class: 'small-text muted' }, '“safetensors convert” makes it safetensors.'));
}

/** Elements of the section. @param {Info} info */
export function fileParts(info) {
    const stem = stemOf(info), { file, civitai, sidecars = [], privacy = [], cut = [] } = info;
    const may = permissionWords(civitai?.permissions), licence = info.model.license;
    const parts = [...info.model.components ?? [], ...info.adapter?.components ?? []];
    const tones = /** @type {Record<string, string>} */ ({ verified: 'good', differs: 'bad' });
    const hashes = hashRows(info.hashes).map((one) => el('li', null, el('span', { class: 'muted' }, visible(one.algo)),
        el('span', { class: 'hash' }, el('code', null, foreign(one.value)), copyButton(one.value, one.algo)),
        el('span', null, el('span', { class: `badge ${tones[one.state] ?? ''}` }, one.state)),
        el('span', { class: 'muted tiny' }, foreign([one.source && sourceWords(one.source, stem), one.note].filter(Boolean).join(', ')))));
    return [
        groupOf('File', pairList([['path', info.path, info.path],
            ['bytes', file?.bytes !== undefined && `${sizeText(file.bytes)} (${plural(file.bytes, 'byte')})`],
            ['files', (info.files ?? 1) > 1 && info.files], ['AIR', civitai?.air, civitai?.air]])),
        importPart(info),
        hashes.length && groupOf('Hashes', el('ul', { class: 'hashes' }, hashes)),
        (licence || may.length) && groupOf('Licence', plainList([licence && [foreign(valueText(licence.value))], ...may.map((one) => [one])].filter(Boolean))),
        parts.length && groupOf('Components', tableOf(['part', 'architecture', 'dtype', 'parameters', 'size'],
            parts.map((one) => [labelOf(one.part), factText('architecture', one.architecture), one.dtype, countText(one.parameters), sizeText(one.bytes)]))),
        sidecars.length && groupOf('Sidecars', plainList(sidecars.map((one) => [foreign(one.path), ' ', one.error
            ? el('span', { class: 'bad' }, 'not used: ', foreign(one.error))
            : MATCHES[one.match ?? ''] && el('span', { class: `badge ${MATCHES[one.match ?? ''][0]}` }, MATCHES[one.match ?? ''][1])]))),
        privacy.length && groupOf('Private data in the metadata', plainList(privacy
            .map((one) => [el('span', { class: 'mono' }, foreign(one.key)), ': ', visible(labelOf(one.what.replace('-', ' ')))]))),
        metadataPart(info),
        cut.length && groupOf('Left out of this page', el('p', { class: 'small-text' }, foreign(cut.map(labelOf).join(', ')), ': shown in full by'),
            commandLine(`safetensors info ${shellWord(info.path)}`)),
    ];
}
