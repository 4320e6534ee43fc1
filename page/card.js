// One model in the grid or in the list, and what can be done with it without opening it.
import { clean, hueOf, sizeText, visible } from './text.js';
import { el, fill, outside } from './dom.js';
import { icon, iconButton } from './icons.js';
import { announce, copyText } from './copy.js';
import { setStar } from './prefs.js';
import { pictureBox } from './preview.js';
import { joinedWords, civitaiUrl } from './detail.js';
import { FLAG } from './data.js';

/** What can be done with a model. @param {import('./data.js').Catalog} catalog */
export function makeActions(catalog) {
    const { rows } = catalog;
    /** @param {string | undefined} text @param {string} what @param {string} none */
    const copy = (text, what, none) => { if (text) copyText(text, what); else announce(none); };
    const link = (/** @type {number} */ i) => {
        const url = civitaiUrl(catalog.more(i).civitai);
        return url ? outside(url, 'Open') : null;
    };
    return {
        link,
        /** @param {number} i */
        isPrompted: (i) => /^(adapter|embedding)\b/.test(rows.dict.kind[rows.kind[i]]?.[0]),
        /** What the prompt takes of a word that a card shows, perhaps cut. @param {number} i @param {string} shown */
        word(i, shown) {
            const isIt = (/** @type {string} */ text) => text === shown || shown.endsWith('…') && text.startsWith(shown.slice(0, -1));
            copyText(catalog.more(i).trigger_words?.find(({ text }) => isIt(text))?.prompt ?? shown, 'trigger word');
        },
        /** @param {number} i */
        words: (i) => copy(joinedWords(catalog.more(i)) || rows.words[i].join(', '), 'trigger words', 'no trigger words are known'),
        /** @param {number} i */
        syntax: (i) => copy(catalog.more(i).prompts?.a1111, 'prompt', 'prompts do not call this model'),
        /** @param {number} i */
        path: (i) => copy(catalog.more(i).path, 'path', ''),
        /** @param {number} i */
        hash(i) {
            const { computed, recorded } = catalog.more(i).hashes ?? {};
            copy(computed?.sha256 ?? recorded?.find(({ algo }) => algo === 'sha256')?.value ?? rows.hash[i].split(' ').find(Boolean), 'hash',
                'no hash is known: write the catalogue with --hash sha256');
        },
        /** Sets or takes the stars of models: all get one, unless all have one. @param {number[]} some */
        star(some) {
            const { isStarred, path } = catalog, is = !some.every(isStarred);
            for (const i of some) setStar(path(i), is === (rows.flags[i] & FLAG.favourite) > 0 ? undefined : is);
            return is;
        },
        /** @param {number} i */
        site(i) {
            const found = link(i);
            if (found) found.click();
            else announce('no page of this model is known');
        },
    };
}

/** @typedef {ReturnType<typeof makeActions>} Actions */

/** @param {Rows} rows @param {number} i */
const baseText = ({ dict, base, architecture }, i) => visible(dict.base[base[i]]?.[1] ?? dict.architecture[architecture[i]]?.[1] ?? '');

/** As many words as there is space for. @param {Rows} rows @param {number} i @param {number} width in px */
function wordChips({ words, word_count: counts }, i, width) {
    let left = width;
    const shown = words[i].filter((word, k) => {
        left -= 22 + 6.6 * word.length;
        return !k || left >= 0;
    }),
        rest = counts[i] - shown.length;
    return [...shown.map((word) => el('button.chip', { tabindex: -1, dir: 'auto', 'data-word': word, title: `copy ${visible(word)}` }, visible(word))),
        rest > 0 && el('button.chip.add', { tabindex: -1, label: `${rest} more trigger words` }, `+${rest}`)];
}

/** @type {[number, 'code' | 'warn' | 'twins', string][]} */
const MARKS = [[FLAG.code, 'code', 'a loader of its format would run code'], [FLAG.differs, 'warn', 'a recorded digest differs'],
    [FLAG.conflicts, 'warn', 'facts conflict'], [0, 'twins', 'has duplicates']];

/**
 * Fills a list item with a model.
 * @param {HTMLElement} item
 * @param {import('./data.js').Catalog} catalog
 * @param {number} i
 * @param {boolean} isRow as a row of the list
 * @param {number} width in px, of the words
 */
export function fillCard(item, catalog, i, isRow, width) {
    const { rows, isStarred } = catalog, fault = rows.fault[i], base = baseText(rows, i), size = rows.bytes[i] >= 0 && sizeText(rows.bytes[i]);
    item.classList.toggle('broken', !!fault);
    const picture = pictureBox(rows.preview[i], { alt: rows.name[i], lazy: false, source: catalog.picture }),
        open = el('button.card-name', { tabindex: -1, dir: 'auto', title: visible(catalog.path(i)) }, visible(catalog.name(i))),
        badge = fault ? el('span.badge.bad.fault', { title: visible(rows.error[i]) }, icon(/** @type {any} */ (fault[0])), el('span.cut', fault[1])) : base && el('span.badge', { title: base, dir: 'auto', 'data-hue': hueOf(base) }, base);
    /* "LoRA r16": without the base model that the badge names. */
    const what = visible(base ? rows.what[i].replace(/ for\s[^,]*$/, '') : rows.what[i]),
        words = el('span.card-words', wordChips(rows, i, width)),
        marked = MARKS.filter(([flag]) => flag ? rows.flags[i] & flag : rows.copies[i] >= 0)
            .map(([, name, title]) => el('span.card-mark', { title, role: 'img', label: title }, icon(name))),
        favourite = isStarred(i) && el('span.card-mark.starred', { title: 'favourite', role: 'img', label: 'favourite' }, icon('star')),
        marks = (marked.length > 0 || favourite) && el('span.card-marks', marked, favourite),
        stars = rows.rating[i] >= 0 && el('span.rating', { role: 'img', label: `rated ${rows.rating[i]} of 5` }, `★ ${rows.rating[i]}`),
        check = el('button.card-check', { role: 'checkbox', 'aria-checked': 'false', tabindex: -1, label: `Select ${visible(catalog.name(i))}` });
    if (!isRow) fill(item, picture, check, badge, marks, open, el('span.card-what', el('span.cut', what), stars, size), words);
    else fill(item, picture, check, open, el('span.card-base', badge), el('span.card-what.cut', what, stars && ' ', stars), words, el('span.card-size', size),
        el('span.card-date', rows.modified[i] >= 0 && new Date(rows.modified[i] * 864e5).toISOString().slice(0, 10)), el('span.card-folder.cut', el('bdi', visible(rows.dict.folder[rows.folder[i]] ?? ''))), marks);
}

/** Text of a model for a line in print. @param {import('./data.js').Catalog} catalog @param {number} i */
export function printCells(catalog, i) {
    const { rows } = catalog;
    return [catalog.name(i), catalog.path(i), baseText(rows, i), rows.what[i], rows.fault[i]?.[1] ?? rows.words[i].map(clean).join(', '),
        rows.bytes[i] >= 0 ? sizeText(rows.bytes[i]) : ''].map(visible);
}

/**
 * A button that opens a panel; Esc, and focus or a click elsewhere, closes it.
 * @param {HTMLElement} box has both
 * @param {HTMLElement} button
 * @param {HTMLElement} panel
 */
export function popover(box, button, panel) {
    const show = (/** @type {boolean} */ isOpen) => {
        panel.hidden = !isOpen;
        button.ariaExpanded = `${isOpen}`;
    },
        leave = (/** @type {any} */ to) => { if (to && !box.contains(to)) show(false); };
    show(false);
    button.addEventListener('click', () => show(panel.hidden));
    box.addEventListener('keydown', (event) => {
        if (event.key !== 'Escape' || panel.hidden) return;
        event.preventDefault();
        show(false);
        button.focus();
    });
    document.addEventListener('pointerdown', ({ target }) => leave(target));
    box.addEventListener('focusout', ({ relatedTarget }) => leave(relatedTarget));
    return { box, show };
}

/** Buttons that come to the card under the pointer or with the focus. @param {Actions} actions @param {Rows} rows @param {(model: number) => void} star */
export function makeBar(actions, rows, star) {
    let model = -1;
    const item = (/** @type {string} */ label, /** @type {(i: number) => void} */ run) => el('button.button.quiet', { onclick: () => {
        run(model);
        menu.show(false);
        more.focus();
    } }, label),
        list = el('div.menu'), bar = el('span.card-bar'),
        more = iconButton('.small', 'more', 'More actions', () => {
            const link = actions.link(model);
            link?.classList.add('button', 'quiet');
            fill(list, item('Copy the path', actions.path), item('Copy the hash', actions.hash), link);
        }),
        menu = popover(bar, more, list);
    more.addEventListener('click', () => /** @type {HTMLElement} */ (list.firstElementChild).focus());
    const words = iconButton('.small', 'copy', 'Copy the trigger words', () => actions.words(model), ' (C)'),
        syntax = iconButton('.small', 'code', 'Copy the prompt', () => actions.syntax(model), ' (L)'),
        favourite = iconButton('.small', 'star', 'Favourite', () => star(model), ' (*)');
    return {
        bar,
        /** To a card; away without one. @param {HTMLElement} [card] @param {number} [i] */
        place(card, i = -1) {
            if (model === i && bar.parentNode === (card ?? null)) return;
            menu.show(false);
            model = i;
            fill(bar, favourite, rows.word_count[i] > 0 && words, actions.isPrompted(i) && syntax, more, list);
            if (card) card.querySelector('.card-name')?.after(bar);
            else bar.remove();
        },
    };
}
