// What a reader prefers, and stars set in the page, kept in localStorage under the page's id; without
// storage for this visit.

/**
 * @typedef {object} Prefs
 * @property {'auto' | 'light' | 'dark'} theme
 * @property {'large' | 'medium' | 'small' | 'list'} density of the grid
 * @property {number} hideFrom lowest CivitAI level that is hidden (4: R); 64: none
 * @property {boolean} hideUnknown whether pictures of unknown level are hidden too
 * @property {'stripes' | 'blur'} veil what hides them: blurred pictures are loaded
 * @property {'' | import('./shell.js').Shell} shell that commands are for
 * @property {boolean} letterKeys whether single letters are keys
 */

/** @type {Prefs} */
export const prefs = { theme: 'auto', density: 'medium', hideFrom: 4, hideUnknown: false, veil: 'stripes', shell: '', letterKeys: true };
/** @type {Record<string, unknown[]>} */
const ALLOWED = {
    theme: ['auto', 'light', 'dark'], density: ['large', 'medium', 'small', 'list'], hideFrom: [2, 4, 8, 16, 64], hideUnknown: [false, true], veil: ['stripes', 'blur'], shell: ['', 'sh', 'powershell', 'cmd'], letterKeys: [false, true],
};
let place = '', starPlace = '';
/** @type {(() => void)[]} */
const listeners = [];

/** Reads what was kept; what is not one of the allowed values is ignored. @param {string} id */
export function loadPrefs(id) {
    place = `libsafetensors:${id}:prefs`;
    starPlace = `libsafetensors:${id}:stars`;
    try {
        const kept = JSON.parse(localStorage.getItem(place) ?? '{}');
        for (const [key, values] of Object.entries(ALLOWED)) if (values.includes(kept[key])) Object.assign(prefs, { [key]: kept[key] });
    } catch { /* no storage, or not ours */ }
    showTheme();
}

/**
 * @template {keyof Prefs} K
 * @param {K} key
 * @param {Prefs[K]} value
 */
export function setPref(key, value) {
    prefs[key] = value;
    try {
        localStorage.setItem(place, JSON.stringify(prefs));
    } catch { /* no storage: for this visit */ }
    showTheme();
    for (const tell of listeners) tell();
}

/** Calls tell after each change. @param {() => void} tell */
export function onPrefs(tell) {
    listeners.push(tell);
}

/** Models whose star was changed in this page, by path. @type {Map<string, boolean>} */
export const stars = new Map();

/** Reads them; those that the files by now agree with are gone. @param {(path: string) => boolean | undefined} known what the files say; of no model of the page: undefined */
export function loadStars(known) {
    try {
        for (const [path, is] of Object.entries(JSON.parse(localStorage.getItem(starPlace) ?? '{}')))
            if (typeof is === 'boolean' && known(path) !== undefined && known(path) !== is) stars.set(path, is);
    } catch { /* no storage, or not ours */ }
}

/** @param {string} path @param {boolean | undefined} is undefined: as the files say */
export function setStar(path, is) {
    if (is === undefined) stars.delete(path);
    else stars.set(path, is);
    keepStars();
}

export function forgetStars() {
    stars.clear();
    keepStars();
}

/** Whether the browser kept them. */
export let areStarsKept = true;
function keepStars() {
    try {
        localStorage.setItem(starPlace, JSON.stringify(Object.fromEntries(stars)));
    } catch {
        areStarsKept = false;
    }
}

function showTheme() {
    document.documentElement.dataset.theme = prefs.theme;
}
