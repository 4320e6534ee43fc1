// The clipboard, and the one live region that says what happened.
import { clean, visible } from './text.js';
import { append, el, fill, foreign } from './dom.js';
import { icon } from './icons.js';

/** @type {HTMLElement | undefined} */
let region;
let announced = 0;

/** What lies behind an open dialog is inert: the last one that was opened. */
function inFront() {
    return [...document.querySelectorAll('dialog:modal')].pop() ?? document.body;
}

/**
 * Says something in the one live region, which is also shown for a moment.
 * @param {...import('./dom.js').Child} text
 */
export function announce(...text) {
    const mine = ++announced;
    region ??= el('div', { class: 'toast', role: 'status', id: 'status' });
    if (region.parentNode !== inFront()) inFront().append(region);
    fill(region);
    /* Screen readers notice a change of a region that is there already. */
    setTimeout(() => { if (mine === announced && region) append(region, text); }, 30);
    setTimeout(() => { if (mine === announced && region) fill(region); }, 3500);
}

/** @param {string} text */
function copyBySelection(text) {
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    const area = el('textarea', { class: 'unseen', readonly: true, 'aria-hidden': 'true', tabindex: -1 });
    inFront().append(area);
    area.value = text;
    area.select();
    let copied = false;
    try {
        copied = document.execCommand('copy');
    } catch { /* not allowed */ }
    area.remove();
    before?.focus({ preventScroll: true });
    return copied;
}

/** What `clean` did to the text, in words; "" if nothing. @param {string} text @param {string} copied */
export function cleanedWords(text, copied) {
    if (text === copied) return '';
    const bare = (/** @type {string} */ one) => one.replace(/[\t-\r\u0085\u2028\u2029 ]/g, '');
    return bare(text) === bare(copied) ? 'line breaks became spaces' : 'without its control characters';
}

/**
 * Copies a text, without controls and line breaks, and says so. To be called in a click or a key.
 * @param {string} text
 * @param {string} [what] it is: "trigger words"
 * @returns {Promise<boolean>} whether it was copied
 */
export async function copyText(text, what) {
    const out = clean(text);
    let copied = false;
    try {
        if (navigator.clipboard) {
            await navigator.clipboard.writeText(out);
            copied = true;
        }
    } catch { /* refused: the other way */ }
    if (!copied && !copyBySelection(out)) {
        announce('not copied: the browser refused');
        return false;
    }
    const points = [...out.slice(0, 200)];
    const short = points.length > 80 ? points.slice(0, 79).join('') + '…' : out;
    const cleaned = cleanedWords(text, out);
    announce('copied: ', what && what !== text && `${what} · `, foreign(short), cleaned && ` (${cleaned})`);
    return true;
}

/**
 * A button that copies.
 * @param {string | (() => string)} text
 * @param {string} label what is copied: "sha256"
 * @param {string} [shown] words on the button, else only an icon; "Copy" and the label contain them
 */
export function copyButton(text, label, shown) {
    const words = `Copy ${visible(label)}`;
    return el('button', {
        type: 'button', class: shown ? 'button small quiet' : 'button small quiet icon-only', title: words, 'aria-label': words,
        onclick: (event) => {
            event.stopPropagation();
            copyText(typeof text === 'function' ? text() : text, label);
        },
    }, icon('copy'), shown);
}
