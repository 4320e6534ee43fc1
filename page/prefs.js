// What a reader prefers, kept in localStorage under the page's id; without storage for this visit.

/**
 * @typedef {object} Prefs
 * @property {'auto' | 'light' | 'dark'} theme
 * @property {'large' | 'medium' | 'small' | 'list'} density of the grid
 * @property {number} hideFrom lowest CivitAI level that is hidden (4: R); 64: none
 * @property {boolean} hideUnknown whether pictures of unknown level are hidden too
 * @property {boolean} letterKeys whether single letters are keys
 */

/** @type {Prefs} */
export const prefs = { theme: 'auto', density: 'medium', hideFrom: 4, hideUnknown: false, letterKeys: true };
/** @type {Record<string, unknown[]>} */
const ALLOWED = {
    theme: ['auto', 'light', 'dark'], density: ['large', 'medium', 'small', 'list'], hideFrom: [2, 4, 8, 16, 64], hideUnknown: [false, true], letterKeys: [false, true],
};
let place = '';
/** @type {(() => void)[]} */
const listeners = [];

/** Reads what was kept; what is not one of the allowed values is ignored. @param {string} id */
export function loadPrefs(id) {
    place = `libsafetensors:${id}:prefs`;
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

function showTheme() {
    document.documentElement.dataset.theme = prefs.theme;
}
