// Pictures: which addresses may be loaded, and which pictures are hidden until a click.
import { visible } from './text.js';
import { el, fill, foreign } from './dom.js';
import { icon } from './icons.js';
import { onPrefs, prefs } from './prefs.js';

const LEVELS = ['unknown', 'PG', 'PG-13', 'R', 'X', 'XXX', 'blocked'];

/** The highest bit of a level, at most 32; 0: unknown. @param {number | undefined} level */
export function levelBit(level) {
    if (!level || !(level >= 1)) return 0;
    return level >= 32 ? 32 : 1 << (31 - Math.clz32(level));
}

/** "R" of 4: the highest of its bits. @param {number | undefined} level */
export function levelName(level) {
    const bit = levelBit(level);
    return LEVELS[bit ? 32 - Math.clz32(bit) : 0];
}

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
export function initials(name) {
    const words = name.match(/[\p{L}\p{N}]+/gu) ?? [];
    return words.slice(0, 2).map((word) => String.fromCodePoint(word.codePointAt(0) ?? 63)).join('').toUpperCase();
}

/** Pictures that were shown by a click, until what is hidden changes. @type {Set<string | number>} */
const revealed = new Set();
/** What draws a box anew. @type {WeakMap<Element, () => void>} */
const draws = new WeakMap();
/** @type {Set<() => void>} */
let waiting = new Set();
let paused = false;
let hides = '';
let isListening = false;

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

/** @param {HTMLElement} box @param {boolean} play */
function playBox(box, play) {
    const video = box.querySelector('video');
    if (!video) return;
    if (!play) video.pause();
    else if (!matchMedia('(prefers-reduced-motion: reduce)').matches) video.play().catch(() => {});
}

/** A video plays while the pointer or the focus is on its box, or the focus in its card. */
function listenForPictures() {
    if (isListening) return;
    isListening = true;
    onPrefs(() => {
        const now = `${prefs.hideFrom} ${prefs.hideUnknown}`;
        if (now === hides) return;
        hides = now;
        revealed.clear();
        drawAll();
    });
    hides = `${prefs.hideFrom} ${prefs.hideUnknown}`;
    for (const type of ['focusin', 'focusout'])
        document.addEventListener(type, (event) => {
            const place = /** @type {Element} */ (event.target).closest('.card, .thumb, .picture');
            const box = place?.matches('.picture') ? place : place?.querySelector('.picture');
            if (box) playBox(/** @type {HTMLElement} */ (box), type === 'focusin');
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
    const box = el('div', { class: large ? 'picture large' : 'picture' });
    /** @param {string} [why] */
    const none = (why) => {
        box.dataset.state = 'none';
        box.dataset.hue = String([...alt].reduce((sum, one) => sum + (one.codePointAt(0) ?? 0), 0) % 7);
        fill(box, el('span', { class: 'picture-none', 'aria-hidden': 'true' }, initials(alt)),
            why && el('span', { class: 'picture-why' }, foreign(why)));
    };
    if (!picture || picture.why) {
        none(picture ? picture.why : '');
        return box;
    }
    const load = () => {
        const href = checkedHref(typeof picture.href === 'number' ? source?.(picture) : picture.href);
        if (!href) return none('no picture');
        const size = { width: picture.width, height: picture.height };
        const broken = () => none(`the picture cannot be shown${large && typeof picture.href === 'string' ? ': was the page moved away from it?' : ''}`);
        box.dataset.state = picture.video ? 'video' : 'image';
        if (picture.video) {
            const video = el('video', {
                ...size, muted: true, loop: true, playsinline: true, preload: 'none', 'aria-label': `video of ${visible(alt)}`, onerror: broken,
            });
            video.muted = true;
            video.controls = large;
            video.src = href;
            fill(box, video, !large && el('span', { class: 'picture-play' }, icon('video')));
        } else {
            const image = el('img', {
                ...size, alt: large ? `picture of ${visible(alt)}` : '', loading: lazy ? 'lazy' : null, decoding: 'async', draggable: 'false',
                onerror: broken,
            });
            image.src = href;
            fill(box, image);
        }
    };
    const draw = () => {
        const hide = isHidden(picture.level) && !revealed.has(picture.href);
        if (!hide && box.dataset.state && box.dataset.state !== 'hidden') return;
        waiting.delete(load);
        if (hide) {
            const level = levelName(picture.level);
            const words = `hidden: ${level === 'unknown' ? 'not rated' : `rated ${level}`}`;
            box.dataset.state = 'hidden';
            fill(box, el('span', { class: 'picture-hidden' }, icon('hidden'), el('span', { class: plain ? 'unseen' : null }, words)),
                !plain && el('button', {
                    type: 'button', class: 'button small', 'aria-label': `Show, ${words}`,
                    onclick: (event) => {
                        event.stopPropagation();
                        revealed.add(picture.href);
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
    if (picture.video) {
        box.addEventListener('pointerenter', () => playBox(box, true));
        box.addEventListener('pointerleave', () => { if (!box.contains(document.activeElement)) playBox(box, false); });
    }
    draws.set(box, draw);
    draw();
    return box;
}
