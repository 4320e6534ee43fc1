// Icons: one path each, on a grid of 16, drawn by the colour of the text (.icon in base.css).
import { el } from './dom.js';

const ICONS = {
    search: 'M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9M10.5 10.5l3.5 3.5',
    close: 'M4 4l8 8M12 4l-8 8',
    back: 'M10 3L5 8l5 5',
    next: 'M6 3l5 5-5 5',
    down: 'M3 6l5 5 5-5',
    copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
    code: 'M5.5 4L2 8l3.5 4M10.5 4L14 8l-3.5 4',
    more: 'M3 8h.01M8 8h.01M13 8h.01',
    filter: 'M2 4h12M4.5 8h7M6.5 12h3',
    warn: 'M8 2.5l6.2 11H1.8zM8 6.5v3.5M8 11.7v.01',
    twins: 'M2.5 5.5h8v8h-8zM5.5 2.5h8v8',
    eye: 'M1.5 8s2.5-4.5 6.5-4.5 6.5 4.5 6.5 4.5-2.5 4.5-6.5 4.5-6.5-4.5-6.5-4.5M8 6a2 2 0 1 0 0 4a2 2 0 0 0 0-4',
    hidden: 'M2.5 2.5l11 11M6.3 3.7q.8-.2 1.7-.2c4 0 6.5 4.5 6.5 4.5q-.7 1.2-1.9 2.4M10 11.8q-1 .7-2 .7c-4 0-6.5-4.5-6.5-4.5q1-1.9 2.8-3.2',
    light: 'M8 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6M8 1v1.2M8 13.8V15M1 8h1.2M13.8 8H15M3 3l.9.9M12.1 12.1l.9.9M13 3l-.9.9M3.9 12.1L3 13',
    dark: 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7',
    auto: 'M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12M8 2v12M10.5 3v10M12.5 4.5v7',
    large: 'M2.5 2.5h11v11h-11z',
    medium: 'M2.5 2.5h4v11h-4zM9.5 2.5h4v11h-4z',
    small: 'M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h4v4h-4z',
    star: 'M8 2l1.8 3.8 4.2.6-3 2.9.7 4.2L8 11.5l-3.7 2 .7-4.2-3-2.9 4.2-.6z',
    list: 'M2 4h.01M5 4h9M2 8h.01M5 8h9M2 12h.01M5 12h9',
    up: 'M8 13V3M4 7l4-4 4 4',
    fall: 'M8 3v10M4 9l4 4 4-4',
    help: 'M5.5 6a2.5 2.5 0 1 1 3.7 2.2q-1.2.7-1.2 1.8M8 12.8v.01',
    folder: 'M1.5 12.5v-9h4.5l1.5 2h7v7z',
    cut: 'M3 9V2h10v7l-3-2-3 2zM3 12v2h10v-2',
    page: 'M8 2a6 6 0 1 0 0 12a6 6 0 0 0 0-12M2 8h12M8 2q-5 6 0 12q5-6 0-12',
    file: 'M3.5 1.5H9L12.5 5v9.5h-9z',
    video: 'M5 3.5v9l7.5-4.5z',
};

/**
 * An icon, for decoration: what it says is also in words.
 * @param {keyof typeof ICONS} name
 * @returns {SVGSVGElement}
 */
export const icon = (name) => /** @type {any} */ (el('svg.icon', { viewBox: '0 0 16 16', 'aria-hidden': 'true' }, el('path', { d: ICONS[name] })));

/**
 * A button with an icon only.
 * @param {string} kind more classes: ".small"
 * @param {Parameters<typeof icon>[0]} name
 * @param {string} label
 * @param {(() => void) | undefined} [onclick]
 * @param {string} [key] that does the same: " (C)"
 */
export const iconButton = (kind, name, label, onclick = () => {}, key = '') =>
    el(`button.button.icon-only${kind}`, { label, title: label + key, onclick }, icon(name));
