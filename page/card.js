// One model in the grid or in the list, and what can be done with it without opening it.
import { clean, sizeText, visible } from './text.js';
import { el, fill, outside } from './dom.js';
import { icon } from './icons.js';
import { announce, copyText } from './copy.js';
import { pictureBox } from './preview.js';
import { joinedWords, civitaiUrl } from './detail.js';
import { FLAG } from './data.js';

/** Page of a model. @param {Info} info */
function sitePage(info) {
    const url = civitaiUrl(info.civitai);
    return url ? outside(url, 'Open') : null;
}

/** What can be done with a model. @param {import('./data.js').Catalog} catalog */
export function makeActions(catalog) {
    const { rows } = catalog;
    /** @param {string} text @param {string} what @param {string} none */
    const copy = (text, what, none) => { if (text) copyText(text, what); else announce(none); };
    return {
        /** @param {number} i */
        isPrompted: (i) => /^(adapter|embedding)$/.test(rows.dict.kind[rows.kind[i]]?.[0] ?? ''),
        /** What the prompt takes of a word that a card shows, perhaps cut. @param {number} i @param {string} shown */
        word(i, shown) {
            const isIt = (/** @type {string} */ text) => text === shown || shown.endsWith('…') && text.startsWith(shown.slice(0, -1));
            return catalog.more(i).trigger_words?.find((one) => isIt(one.text))?.prompt ?? shown;
        },
        /** @param {number} i */
        words(i) { copy(joinedWords(catalog.more(i)) || rows.words[i].join(', '), 'trigger words', 'no trigger words are known'); },
        /** @param {number} i */
        syntax(i) {
            const line = catalog.more(i).prompts?.a1111;
            copy(line ?? '', 'prompt', 'prompts do not call this model');
        },
        /** @param {number} i */
        path(i) { copy(catalog.more(i).path, 'path', ''); },
        /** @param {number} i */
        hash(i) {
            const { computed, recorded = [] } = catalog.more(i).hashes ?? {};
            const known = computed?.sha256 ?? recorded.find((one) => one.algo === 'sha256')?.value ?? rows.hash[i].split(' ').find(Boolean);
            copy(known ?? '', 'hash', 'no hash is known: write the catalogue with --hash sha256');
        },
        /** @param {number} i */
        link: (i) => sitePage(catalog.more(i)),
        /** @param {number} i */
        site(i) {
            const link = sitePage(catalog.more(i));
            if (link) link.click();
            else announce('no page of this model is known');
        },
    };
}

/** "LoRA r16": what it is, without the base model that its badge names. @param {Rows} rows @param {number} i */
function whatText(rows, i) {
    return visible(rows.base[i] < 0 && rows.architecture[i] < 0 ? rows.what[i] : rows.what[i].replace(/ for [^,]*$/, ''));
}

/** Days since 1970 as a date. @param {number} days */
export function dayText(days) {
    return days >= 0 ? new Date(days * 864e5).toISOString().slice(0, 10) : '';
}

/** @param {Rows} rows @param {number} i */
function baseBadge(rows, i) {
    const label = rows.dict.base[rows.base[i]]?.[1] ?? rows.dict.architecture[rows.architecture[i]]?.[1];
    return label ? el('span', { class: 'badge', title: visible(label), dir: 'auto', 'data-hue': rows.base[i] >= 0 ? Math.min(rows.base[i], 7) : 7 }, visible(label)) : null;
}

/** As many words as there is space for. @param {import('./data.js').Catalog} catalog @param {number} i @param {number} width in px */
function wordChips(catalog, i, width) {
    const words = [];
    let left = width;
    for (const word of catalog.rows.words[i]) {
        left -= 22 + 6.6 * word.length + 6 * (word.match(/[\u2e80-\uffdc]/g)?.length ?? 0);
        if (words.length && left < 0) break;
        words.push(word);
    }
    const rest = catalog.rows.word_count[i] - words.length;
    return [...words.map((word) => el('button', { type: 'button', class: 'chip', tabindex: -1, dir: 'auto', 'data-word': word, title: `copy ${visible(word)}` }, visible(word))),
        rest > 0 && el('button', { type: 'button', class: 'chip add', tabindex: -1, 'aria-label': `${rest} more trigger words` }, `+${rest}`)];
}

/** @param {import('./data.js').Catalog} catalog @param {number} i */
function markIcons({ rows }, i) {
    const marks = [
        rows.flags[i] & FLAG.code && mark('code', 'a loader of its format would run code'),
        rows.flags[i] & FLAG.differs && mark('warn', 'a recorded digest differs'),
        rows.flags[i] & FLAG.conflicts && mark('warn', 'facts conflict'),
        rows.copies[i] >= 0 && mark('twins', 'has duplicates'),
    ].filter((one) => typeof one === 'object');
    return marks.length ? el('span', { class: 'card-marks' }, marks) : null;
}

/** @param {'code' | 'warn' | 'twins'} name @param {string} title */
function mark(name, title) {
    return el('span', { class: 'card-mark', title, role: 'img', 'aria-label': title }, icon(name));
}

/**
 * Fills a list item with a model.
 * @param {HTMLElement} item
 * @param {import('./data.js').Catalog} catalog
 * @param {number} i
 * @param {boolean} isRow as a row of the list
 * @param {number} width in px, of the words
 */
export function fillCard(item, catalog, i, isRow, width) {
    const { rows } = catalog;
    const error = rows.error[i];
    const name = visible(rows.name[i] || catalog.stem(i));
    item.classList.toggle('broken', error !== undefined);
    const open = el('button', { type: 'button', class: 'card-name', tabindex: -1, dir: 'auto', title: visible(catalog.path(i)) }, name);
    const box = pictureBox(rows.preview[i], { alt: rows.name[i], lazy: false, source: catalog.picture });
    const words = el('span', { class: 'card-words' },
        error === undefined ? wordChips(catalog, i, width) : el('span', { class: 'card-error', title: visible(error) }, visible(error)));
    if (!isRow) {
        fill(item, box, baseBadge(rows, i), markIcons(catalog, i), open, el('span', { class: 'card-what' }, el('span', { class: 'cut' }, whatText(rows, i)), rows.bytes[i] >= 0 && el('span', null, sizeText(rows.bytes[i]))), words);
        return;
    }
    fill(item, box, open, el('span', { class: 'card-base' }, baseBadge(rows, i)), el('span', { class: 'card-what cut' }, whatText(rows, i)), words,
        el('span', { class: 'card-size' }, rows.bytes[i] >= 0 && sizeText(rows.bytes[i])),
        el('span', { class: 'card-date' }, dayText(rows.modified[i])),
        el('bdi', { class: 'card-folder' }, visible(rows.dict.folder[rows.folder[i]] ?? '')), markIcons(catalog, i));
}

/** Text of a model for a line in print. @param {import('./data.js').Catalog} catalog @param {number} i */
export function printCells(catalog, i) {
    const { rows } = catalog;
    return [rows.name[i], catalog.path(i), rows.dict.base[rows.base[i]]?.[1] ?? '', rows.what[i], rows.error[i] ?? rows.words[i].map(clean).join(', '),
        rows.bytes[i] >= 0 ? sizeText(rows.bytes[i]) : ''].map(visible);
}

/**
 * Buttons that come to the card under the pointer or with the focus.
 * @param {ReturnType<typeof makeActions>} actions
 */
export function makeBar(actions) {
    let model = -1;
    const element = el('span', { class: 'card-bar' });
    const menu = el('div', { class: 'menu', hidden: true });
    const more = el('button', { type: 'button', class: 'button small icon-only', 'aria-expanded': 'false', 'aria-label': 'More actions', title: 'more actions', onclick: () => toggle(menu.hidden) }, icon('more'));
    const words = el('button', { type: 'button', class: 'button small icon-only', 'aria-label': 'Copy the trigger words', title: 'copy the trigger words (C)', onclick: () => actions.words(model) }, icon('copy'));
    const syntax = el('button', { type: 'button', class: 'button small icon-only', 'aria-label': 'Copy the prompt', title: 'copy the prompt: <lora:…> and words (L)', onclick: () => actions.syntax(model) }, icon('code'));
    /** @param {boolean} show */
    function toggle(show) {
        more.setAttribute('aria-expanded', String(show));
        menu.hidden = !show;
        if (!show) return;
        const action = (/** @type {string} */ label, /** @type {(i: number) => void} */ run) =>
            el('button', { type: 'button', class: 'button quiet', onclick: () => { run(model); toggle(false); more.focus(); } }, label);
        const link = actions.link(model);
        link?.classList.add('button', 'quiet');
        fill(menu, action('Copy the path', actions.path), action('Copy the hash', actions.hash), link);
        /** @type {HTMLElement} */ (menu.firstElementChild).focus();
    }
    element.addEventListener('keydown', (event) => {
        if (event.key !== 'Escape' || menu.hidden) return;
        event.preventDefault();
        toggle(false);
        more.focus();
    });
    element.addEventListener('focusout', (event) => {
        if (!menu.hidden && !element.contains(/** @type {Node | null} */ (event.relatedTarget))) toggle(false);
    });
    return {
        element,
        /** @param {HTMLElement} item @param {number} i @param {boolean} hasWords */
        place(item, i, hasWords) {
            if (model === i && element.parentNode === item) return;
            if (!menu.hidden) toggle(false);
            model = i;
            fill(element, hasWords && words, actions.isPrompted(i) && syntax, more, menu);
            item.querySelector('.card-name')?.after(element);
        },
        leave() { model = -1; element.remove(); },
    };
}
