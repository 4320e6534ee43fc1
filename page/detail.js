// All of a model as one element: pictures, words to copy, facts with their sources, files.
import { copyButton, copyText } from './copy.js';
import { el, fill, foreign, outside } from './dom.js';
import { conflictNote, factRows, factText, isGiven, labelOf, noteOf, rangeText, sourceWords, stemOf, timeText, valueText } from './facts.js';
import { commandLine, copyLine, fileParts } from './files.js';
import { addAction } from './keys.js';
import { levelName, pictureBox } from './preview.js';
import { countText, hueOf, sizeText, visible } from './text.js';
import { groupOf, percentText, trainingParts, wordsOf } from './training.js';

/** @param {unknown} id */
const isId = (id) => Number.isSafeInteger(id) && Number(id) > 0;

/** CivitAI's page of a model, from its numbers only; "" without. @param {any} ids */
export const civitaiUrl = (ids) =>
    !isId(ids?.model_id) ? '' : `https://civitai.com/models/${ids.model_id}${isId(ids.version_id) ? `?modelVersionId=${ids.version_id}` : ''}`;

/** The page of a repository on Hugging Face; "" of what is none. @param {unknown} repo */
export function hubUrl(repo) {
    const text = `${repo}`;
    return /^\w[\w.-]*\/\w[\w.-]*$/.test(text) && !/\.(safetensors|ckpt|pth?|bin|gguf)$/i.test(text) ? `https://huggingface.co/${text}` : '';
}

/** A LoRA prompt with another strength. @param {string} line @param {number} strength */
export const withStrength = (line, strength) => line.replace(/^(<lora:[^<>]*:)[^<>:]*(?=>)/, (_, tag) => tag + Number(strength.toFixed(2)));

/** The parts of a prompt between commas that are in no brackets. @param {string} prompt @returns {string[]} */
export function promptParts(prompt) {
    const parts = [''];
    let depth = 0, before = '';
    for (const one of prompt) {
        if (before !== '\\') depth = Math.max(0, depth + Number('([{<'.includes(one)) - Number(')]}>'.includes(one)));
        if (one === ',' && depth === 0) parts.push('');
        else parts[parts.length - 1] += one;
        before = one;
    }
    return parts.map((part) => part.trim()).filter(Boolean);
}

/**
 * Trigger words as they are used: whole prompts are sets of their own, single words of one source
 * are together, and so are those that were only found in the captions of a dataset.
 * @param {NonNullable<Info['trigger_words']>} words
 * @param {string} [stem]
 */
export function wordGroups(words, stem) {
    /** @type {Map<string, { text: string, share?: number | null }[]>} */
    const groups = new Map();
    let sets = 0;
    for (const { prompt, source, folder, coverage } of words) {
        const parts = isGiven(coverage) ? [prompt] : promptParts(prompt),
            title = isGiven(coverage) ? wordsOf('captions', folder && `of ${folder}`) : parts.length > 1 ? `set ${++sets}` : sourceWords(source, stem);
        groups.set(title, [...groups.get(title) ?? [], ...parts.map((text) => ({ text, share: coverage }))]);
    }
    return [...groups].map(([title, some]) => ({ title, words: some }));
}

/** All trigger words once, as a prompt: declared ones, else those found in captions. @param {Info} info */
export function joinedWords({ trigger_words: words = [] }) {
    const declared = words.filter((one) => !isGiven(one.coverage));
    return [...new Set((declared.length ? declared : words).flatMap((one) => promptParts(one.prompt)))].join(', ');
}

/** Text with its addresses: only pages of CivitAI and Hugging Face are links. @param {string} text */
const richText = (text) => text.split(/(https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]])/).map((part, i) => {
    if (i % 2 === 0) return part && foreign(part);
    const ids = /^https?:\/\/(?:www\.)?civitai\.(?:com|red)\/models\/(\d{1,12})(?:.*[?&]modelVersionId=(\d{1,12}))?/.exec(part),
        repo = /^https:\/\/huggingface\.co\/([^/]+\/[^/?#]+)\/?$/.exec(part),
        url = ids ? civitaiUrl({ model_id: +ids[1], version_id: +ids[2] }) : repo ? hubUrl(repo[1]) : '';
    return url ? outside(url) : el('span.address', foreign(part), copyButton(part, 'the address'));
});

/** A text of several lines, folded when it is long. @param {unknown} text */
function prose(text) {
    const lines = valueText(text).split(/\n+/).filter((line) => line.trim()),
        box = el('div.prose', lines.map((line) => el('p', { dir: 'auto' }, richText(line))));
    if (lines.length < 12 && lines.join().length < 900) return box;
    const more = el('button.button.small', { onclick: () => fold() }),
        fold = () => {
            const folded = box.classList.toggle('folded');
            more.ariaExpanded = `${!folded}`;
            fill(more, folded ? 'Show all' : 'Show less');
        };
    fold();
    return el('div', box, more);
}

/** Words for the badge of the kind: "LoRA r16". @param {Info} info */
export function kindWords({ model, adapter }) {
    const kind = String(model.kind?.value ?? 'unknown');
    if (!adapter?.type) return kind === 'unknown' ? 'unknown kind' : labelOf(kind);
    const rank = adapter.rank?.mode ?? adapter.rank?.max;
    return wordsOf(adapter.dora && 'DoRA,', labelOf(adapter.type), rank && `r${rank}`);
}

/**
 * What the view in front can copy and open.
 * @type {{ root: HTMLElement, words: string, prompt: () => string, link: string, step?: (by: number) => void } | undefined}
 */
let shownModel;

/** Adds the keys of the view: they apply while one is visible. */
export function addDetailKeys() {
    /** @type {[id: string, key: string, label: string, has: (of: NonNullable<typeof shownModel>) => unknown, run: (of: any) => unknown][]} */
    const all = [
        ['words', 'c', 'Copy all trigger words', (of) => of.words, (of) => copyText(of.words, 'trigger words')],
        ['prompt', 'l', 'Copy the prompt', (of) => of.prompt(), (of) => copyText(of.prompt(), 'prompt')],
        ['open', 'o', 'Open its page on CivitAI or Hugging Face', (of) => of.link, (of) => window.open(of.link, '_blank', 'noopener,noreferrer')],
        ['before', ',', 'Picture before', (of) => of.step, (of) => of.step(-1)],
        ['after', '.', 'Picture after', (of) => of.step, (of) => of.step(1)],
    ];
    for (const [id, key, label, has, run] of all) addAction({
        id: `detail-${id}`, group: 'In an open model', keys: [key], label, run: () => void run(shownModel),
        when: () => Boolean(shownModel?.root.checkVisibility() && has(shownModel)),
    });
}

/** "a · b" of those that are known. @param {...unknown} words */
const dotted = (...words) => words.filter(Boolean).join(' · ');

/** @param {Picture[]} pictures @param {string} alt @param {((picture: Picture) => string) | undefined} source */
function gallery(pictures, alt, source) {
    let at = 0;
    const large = el('div.gallery-large'), count = el('p.muted.tiny'),
        thumbs = pictures.map((one, i) => el('button.thumb', { label: `Picture ${i + 1}`, onclick: () => step(i - at) }, pictureBox(one, { alt, source, plain: true }))),
        step = (/** @type {number} */ by) => {
            at = (at + by + pictures.length) % pictures.length;
            const { width, height, level } = pictures[at];
            fill(large, pictureBox(pictures[at], { alt, source, lazy: false, large: true }));
            fill(count, dotted(thumbs[1] && `${at + 1} of ${pictures.length}`, width && `${width} × ${height}`, level && `rated ${levelName(level)}`));
            thumbs.forEach((thumb, i) => { thumb.ariaCurrent = `${i === at}`; });
            if (by) thumbs[at].scrollIntoView({ block: 'nearest', inline: 'nearest' });
        },
        tallest = Math.min(1.5, ...pictures.map(({ width, height, why }) => width && height && !why ? width / height : 1.5));
    large.style.aspectRatio = `${Math.max(tallest, .65)}`;
    step(0);
    return { step, root: el('div.gallery', large, count, thumbs[1] && el('div.thumbs', thumbs)) };
}

/** @param {Info} info */
function wordsPart(info) {
    const groups = wordGroups(info.trigger_words ?? [], stemOf(info));
    return groups.length ? el('div.group',
        el('div.row', el('h4.heading.spread', 'Trigger words'), copyButton(joinedWords(info), 'all trigger words', 'Copy all')),
        groups.map(({ title, words }) => el('div.word-group', el('span.muted', foreign(title)),
            el('ul.row', words.map(({ text, share }) => el('li', el('button.chip', { title: 'Copy', onclick: () => copyText(text) },
                foreign(text), isGiven(share) && el('span.muted.tiny', percentText(Number(share))))))),
            words[1] && copyButton(words.map((word) => word.text).join(', '), visible(title))))) : null;
}

/** The line for a prompt, with the strength that is chosen. @param {Info} info */
function promptPart({ prompts, model }) {
    const line = prompts?.a1111 ?? '', comfy = prompts?.comfy ?? '',
        tag = /^<lora:[^<>]*:([^<>:]*)>/.exec(line), start = Number(tag?.[1]) || 1, range = model.preferred_weight_range;
    let strength = start;
    const shown = el('code'), prompt = () => tag ? withStrength(line, strength) : line || comfy, draw = () => fill(shown, foreign(prompt()));
    draw();
    const inputs = (tag ? ['range', 'number'] : []).map((type) => el('input', {
        type, min: Math.min(-1, start), max: Math.max(2, start), step: .05, value: start, label: type === 'range' ? 'Strength' : 'Strength as a number',
        oninput: ({ target }) => {
            if (!Number.isFinite(target.valueAsNumber)) return;
            strength = Math.max(-10, Math.min(10, target.valueAsNumber));
            for (const other of inputs) if (other !== target) other.value = `${strength}`;
            draw();
        },
    })),
        tagOnly = tag && line.length > tag[0].length && copyButton(() => prompt().replace(/>[^]*/, '>'), 'tag only', 'Tag only'),
        root = prompt() ? groupOf('Prompt', copyLine(prompt, shown, 'prompt', tagOnly),
            tag && el('div.row.strength', el('span.muted', 'Strength'), inputs, range && el('span.muted', `recommended ${rangeText(range)}`)),
            line && comfy && comfy !== line && copyLine(comfy, el('code', foreign(comfy)), 'prompt for ComfyUI')) : null;
    return { root, prompt };
}

/** A text to copy as a whole. @param {string} title @param {unknown} value */
function quotePart(title, value) {
    const text = valueText(value);
    return text ? groupOf(title, copyLine(text, foreign(text), title.toLowerCase())) : null;
}

/** @param {Info} info */
const examplesPart = ({ example_prompts: all = [] }) =>
    groupOf('Example prompts', all.map((one) => el('details.example', el('summary', el('span.clamp.cut', foreign(valueText(one.positive ?? one.negative)))),
    quotePart('Prompt', one.positive), quotePart('Negative', one.negative),
    el('p.muted.tiny', foreign(dotted(...['sampler', 'steps', 'cfg', 'seed'].map((key) => isGiven(one[key]) && `${key} ${one[key]}`)))))));

/** What is wrong with it. @param {Info} info */
function notes(info) {
    const { error } = info, calls = (info.import?.globals ?? []).filter((one) => one.calls > 0).map((one) => `${one.module}.${one.name}`);
    return [
        error && noteOf('error', foreign(error.message), error.hint && el('p', foreign(error.hint)), commandLine('check', info)),
        calls[0] && noteOf('pickle', el('span', 'A pickle loader would call ', foreign(calls.slice(0, 8).join(', ') + (calls[8] ? ', …' : '')), '; not run')),
        conflictNote(info),
    ];
}

/** What a reader wants first. @param {Info} info @param {HTMLElement | null} prompt */
function useParts(info, prompt) {
    const of = info.model,
        text = (/** @type {string} */ key, /** @type {string} */ heading) => of[key] && groupOf(
            el('span', heading, el('span.muted', ' · ', foreign(sourceWords(of[key].source, stemOf(info))))), prose(of[key].value));
    return [
        wordsPart(info), prompt, quotePart('Negative prompt', of.negative_prompt?.value), text('usage_hint', 'How to use it'),
        text('description', 'Description'), text('version_description', 'New in this version'),
        ...[true, false].map((own) => groupOf(own ? 'Your note' : 'Notes', of.notes?.filter((one) => /^own\b/.test(one.source) === own).map((one) => prose(one.text)))), examplesPart(info),
        groupOf('Links', [...new Set(info.links?.map((one) => one.url))].map((url) => el('p', richText(url)))),
    ];
}

/** @param {Info} info @param {string} title @param {import('./dom.js').Child[]} actions */
function headOf(info, title, actions) {
    const of = info.model, ids = info.civitai, value = (/** @type {string} */ key) => of[key]?.value, base = value('base_model') ?? value('architecture'),
        civitai = civitaiUrl(ids), hub = hubUrl(value('repo')), trained = hubUrl(value('base_checkpoint'));
    /** @type {[text: unknown, hue?: number][]} */
    const badges = [[kindWords(info), 0], [base && factText('base_model', base), base && hueOf(factText('base_model', base))], [value('variant')],
        [info.file?.bytes !== undefined && sizeText(info.file.bytes)], [of.parameters && `${countText(of.parameters)} parameters`],
        [of.precision && factText('precision', of.precision)], [value('nsfw') && labelOf('nsfw'), 4], [isGiven(of.rating) && `★ ${of.rating}`, 3]];
    return el('header.detail-head', el('h2.detail-name', { dir: 'auto' }, foreign(title)),
        el('p.muted', foreign(dotted(value('version_name'), value('author') && `by ${value('author')}`, timeText(ids?.published_at ?? value('date')).slice(0, 10)))),
        el('ul.row.badges', badges.map(([text, hue]) => Boolean(text) && el('li', el('span.badge', { 'data-hue': hue }, visible(`${text}`))))),
        el('div.row.links', civitai && outside(civitai, 'CivitAI'), ids?.match === 'differs' && el('span.badge.bad', 'about another file'),
            hub && outside(hub, 'Hugging Face'), trained && trained !== hub && outside(trained, 'Base'), copyButton(info.path, 'path', 'Path'), actions));
}

/** Sections with headings, and buttons that lead to them. @param {{ title: string, all: any }[]} parts */
function sectionsOf(parts) {
    const made = parts.map(({ title, all }) => el('section.section', { tabindex: -1, label: title }, el('h3', title), all)),
        tabs = made.map((section, i) => el('button.tab', { onclick: () => {
            section.scrollIntoView();
            section.focus({ preventScroll: true });
        } }, parts[i].title)),
        near = new Set(),
        watch = new IntersectionObserver((entries) => {
            for (const { isIntersecting, target } of entries) near[isIntersecting ? 'add' : 'delete'](target);
            const first = made.findIndex((one) => near.has(one));
            tabs.forEach((one, i) => { one.ariaCurrent = `${i === first}`; });
        }, { rootMargin: '-100px 0px -40% 0px' });
    for (const one of made) watch.observe(one);
    return [tabs[1] && el('nav.tabs', { label: 'Sections' }, tabs), ...made];
}

/**
 * A model with all that is known of it.
 * @param {Info} info
 * @param {object} [options]
 * @param {(picture: Picture) => string} [options.picture] address of an embedded picture
 * @param {string} [options.name] if the model has none
 * @param {import('./dom.js').Child[]} [options.actions] more buttons for the head
 */
export function detailView(info, { picture, name, actions = [] } = {}) {
    const title = valueText(info.model.name?.value ?? name ?? stemOf(info)), words = joinedWords(info),
        { root: promptRoot, prompt } = promptPart(info), shots = info.pictures?.length ? gallery(info.pictures, title, picture) : null,
        parts = Object.entries({ Use: useParts(info, promptRoot), Facts: factRows(info), Training: trainingParts(info), Files: fileParts(info) })
            .map(([title, all]) => ({ title, all: /** @type {unknown[]} */ (all).filter(Boolean) })).filter((one) => one.all.length),
        root = el('article.detail', shots?.root, el('div.detail-main', headOf(info, title, actions), notes(info), sectionsOf(parts)));
    root.classList.toggle('plain', !shots);
    shownModel = { root, words, prompt, link: civitaiUrl(info.civitai) || hubUrl(info.model.repo?.value), step: shots?.step };
    return root;
}
