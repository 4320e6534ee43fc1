// Files of a model: hashes, licence, sidecars, components, metadata, and what the page leaves out.
import { copyButton } from './copy.js';
import { el, foreign } from './dom.js';
import { labelOf, sourceWords, stemOf } from './facts.js';
import { sizeText, countText, plural } from './text.js';
import { groupOf, pairList, tableOf } from './training.js';

/**
 * One row for each digest: verified, differs (with the recorded one), computed or recorded.
 * @param {Info['hashes']} hashes
 * @returns {{ algo: string, value: string, state: string, note?: string, source?: string }[]}
 */
export function hashRows(hashes) {
    const computed = hashes?.computed ?? {}, recorded = hashes?.recorded ?? [], wrong = hashes?.mismatches ?? [];
    const rows = [];
    for (const algo of new Set([...recorded.map((one) => one.algo), ...Object.keys(computed)])) {
        const value = computed[algo], claims = recorded.filter((one) => one.algo === algo);
        const miss = wrong.filter((one) => one.algo === algo);
        if (value) rows.push({ algo, value, state: miss.length ? 'differs' : claims.length ? 'verified' : 'computed', source: claims[0]?.source });
        for (const one of miss) rows.push({ algo, value: one.recorded, state: one.known ? 'differs, harmless' : 'differs', note: one.known ?? 'recorded', source: one.source });
        const seen = new Set();
        for (const one of value ? [] : claims)
            if (!seen.has(one.value)) {
                rows.push({ algo, value: one.value, state: 'recorded', source: one.source });
                seen.add(one.value);
            }
    }
    return rows;
}

const USES = /** @type {Record<string, string>} */ ({
    none: 'no commercial use', image: 'selling pictures', rentcivit: 'generating on CivitAI', rent: 'generation services', sell: 'selling the model',
});

/** What the licence of CivitAI permits, in words. @param {any} may @returns {string[]} */
export function permissionWords(may) {
    if (!may) return [];
    const uses = (may.commercial ?? []).map((/** @type {string} */ one) => USES[String(one).toLowerCase()] ?? one);
    const words = (/** @type {unknown} */ answer, /** @type {string} */ yes, /** @type {string} */ no) =>
        answer === true ? [yes] : answer === false ? [no] : [];
    return [...words(may.credit, 'credit is required', 'no credit needed'),
        ...may.commercial ? [uses.length && uses[0] !== USES.none ? `commercial: ${uses.join(', ')}` : USES.none] : [],
        ...words(may.derivatives, 'merges may be shared', 'merges may not be shared'),
        ...words(may.relicense, 'merges may have other permissions', 'merges keep these permissions')];
}

const MATCHES = /** @type {Record<string, [string, string]>} */ ({
    sha256: ['good', 'about this very file'], weights: ['good', 'same weights, edited metadata'], differs: ['bad', 'about another file'],
    size: ['', 'same size'], 'size-differs': ['warn', 'another size'],
});
const PRIVATE = /** @type {Record<string, string>} */ ({
    path: 'a path of a computer', user: 'a user name', 'folder-names': 'names of folders', session: 'a training session', comment: 'a comment',
    workflow: 'a workflow', config: 'a configuration',
});

/** A word for a shell: as it is, or in single quotes. @param {string} text */
export function shellWord(text) {
    const word = text.startsWith('-') ? './' + text : text;
    return /^[\w.,/:@%+-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`;
}

/** A line for a terminal with its copy button. @param {string} text */
export function commandLine(text) {
    return el('p', { class: 'command' }, el('code', null, foreign(text)), copyButton(text, 'the command'));
}

/** @param {Info} info */
function metadataPart(info) {
    const pairs = Object.entries(info.metadata ?? {}), keys = info.metadata_keys ?? [];
    if (!pairs.length) return keys.length ? groupOf('Metadata keys', el('ul', { class: 'row keys mono' }, keys.map((key) => el('li', null, foreign(key))))) : null;
    return groupOf(`Metadata, ${plural(pairs.length, 'key')}`, el('dl', { class: 'metadata' }, pairs.map(([key, value]) => el('div', null,
        el('dt', { class: 'mono' }, foreign(key), copyButton(value, key)),
        el('dd', null, value.length <= 200 ? foreign(value) : el('details', null,
            el('summary', null, foreign(value.slice(0, 120) + '…'), el('span', { class: 'muted' }, ` ${plural(value.length, 'character')}`)),
            el('pre', { tabindex: 0 }, foreign(value))))))));
}

/** @param {Info} info */
function importPart(info) {
    const of = info.import;
    if (!of) return null;
    return groupOf(`Format: ${of.title ?? of.format}`, of.left_out?.length && tableOf(['left out', 'count', ''],
        of.left_out.map((/** @type {any} */ one) => [one.reason, one.count, one.text ?? one.path])),
        of.branches?.length > 1 && tableOf(['part', 'tensors', ''], of.branches.map((/** @type {any} */ one) => [one.path || '(all)', one.tensors, one.chosen ? 'read' : ''])),
        el('p', { class: 'small-text muted' }, '“safetensors convert” makes it safetensors.'));
}

/** Elements of the section. @param {Info} info @returns {(HTMLElement | null | undefined | false | 0)[]} */
export function fileParts(info) {
    const stem = stemOf(info), hashes = hashRows(info.hashes);
    const may = permissionWords(info.civitai?.permissions), licence = info.model.license;
    const parts = [...info.model.components ?? [], ...info.adapter?.components ?? []];
    const tones = /** @type {Record<string, string>} */ ({ verified: 'good', differs: 'bad' });
    return [
        groupOf('File', pairList([['path', info.path, info.path], ['size', info.file?.bytes !== undefined ? `${sizeText(info.file.bytes)} (${plural(info.file.bytes, 'byte')})` : ''],
            ['files', (info.files ?? 1) > 1 ? info.files : ''], ['CivitAI', info.civitai?.air, info.civitai?.air]])),
        importPart(info),
        hashes.length && groupOf('Hashes', el('ul', { class: 'hashes' }, hashes.map((one) => el('li', null,
            el('span', { class: 'hash-name' }, one.algo), el('code', { class: 'mono' }, foreign(one.value)), copyButton(one.value, one.algo),
            el('span', { class: `badge ${tones[one.state] ?? ''}` }, one.state),
            el('span', { class: 'muted tiny' }, one.note && `${one.note} `, one.source && foreign(sourceWords(one.source, stem))))))),
        (licence || may.length) && groupOf('Licence', licence && el('p', null, foreign(licence.value)),
            may.length && el('ul', { class: 'plain' }, may.map((one) => el('li', null, foreign(one))))),
        parts.length && groupOf('Components', tableOf(['part', 'architecture', 'dtype', 'parameters', 'size'],
            parts.map((one) => [labelOf(one.part), one.architecture ? labelOf(one.architecture) : '', one.dtype, countText(one.parameters), sizeText(one.bytes)]))),
        info.sidecars?.length && groupOf('Sidecars', el('ul', { class: 'plain' }, info.sidecars.map((one) => el('li', null, foreign(one.path), ' ',
            one.error ? el('span', { class: 'bad' }, 'not used: ', foreign(one.error))
                : one.match && MATCHES[one.match] && el('span', { class: `badge ${MATCHES[one.match][0]}` }, MATCHES[one.match][1]))))),
        info.privacy?.length && groupOf('Before you publish it', el('ul', { class: 'plain' }, info.privacy.map((one) => el('li', null,
            el('span', { class: 'mono' }, foreign(one.key)), ` has ${PRIVATE[one.what] ?? labelOf(one.what)}`)))),
        metadataPart(info),
        info.cut?.length && groupOf('Left out of this page', el('p', { class: 'small-text' }, foreign(info.cut.map(labelOf).join(', ')), ': shown in full by'), commandLine(`safetensors info ${shellWord(info.path)}`)),
    ];
}
