// The clipboard, and the one live region that says what happened.
import { clean, visible } from './text.js';
import { append, el, fill, foreign } from './dom.js';
import { icon } from './icons.js';

/** @type {HTMLElement | undefined} */
let region;
let announced = 0;

/** What lies behind an open dialog is inert: the last one that was opened. */
const inFront = () => [...document.querySelectorAll('dialog:modal')].pop() ?? document.body;

/**
 * Says something in the one live region, which is also shown for a moment.
 * @param {...import('./dom.js').Child} text
 */
export function announce(...text) {
    const mine = ++announced, shown = region ??= el('div.toast', { role: 'status', id: 'status' });
    if (shown.parentNode !== inFront()) inFront().append(shown);
    fill(shown);
    /* Screen readers notice a change of a region that is there already. */
    setTimeout(() => mine === announced && append(shown, text), 30);
    setTimeout(() => mine === announced && fill(shown), 3500);
}

/** For pages without a clipboard, such as those of http. @param {string} text */
function copyBySelection(text) {
    const before = /** @type {HTMLElement | null} */ (document.activeElement),
        area = el('textarea.unseen', { readonly: true, 'aria-hidden': 'true', tabindex: -1 });
    inFront().append(area);
    area.value = text;
    area.select();
    try {
        return document.execCommand('copy');
    } catch {
        return false;
    } finally {
        area.remove();
        before?.focus({ preventScroll: true });
    }
}

/** What `clean` did to the text, in words; "" if nothing. @param {string} text @param {string} copied */
export function cleanedWords(text, copied) {
    const bare = (/** @type {string} */ one) => one.replace(/[\t-\r\u0085\u2028\u2029 ]/g, '');
    return text === copied ? '' : bare(text) === bare(copied) ? 'line breaks became spaces' : 'without its control characters';
}

/**
 * Copies a text, without controls and line breaks, and says so. To be called in a click or a key.
 * @param {string} text
 * @param {string} [what] it is: "trigger words"
 * @returns {Promise<boolean>} whether it was copied
 */
export async function copyText(text, what) {
    const out = clean(text), points = [...out.slice(0, 200)], cleaned = cleanedWords(text, out),
        copied = await navigator.clipboard?.writeText(out).then(() => true, () => false) || copyBySelection(out);
    if (copied) announce('copied: ', what && what !== text && `${what} · `, foreign(points.length > 80 ? points.slice(0, 79).join('') + '…' : out), cleaned && ` (${cleaned})`);
    else announce('not copied: the browser refused');
    return copied;
}

/**
 * A button that copies.
 * @param {string | (() => string)} text
 * @param {string} label what is copied: "sha256"
 * @param {string} [shown] words on the button, else only an icon; "Copy" and the label contain them
 */
export function copyButton(text, label, shown) {
    const title = `Copy ${visible(label)}`;
    return el(`button.button.small.quiet${shown ? '' : '.icon-only'}`, {
        title, label: title,
        onclick: (event) => {
            event.stopPropagation();
            copyText(typeof text === 'function' ? text() : text, label);
        },
    }, icon('copy'), shown);
}
