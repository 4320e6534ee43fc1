// Elements. The only place that makes them: no markup is ever parsed, attributes are from a list,
// text is set as text.
import { visible } from './text.js';

/* Attributes that el may set: none of them runs anything or loads anything but what `picture` in
 * preview.js has checked. */
const ATTRIBUTES = new Set(['class', 'id', 'type', 'title', 'role', 'tabindex', 'for', 'name', 'value',
    'placeholder', 'checked', 'disabled', 'hidden', 'selected', 'open', 'min', 'max', 'step', 'size',
    'autocomplete', 'spellcheck', 'inputmode', 'lang', 'dir', 'scope', 'colspan', 'rowspan', 'list',
    'width', 'height', 'alt', 'loading', 'decoding', 'preload', 'muted', 'loop', 'playsinline',
    'multiple', 'readonly', 'draggable', 'rows', 'cols', 'viewBox', 'd', 'x', 'y', 'points', 'fill']);
const SVG = new Set(['svg', 'path', 'rect', 'g', 'polyline', 'line']);

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes
 */

/**
 * An element. Attributes: of the list above, `aria-*` and `data-*`; true is the empty string;
 * false, null and undefined are left out; onclick and the like take functions. Children that are text
 * become text nodes, as they are: foreign text goes through `foreign`.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes | null} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes, ...children) {
    const made = SVG.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag)
        : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (value === false || value === null || value === undefined) continue;
        if (typeof value === 'function') made.addEventListener(name.replace(/^on/, ''), value);
        else if (ATTRIBUTES.has(name) || /^(aria|data)-[a-z-]+$/.test(name))
            made.setAttribute(name, value === true ? '' : String(value));
        else throw new TypeError(`no attribute ${name}`);
    }
    append(made, children);
    return /** @type {any} */ (made);
}

/** @param {string} className @param {...(Child | Child[])} children */
export const span = (className, ...children) => el('span', { class: className }, ...children);

/**
 * A button; a label is for one whose text is only an icon.
 * @param {string} look classes beside "button"
 * @param {string | null} label
 * @param {(event: MouseEvent) => unknown} onclick
 * @param {...(Child | Child[])} children
 */
export function button(look, label, onclick, ...children) {
    return el('button', { type: 'button', class: `button ${look}`, title: label, 'aria-label': label, onclick }, ...children);
}

/** A track that is full to a share, 0 to 1. @param {number} share */
export function bar(share) {
    const full = el('span');
    full.style.width = `${Math.min(1, share || 0) * 100}%`;
    return el('span', { class: 'bar', 'aria-hidden': 'true' }, full);
}

/** @param {Element} parent @param {(Child | Child[])[]} children */
export function append(parent, children) {
    for (const child of children.flat())
        if (child !== null && child !== undefined && child !== false)
            parent.append(child instanceof Node ? child : String(child));
}

/** Replaces what is in an element. @param {Element} parent @param {...(Child | Child[])} children */
export function fill(parent, ...children) {
    parent.replaceChildren();
    append(parent, children);
}

/**
 * Foreign text, in an element that isolates its direction; `title` has what is cut.
 * @param {string} text
 * @param {string} [className]
 */
export function foreign(text, className) {
    return el('bdi', { class: className }, visible(text));
}

/**
 * A link out of the page, with its host in view; null for anything but https.
 * @param {string} address
 * @param {string} [label] of ours; else the host and path
 */
export function outside(address, label) {
    let url;
    try {
        url = new URL(address);
    } catch {
        return null;
    }
    if (url.protocol !== 'https:' || url.username || url.password) return null;
    const link = el('a', { class: 'outside' }, label ? `${label} ` : null,
        foreign(label ? `(${url.host})` : url.host + url.pathname));
    link.href = url.href;
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
    return link;
}

/** @param {string} id */
export function byId(id) {
    return /** @type {HTMLElement} */ (document.getElementById(id));
}
