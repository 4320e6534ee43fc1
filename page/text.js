// Text from strangers: how it is shown, compared and copied.

/* Whole emoji, whose joiners and variation selectors belong there, or a character that could
 * mislead: controls other than tab and line feed, what reorders others, what cannot be seen. */
const HIDDEN = /([#*\d]\ufe0f\u20e3|\p{ExtPict}[\ufe0f\p{EMod}]?(?:\u200d\p{ExtPict}[\ufe0f\p{EMod}]?)*)|(?![\t\n])[\p{Cc}\p{Zl}\p{Zp}\p{Cf}\p{DI}]/gu;

/**
 * Text as it is shown: characters that cannot be seen, or that reorder others, as \u{…}.
 * @param {string} text
 */
export const visible = (text) => text.replace(HIDDEN, (one, emoji) => emoji ?? `\\u{${one.codePointAt(0)?.toString(16)}}`);

/**
 * Text as it goes to the clipboard, for a prompt or a terminal: no controls, no bidirectional
 * controls, no line breaks, which become spaces.
 * @param {string} text
 */
export const clean = (text) => text.replace(/[\t-\r\u0085\u2028\u2029]+/g, ' ').replace(/[\p{Cc}\p{Bidi_C}\ufeff]/gu, '');

/** Text as it is compared: lower case, compatibility forms unified. @param {string} text */
export const folded = (text) => text.normalize('NFKC').toLowerCase();

/** Three digits and a unit, in steps of 1000. @param {number} count @param {string[]} units */
function scaled(count, units) {
    if (!(count >= 0)) return '?';
    let step = 0;
    for (; count >= 999.5 && units[step + 1]; step++) count /= 1000;
    return (step ? count.toFixed(count < 9.995 ? 2 : count < 99.95 ? 1 : 0) : count) + units[step];
}

/** "6.94 GB": powers of 1000, as the command shows them. @param {number} bytes */
export const sizeText = (bytes) => scaled(bytes, [' B', ' KB', ' MB', ' GB', ' TB', ' PB']);

/** "1.20 B" of parameters, elements and the like. @param {number} count */
export const countText = (count) => scaled(count, ['', ' K', ' M', ' B', ' T']);

/** The number of a colour for a name, the same on every page and for what is of a kin: by its first word, "SDXL 1.0" as "SDXL". @param {string} name */
export const hueOf = (name) => [.../^(SD \d|\S*)/.exec(name)?.[0].toLowerCase() ?? ''].reduce((sum, one) => (sum * 209 + (one.codePointAt(0) ?? 0)) % 9973, 7) % 7;

/** "1 model", "2,000 models". @param {number} count @param {string} one @param {string} [many] */
export const plural = (count, one, many = one + 's') => `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
