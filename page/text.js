// Text from strangers: how it is shown, compared and copied.

/* Controls, bidirectional controls, invisible and other characters that could mislead: shown as
 * escapes. Tab and line feed are white space where text is shown. */
const HIDDEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Text as it is shown: characters that cannot be seen, or that reorder others, as \u{…}. Emoji keep
 * their joiners and variation selectors.
 * @param {string} text
 */
export function visible(text) {
    return text.replace(HIDDEN, (one, at) => {
        const before = text.slice(Math.max(0, at - 2), at);
        if ((one === '\u200d' || one === '\ufe0f') && /\p{Extended_Pictographic}|[\ufe0f\u{1f3fb}-\u{1f3ff}#*0-9]$/u.test(before))
            return one;
        return '\\u{' + /** @type {number} */ (one.codePointAt(0)).toString(16) + '}';
    });
}

/**
 * Text as it goes to the clipboard, for a prompt or a terminal: no controls, no bidirectional
 * controls, no line breaks, which become spaces.
 * @param {string} text
 */
export function clean(text) {
    return text.replace(/[\t\n\u000b\f\r\u0085\u2028\u2029]+/g, ' ')
        .replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, '');
}

/** Text as it is compared: lower case, compatibility forms unified. @param {string} text */
export function folded(text) {
    return text.normalize('NFKC').toLowerCase();
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];

/** "6.94 GB": powers of 1000, as the command shows them. @param {number} bytes */
export function sizeText(bytes) {
    if (!(bytes >= 0)) return '?';
    let step = 0, value = bytes;
    while (value >= 999.5 && step < UNITS.length - 1) { value /= 1000; step++; }
    if (step === 0) return `${value} B`;
    return `${value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0)} ${UNITS[step]}`;
}

/** "1.2 B" of parameters, elements and the like. @param {number} count */
export function countText(count) {
    if (!(count >= 0)) return '?';
    const names = ['', ' K', ' M', ' B', ' T'];
    let step = 0, value = count;
    while (value >= 999.5 && step < names.length - 1) { value /= 1000; step++; }
    if (step === 0) return String(value);
    return (value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0)) + names[step];
}

/** "1 model", "2,000 models". @param {number} count @param {string} one @param {string} [many] */
export function plural(count, one, many) {
    return `${count.toLocaleString('en')} ${count === 1 ? one : many ?? one + 's'}`;
}
