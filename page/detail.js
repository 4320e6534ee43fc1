// All of a model as one element: pictures, words to copy, facts with their sources, files.
import { copyButton, copyText } from './copy.js';
import { el, fill, foreign, outside } from './dom.js';
import { conflictNote, factRows, labelOf, rangeText, sourceWords, stemOf, valueText } from './facts.js';
import { commandLine, fileParts, shellWord } from './files.js';
import { icon } from './icons.js';
import { addAction } from './keys.js';
import { levelName, pictureBox } from './preview.js';
import { countText, sizeText, visible } from './text.js';
import { groupOf, shareText, trainingParts } from './training.js';

/** @param {unknown} id */
const isId = (id) => typeof id === 'number' && Number.isSafeInteger(id) && id > 0;

/** CivitAI's page of a model, from its numbers only; "" without. @param {any} ids */
export function civitaiUrl(ids) {
    if (!isId(ids?.model_id)) return '';
    return `https://civitai.com/models/${ids.model_id}${isId(ids.version_id) ? `?modelVersionId=${ids.version_id}` : ''}`;
}

/** The page of a repository on Hugging Face; "" of what is none. @param {unknown} repo */
export function hubUrl(repo) {
    const is = typeof repo === 'string' && /^\w[\w.-]*\/\w[\w.-]*$/.test(repo) && !/\.(safetensors|ckpt|pth?|bin|gguf)$/i.test(repo);
    return is ? `https://huggingface.co/${repo}` : '';
}

/** A LoRA prompt with another strength. @param {string} line @param {number} strength */
export function withStrength(line, strength) {
    return line.replace(/^(<lora:[^<>:]*:)[^<>]*(?=>)/, (_, tag) => tag + Number(strength.toFixed(2)));
}

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
 * Trigger words as they are used: whole prompts are groups of their own, single words of one
 * source are together, and so are those that were only found in the captions of a dataset.
 * @param {NonNullable<Info['trigger_words']>} words
 * @param {string} [stem]
 */
export function wordGroups(words, stem) {
    /** @type {Map<string, { title: string, words: { text: string, share?: number }[] }>} */
    const groups = new Map();
    let sets = 0;
    for (const word of words) {
        const parts = promptParts(word.prompt);
        const found = word.coverage !== undefined && word.coverage !== null;
        const from = sourceWords(word.source, stem);
        const title = found ? `found in captions${word.folder ? ` of ${word.folder}` : ''}` : parts.length > 1 ? `set ${++sets}` : `from ${from}`;
        const made = groups.get(title) ?? { title, words: [] };
        groups.set(title, made);
        if (found || parts.length < 2) made.words.push({ text: word.prompt, share: word.coverage });
        else made.words.push(...parts.map((text) => ({ text })));
    }
    return [...groups.values()];
}

/** All trigger words once, as one prompt: declared ones, else those found in captions. @param {Info} info */
export function allWords(info) {
    const words = info.trigger_words ?? [];
    const declared = words.filter((one) => one.coverage === undefined || one.coverage === null);
    return [...new Set((declared.length ? declared : words).flatMap((one) => promptParts(one.prompt)))].join(', ');
}

/** Text with its addresses set apart: only pages of CivitAI and Hugging Face are links. @param {string} text */
function richText(text) {
    return text.split(/(https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]])/).map((part, i) => {
        if (i % 2 === 0) return part && foreign(part);
        const ids = /^https?:\/\/(?:www\.)?civitai\.(?:com|red)\/models\/(\d{1,12})(?:.*[?&]modelVersionId=(\d{1,12}))?/.exec(part);
        const repo = /^https?:\/\/huggingface\.co\/([^/]+\/[^/?#]+)\/?$/.exec(part);
        const url = ids ? civitaiUrl({ model_id: Number(ids[1]), version_id: Number(ids[2]) }) : repo ? hubUrl(repo[1]) : '';
        return url ? outside(url) : el('span', { class: 'address' }, foreign(part), copyButton(part, 'the address'));
    });
}

/** A text of several lines, folded when it is long. @param {string} text */
function prose(text) {
    const box = el('div', { class: 'prose' }, text.split(/\n+/).filter((line) => line.trim()).map((line) => el('p', { dir: 'auto' }, richText(line))));
    if (text.length < 700) return box;
    box.classList.add('folded');
    const more = el('button', { type: 'button', class: 'button small', 'aria-expanded': 'false', onclick: () => {
        const folded = box.classList.toggle('folded');
        more.setAttribute('aria-expanded', String(!folded));
        fill(more, folded ? 'Show all' : 'Show less');
    } }, 'Show all');
    return el('div', null, box, more);
}

/** Words for the badge of the kind: "LoRA r16". @param {Info} info */
export function kindWords(info) {
    const kind = String(info.model.kind?.value ?? 'unknown'), adapter = info.adapter;
    if (kind !== 'adapter' || !adapter?.type) return kind === 'unknown' ? 'unknown kind' : labelOf(kind);
    const rank = adapter.rank?.mode ?? adapter.rank?.max;
    return `${adapter.dora ? 'DoRA, ' : ''}${labelOf(adapter.type)}${rank ? ` r${rank}` : ''}`;
}

/** What the view in front can copy and open. @type {{ root: HTMLElement, words: string, prompt: () => string, link: string, step: (by: number) => void } | null} */
let shownModel = null;

/** Adds the keys of the view: they apply while one is visible. */
export function addDetailKeys() {
    const when = (/** @type {(of: NonNullable<typeof shownModel>) => unknown} */ has) => () =>
        Boolean(shownModel?.root.checkVisibility() && has(shownModel));
    const of = () => /** @type {NonNullable<typeof shownModel>} */ (shownModel);
    const group = 'Model';
    addAction({ id: 'detail-words', group, keys: ['c'], label: 'Copy all trigger words', when: when((one) => one.words), run: () => copyText(of().words, 'trigger words') });
    addAction({ id: 'detail-prompt', group, keys: ['l'], label: 'Copy the prompt', when: when((one) => one.prompt()), run: () => copyText(of().prompt(), 'prompt') });
    addAction({ id: 'detail-open', group, keys: ['o'], label: 'Open its page on CivitAI or Hugging Face', when: when((one) => one.link), run: () => void window.open(of().link, '_blank', 'noopener,noreferrer') });
    addAction({ id: 'detail-before', group, keys: [','], label: 'Picture before', when: when(() => true), run: () => of().step(-1) });
    addAction({ id: 'detail-after', group, keys: ['.'], label: 'Picture after', when: when(() => true), run: () => of().step(1) });
}

/** @param {Picture[]} pictures @param {string} name @param {((picture: Picture) => string) | undefined} source */
function gallery(pictures, name, source) {
    let at = 0;
    const large = el('div', { class: 'gallery-large' });
    const count = el('p', { class: 'gallery-count muted tiny' });
    const thumbs = pictures.map((one, i) => el('button', {
        type: 'button', class: 'thumb', 'aria-label': `Picture ${i + 1} of ${pictures.length}`, onclick: () => show(i),
    }, pictureBox(one, { alt: name, source, plain: true })));
    const show = (/** @type {number} */ i) => {
        at = (i + pictures.length) % pictures.length;
        const one = pictures[at];
        fill(large, pictureBox(one, { alt: name, source, lazy: false, large: true }));
        fill(count, [pictures.length > 1 && `${at + 1} of ${pictures.length}`, one.width && `${one.width} × ${one.height}`, one.level && `rated ${levelName(one.level)}`].filter(Boolean).join(' · '));
        thumbs.forEach((thumb, k) => thumb.setAttribute('aria-current', String(k === at)));
        if (thumbs[at].isConnected) thumbs[at].scrollIntoView({ block: 'nearest', inline: 'nearest' });
    };
    show(0);
    return {
        root: el('div', { class: 'gallery' }, large, count, thumbs.length > 1 && el('div', { class: 'thumbs' }, thumbs)),
        step: (/** @type {number} */ by) => show(at + by),
    };
}

/** @param {Info} info */
function wordsPart(info) {
    const words = info.trigger_words ?? [];
    if (!words.length) return null;
    const groups = wordGroups(words, stemOf(info));
    return el('div', { class: 'group words' }, el('div', { class: 'row' }, el('h4', { class: 'heading spread' }, 'Trigger words'),
        copyButton(allWords(info), 'trigger words', 'Copy all')),
    groups.map((one) => el('div', { class: 'word-group' }, el('span', { class: 'word-title muted tiny' }, foreign(one.title),
        one.words.length > 1 && copyButton(one.words.map((word) => word.text).join(', '), visible(one.title))),
    el('ul', { class: 'row chips' }, one.words.map((word) => el('li', null, el('button', { type: 'button', class: 'chip', title: 'Copy', onclick: () => copyText(word.text) },
        foreign(word.text), word.share !== undefined && word.share !== null && el('span', { class: 'muted' }, shareText(word.share)))))))));
}

/** The line for a prompt, with the strength that is chosen. @param {Info} info */
function promptPart(info) {
    const line = info.prompts?.a1111 ?? '', comfy = info.prompts?.comfy ?? '';
    if (!line && !comfy) return { root: null, prompt: () => '' };
    const tag = /^<lora:[^<>:]*:([^<>]*)>/.exec(line);
    const range = info.model.preferred_weight_range;
    const start = tag ? Number(tag[1]) || 1 : 1;
    let strength = start;
    const shown = el('code');
    const prompt = () => tag ? withStrength(line, strength) : line || comfy;
    const draw = () => fill(shown, foreign(prompt()));
    draw();
    const box = (/** @type {string} */ type, /** @type {string} */ name) => {
        const input = el('input', { type, min: Math.min(-1, start), max: Math.max(2, start), step: 0.05, value: start, 'aria-label': name });
        input.addEventListener('input', () => {
            if (!Number.isFinite(input.valueAsNumber)) return;
            strength = Math.max(-100, Math.min(100, input.valueAsNumber));
            for (const other of inputs) if (other !== input) other.value = String(strength);
            draw();
        });
        return input;
    };
    const inputs = tag ? [box('range', 'Strength'), box('number', 'Strength as a number')] : [];
    const root = el('div', { class: 'group' }, el('h4', { class: 'heading' }, 'Prompt'),
        el('p', { class: 'command' }, shown, copyButton(prompt, 'prompt', 'Copy'), tag && copyButton(() => prompt().replace(/>[^]*$/, '>'), 'the tag without words', 'Tag only')),
        tag && el('div', { class: 'row strength' }, el('span', { class: 'muted' }, 'Strength'), inputs,
            range && el('span', { class: 'muted' }, `recommended ${rangeText(range)}`)),
        line && comfy && comfy !== line && el('p', { class: 'command' }, el('code', null, foreign(comfy)), copyButton(comfy, 'prompt for ComfyUI', 'ComfyUI')));
    return { root, prompt };
}

/** A text to copy as a whole. @param {string} title @param {unknown} text */
function quotePart(title, text) {
    return text ? groupOf(title, el('p', { class: 'command' }, el('span', null, foreign(valueText(text))), copyButton(valueText(text), title.toLowerCase()))) : null;
}

/** @param {Info} info */
function examplesPart(info) {
    const all = info.example_prompts ?? [];
    return all.length ? groupOf('Example prompts', all.map((one) => el('details', { class: 'example' },
        el('summary', null, foreign(String(one.positive ?? one.negative ?? '').slice(0, 140))),
        quotePart('Prompt', one.positive), quotePart('Negative', one.negative),
        el('p', { class: 'muted tiny' }, foreign(['sampler', 'steps', 'cfg', 'seed'].filter((key) => one[key] !== undefined && one[key] !== null).map((key) => `${key} ${one[key]}`).join(' · ')))))) : null;
}

/** What is wrong with it, first. @param {Info} info */
function notes(info) {
    const calls = (info.import?.globals ?? []).filter((/** @type {any} */ one) => one.calls > 0).map((/** @type {any} */ one) => `${one.module}.${one.name}`);
    return [
        info.error && el('div', { class: 'note bad', 'data-note': 'error' }, el('p', { class: 'note-title' }, icon('warn'), foreign(info.error.message)),
            info.error.hint && el('p', null, foreign(info.error.hint)), commandLine(`safetensors check ${shellWord(info.path)}`)),
        calls.length > 0 && el('div', { class: 'note bad', 'data-note': 'pickle' }, el('p', { class: 'note-title' }, icon('warn'), 'Loading this file runs code'),
            el('p', null, 'a pickle loader would call ', foreign(calls.slice(0, 8).join(', ') + (calls.length > 8 ? ', …' : '')), '; not run')),
        conflictNote(info),
    ];
}

/**
 * A model with all that is known of it.
 * @param {Info} info
 * @param {object} [options]
 * @param {(picture: Picture) => string} [options.picture] address of an embedded picture
 * @param {string} [options.name] if the model has none
 * @param {import('./dom.js').Child[]} [options.actions] more buttons for the head
 * @param {{ title: string, content: HTMLElement }[]} [options.sections] more sections, before the files
 */
export function detailView(info, { picture, name, actions = [], sections = [] } = {}) {
    const of = info.model, stem = stemOf(info);
    const title = String(of.name?.value ?? name ?? stem);
    const value = (/** @type {string} */ key) => of[key]?.value;
    const link = civitaiUrl(info.civitai), hub = hubUrl(value('repo')), base = hubUrl(value('base_checkpoint'));
    const { root: promptRoot, prompt } = promptPart(info);
    const shots = info.pictures?.length ? gallery(info.pictures, title, picture) : null;
    const badges = [[kindWords(info), '0'], [value('base_model') ?? (value('architecture') && labelOf(value('architecture'))), '2'], [value('variant'), ''],
        [info.file?.bytes !== undefined && sizeText(info.file.bytes), ''], [of.parameters && `${countText(of.parameters)} parameters`, ''], [of.precision, ''],
        [value('nsfw') && 'not safe for work', '4']].filter(([text]) => text);
    const described = ['description', 'version_description', 'usage_hint'].map((key) => of[key] && el('div', { class: 'group' },
        el('h4', { class: 'heading' }, { description: 'Description', version_description: 'New in this version', usage_hint: 'How to use it' }[key],
            el('span', { class: 'from' }, ' · ', foreign(sourceWords(of[key].source, stem)))), prose(valueText(of[key].value))));
    const notesOf = (of.notes ?? []).map((/** @type {any} */ one) => prose(String(one.text)));
    const links = [...new Set((info.links ?? []).map((one) => one.url))].map((url) => el('p', null, richText(url)));

    const parts = [
        { title: 'Use', children: [wordsPart(info), promptRoot, quotePart('Negative prompt', value('negative_prompt')), ...described, notesOf.length && groupOf('Notes', notesOf), examplesPart(info), links.length && groupOf('Links', links)] },
        { title: 'Facts', children: factRows(info) }, { title: 'Training', children: trainingParts(info) },
        ...sections.map((one) => ({ title: one.title, children: [one.content] })), { title: 'Files', children: fileParts(info) },
    ].map((one) => ({ title: one.title, children: one.children.filter(Boolean) })).filter((one) => one.children.length);
    const made = parts.map((one) => el('section', { class: 'section', tabindex: -1, 'aria-label': one.title }, el('h3', null, one.title), one.children));
    const buttons = made.map((section, i) => el('button', { type: 'button', class: 'tab', onclick: () => { section.scrollIntoView(); section.focus({ preventScroll: true }); } }, parts[i].title));
    /** @type {Set<Element>} */
    const near = new Set();
    const watch = new IntersectionObserver((entries) => {
        for (const entry of entries) near[entry.isIntersecting ? 'add' : 'delete'](entry.target);
        const first = made.findIndex((one) => near.has(one));
        buttons.forEach((one, i) => one.setAttribute('aria-current', String(i === first)));
    }, { rootMargin: '-72px 0px -40% 0px' });
    for (const one of made) watch.observe(one);

    const root = el('article', { class: shots ? 'detail' : 'detail plain' }, shots?.root, el('div', { class: 'detail-main' },
        el('header', { class: 'detail-head' },
            el('h2', { class: 'detail-name', dir: 'auto' }, foreign(title)),
            el('p', { class: 'muted' }, [value('version_name'), value('author') && `by ${value('author')}`, value('date') && String(value('date')).slice(0, 10)].filter(Boolean)
                .map((text, i) => [i > 0 && ' · ', foreign(String(text))]).flat()),
            el('ul', { class: 'row badges' }, badges.map(([text, hue]) => el('li', null, el('span', { class: 'badge', 'data-hue': hue || null }, visible(String(text)))))),
            el('div', { class: 'row links' }, link && outside(link, 'CivitAI'), hub && outside(hub, 'Hugging Face'), base && base !== hub && outside(base, 'Base'),
                copyButton(info.path, 'path', 'Path'), actions)),
        notes(info), made.length > 1 && el('nav', { class: 'tabs', 'aria-label': 'Sections' }, buttons), made));
    shownModel = { root, words: allWords(info), prompt, link: link || hub, step: shots?.step ?? (() => {}) };
    return root;
}
