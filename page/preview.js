// Pictures: which addresses may be loaded, and which pictures are hidden until a click.
import { hueOf, visible } from './text.js';
import { el, fill, foreign } from './dom.js';
import { icon } from './icons.js';
import { onPrefs, prefs } from './prefs.js';

const LEVELS = ['unknown', 'PG', 'PG-13', 'R', 'X', 'XXX', 'blocked'];

/** The highest bit of a level, at most 32; 0: unknown. @param {number | undefined} level */
export const levelBit = (level = 0) => level >= 1 ? Math.min(32, 2 ** Math.floor(Math.log2(level))) : 0;

/** "R" of 4: the highest of its bits. @param {number | undefined} level */
export const levelName = (level) => LEVELS[Math.log2(levelBit(level) * 2 || 1)];

/** Whether a picture of this level is hidden now. @param {number | undefined} level */
export function isHidden(level) {
    const bit = levelBit(level);
    return bit ? bit >= prefs.hideFrom : prefs.hideUnknown;
}

/**
 * An address that may be loaded: a relative path, percent-encoded, or an embedded picture; else "".
 * No scheme, no host, no absolute path, no backslash in any spelling.
 * @param {unknown} href
 */
export function checkedHref(href) {
    if (typeof href !== 'string') return '';
    if (/^data:(image|video)\/[\w.+-]+;base64,[A-Za-z0-9+/]+=*$/.test(href)) return href;
    const relative = /^(?!\/)(?!.*\/\/)(?:[A-Za-z0-9._~/-]|%[0-9A-Fa-f]{2})+$/;
    return relative.test(href) && !/%(5c|2f|00)/i.test(href) ? href : '';
}

/** One or two letters in place of a picture. @param {string} name */
export const initials = (name) => (name.match(/[\p{L}\p{N}]+/gu) ?? []).slice(0, 2).map((word) => [...word][0]).join('').toUpperCase();

/** Pictures that were shown by a click, until what is hidden changes. @type {Set<string | number>} */
const revealed = new Set();
/** What draws a box anew. @type {WeakMap<Element, () => void>} */
const draws = new WeakMap();
/** @type {Set<() => void>} */
let waiting = new Set();
let paused = false;
let hides = '';

/** While paused, no picture begins to load. @param {boolean} pause */
export function setPaused(pause) {
    paused = pause;
    if (pause) return;
    const ready = waiting;
    waiting = new Set();
    for (const load of ready) load();
}

function drawAll() {
    for (const box of document.querySelectorAll('.picture')) draws.get(box)?.();
}

/** @param {Element | null | undefined} box @param {boolean} play */
function playBox(box, play) {
    const video = box?.querySelector('video');
    if (!play) video?.pause();
    else if (!matchMedia('(prefers-reduced-motion: reduce)').matches) video?.play().catch(() => {});
}

const hidesNow = () => `${prefs.hideFrom} ${prefs.hideUnknown} ${prefs.veil}`;

/** A video plays while the pointer or the focus is on its box, or the focus in its card. */
function listenForPictures() {
    if (hides) return;
    hides = hidesNow();
    onPrefs(() => {
        if (hidesNow() === hides) return;
        hides = hidesNow();
        revealed.clear();
        drawAll();
    });
    for (const type of ['focusin', 'focusout'])
        document.addEventListener(type, ({ target }) => {
            const place = /** @type {Element} */ (target).closest('.card, .thumb, .picture');
            playBox(place?.matches('.picture') ? place : place?.querySelector('.picture'), type === 'focusin');
        });
}

/**
 * A box with a picture or video, or with the reason why it shows none: hidden, broken, too large.
 * Its shape is that of its class in the style; nothing moves when the picture comes.
 * @param {Picture | 0 | null | undefined} picture
 * @param {object} options
 * @param {string} options.alt what it belongs to: the model's name
 * @param {boolean} [options.lazy] load when it is near the window
 * @param {(picture: Picture) => string} [options.source] address of an embedded picture
 * @param {boolean} [options.large] videos get controls, the whole picture is visible
 * @param {boolean} [options.plain] without a button of its own, for a box in a button
 */
export function pictureBox(picture, { alt, lazy = true, source, large = false, plain = false }) {
    listenForPictures();
    const box = el(large ? 'div.picture.large' : 'div.picture');
    /** @param {string} [why] */
    const none = (why) => {
        box.dataset.state = 'none';
        box.dataset.hue = `${hueOf(alt)}`;
        fill(box, el('span.picture-none', { 'aria-hidden': 'true' }, initials(alt)), why && el('span.picture-why', foreign(why)));
    };
    if (!picture || picture.why) {
        none(picture ? picture.why : '');
        return box;
    }
    const { href, video, width, height } = picture, label = `${video ? 'video' : 'picture'} of ${visible(alt)}`;
    const load = () => {
        const src = checkedHref(typeof href === 'number' ? source?.(picture) : href);
        if (!src) return none('no picture');
        const shown = video ? el('video', { width, height, loop: true, playsinline: true, preload: 'none', label })
            : el('img', { width, height, alt: large ? label : '', loading: lazy && 'lazy', decoding: 'async', draggable: 'false' });
        const moved = large && typeof href === 'string' ? ': was the page moved away from it?' : '';
        shown.addEventListener('error', () => none(`the picture cannot be shown${moved}`));
        if ('muted' in shown) Object.assign(shown, { muted: true, controls: large });
        shown.src = src;
        box.dataset.state = video ? 'video' : 'image';
        fill(box, shown, video && !large && el('span.picture-play', icon('video')));
    };
    const draw = () => {
        const hide = isHidden(picture.level) && !revealed.has(href);
        if (!hide && box.dataset.state && box.dataset.state !== 'hidden') return;
        waiting.delete(load);
        if (hide) {
            const words = `hidden: ${levelBit(picture.level) ? `rated ${levelName(picture.level)}` : 'not rated'}`;
            const src = prefs.veil === 'blur' && !video && checkedHref(typeof href === 'number' ? source?.(picture) : href),
                blurred = src && !paused && el('img', { alt: '', loading: lazy && 'lazy', decoding: 'async', draggable: 'false' });
            if (src && paused) waiting.add(draw);
            if (blurred) blurred.src = src;
            blurred && blurred.addEventListener('error', () => blurred.remove());
            box.dataset.state = 'hidden';
            fill(box, blurred, el('span.picture-hidden', icon('hidden'), el('span', { class: plain && 'unseen' }, words)),
                !plain && el('button.button.small', {
                    label: `Show, ${words}`,
                    onclick: (event) => {
                        event.stopPropagation();
                        revealed.add(href);
                        drawAll();
                        /* The button is gone; the focus stays where it was. */
                        box.tabIndex = -1;
                        box.focus({ preventScroll: true });
                    },
                }, 'Show'));
        } else if (paused) {
            fill(box);
            box.dataset.state = 'waiting';
            waiting.add(load);
        } else load();
    };
    if (video) {
        box.addEventListener('pointerenter', () => playBox(box, true));
        box.addEventListener('pointerleave', () => box.contains(document.activeElement) || playBox(box, false));
    }
    draws.set(box, draw);
    draw();
    return box;
}
