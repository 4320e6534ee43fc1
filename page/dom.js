// Elements. The only place that makes them: no markup is ever parsed, attributes are from a list,
// text is set as text.
import { visible } from './text.js';

/* Attributes that el may set: none of them runs anything or loads anything. */
const ATTRIBUTES = new RegExp('^(class|id|type|title|role|tabindex|value|placeholder|checked|disabled|hidden|selected|open|min|max|step'
    + '|autocomplete|spellcheck|dir|scope|width|height|alt|loading|decoding|preload|loop|playsinline|readonly|draggable|viewBox|d|x|y|(aria|data)-[a-z-]+)$');

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes
 */

/**
 * @template {string} T
 * @typedef {T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T]
 *     : T extends `${infer K extends keyof HTMLElementTagNameMap}.${string}` ? HTMLElementTagNameMap[K] : HTMLElement} Made
 */

/**
 * An element: "li", "span.muted.tiny" with classes. Attributes, which may be left out: of the list
 * above, `label` for aria-label; true is the empty string; false, null and undefined are left out; onclick and the like take
 * functions. Children that are text become text nodes, as they are: foreign text goes through `foreign`.
 * @template {string} T
 * @param {T} tag
 * @param {Attributes | Child | Child[]} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {Made<T>}
 */
export function el(tag, attributes, ...children) {
    const [name, ...classes] = tag.split('.'),
        made = /^(svg|path|rect|g)$/.test(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
    if (name === 'button') made.setAttribute('type', name);
    if (classes.length) made.setAttribute('class', classes.join(' '));
    if (attributes?.constructor !== Object) append(made, [/** @type {Child} */ (attributes)]);
    else for (const [name, value] of Object.entries(attributes)) {
        const key = name === 'label' ? 'aria-label' : name;
        if (typeof value === 'function') made.addEventListener(key.slice(2), value);
        else if (!ATTRIBUTES.test(key)) throw new TypeError(`no attribute ${key}`);
        else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value === true ? '' : value);
    }
    append(made, children);
    return /** @type {any} */ (made);
}

/** A track that is full to a share, 0 to 1. @param {number} share @param {string} [look] */
export function bar(share, look = '') {
    const full = el('span');
    full.style.width = `${Math.min(1, share || 0) * 100}%`;
    return el('span', { class: `bar ${look}`, 'aria-hidden': 'true' }, full);
}

/** @param {Element} parent @param {(Child | Child[])[]} children */
export function append(parent, children) {
    parent.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== false).map((one) => one instanceof Node ? one : `${one}`));
}

/** Replaces what is in an element. @param {Element} parent @param {...(Child | Child[])} children */
export function fill(parent, ...children) {
    parent.replaceChildren();
    append(parent, children);
}

/** Foreign text, in an element that isolates its direction. @param {string} text @param {string} [className] */
export const foreign = (text, className) => el('bdi', { class: className }, visible(text));

/**
 * A link out of the page, with its host in view; null for anything but https.
 * @param {string} address
 * @param {string} [label] of ours; else the host and path
 */
export function outside(address, label) {
    const url = URL.canParse(address) ? new URL(address) : null;
    if (url?.protocol !== 'https:' || url.username || url.password) return null;
    const link = el('a.outside', label && `${label} `, foreign(label ? `(${url.host})` : url.host + url.pathname));
    link.href = url.href;
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
    return link;
}

/** Saves a text as a file, where the browser puts downloads. @param {string} name @param {string} text */
export function saveText(name, text) {
    const link = el('a'), address = URL.createObjectURL(new Blob([text], { type: 'application/octet-stream' }));
    link.href = address;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** A dialog that a click beside it closes. @param {string} className @param {string} label @param {...Child} children */
export function makeDialog(className, label, ...children) {
    return el('dialog', { class: className, label, onclick: ({ target, currentTarget }) => target === currentTarget && target.close() }, children);
}

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
