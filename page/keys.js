// Keys: one table of actions, one listener, and the help that lists them.
import { el, fill, makeDialog } from './dom.js';
import { iconButton } from './icons.js';
import { onPrefs, prefs, setPref } from './prefs.js';

/**
 * @typedef {object} Action
 * @property {string} id
 * @property {string[]} keys as KeyboardEvent.key: "c", "?", "ArrowLeft", "Shift+Home", "Ctrl+f" (on a Mac Cmd)
 * @property {string} label what it does: "Copy the trigger words"
 * @property {(event: KeyboardEvent) => unknown} run false: leave the key to the browser
 * @property {() => boolean} [when] it applies; else always
 * @property {string} [group] heading in the help
 */

/** @type {Map<string, Action>} */
const actionTable = new Map();
/** @type {HTMLDialogElement | undefined} */
let helpDialog;

/** What text is typed into: text fields keep all keys but Esc and those with Ctrl. @param {any} target */
const isTyped = ({ isContentEditable, tagName, type }) =>
    isContentEditable || /^(TEXTAREA|SELECT)$/.test(tagName) || tagName === 'INPUT' && !/^(checkbox|radio|range)$/.test(type);

/** Keys that a control needs itself. @param {any} target @param {string} name */
const isTaken = ({ tagName, type }, name) =>
    /^(Enter| )$/.test(name) ? /^(A|BUTTON|SUMMARY|INPUT|VIDEO)$/.test(tagName) : /^(Arrow|Home|End|Page)/.test(name) && /^(radio|range)$/.test(type);

/**
 * The name that the table has of a key: "c", "Ctrl+f", "Shift+Home"; "" of one with Alt.
 * @param {{ key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean, shiftKey?: boolean }} event
 */
export function keyName(event) {
    if (event.altKey || event.key === undefined) return '';
    const single = [...event.key].length === 1, key = single ? event.key.toLowerCase() : event.key;
    return event.ctrlKey || event.metaKey ? 'Ctrl+' + key : event.shiftKey && !single ? 'Shift+' + key : key;
}

/** A key that types something: WCAG 2.1.4 wants a switch for these. @param {string} name */
export const isLetter = (name) => [...name].length === 1 && name !== ' ';

/** @param {KeyboardEvent} event */
function pressed(event) {
    const name = keyName(event);
    if (!name || event.defaultPrevented || event.isComposing || helpDialog?.open) return;
    if (isTyped(event.target) && !/^(Escape$|Ctrl\+)/.test(name) && !(name === '/' && /** @type {Element} */ (event.target).tagName === 'SELECT')) return;
    if (isTaken(event.target, name) || isLetter(name) && (!prefs.letterKeys || event.repeat)) return;
    const action = [...actionTable.values()].find((one) => one.keys.includes(name) && one.when?.() !== false);
    if (action && action.run(event) !== false) event.preventDefault();
}

/** Adds an action to the table; one of the same id is replaced. @param {Action} action */
export function addAction(action) {
    if (!actionTable.size) document.addEventListener('keydown', pressed);
    actionTable.set(action.id, action);
}

/** @type {Record<string, string>} */
const SIGNS = {
    ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Escape: 'Esc', ' ': 'Space',
    PageUp: 'Page up', PageDown: 'Page down',
};

/** A key as people read it: "Ctrl F", "←". @param {string} name */
export const keyText = (name) => name.split(/\+(?=.)/).map((part) => SIGNS[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join(' ');

const drawLetters = () => helpDialog?.classList.toggle('letters-off', !prefs.letterKeys);

/** Sentences below the keys. @type {string[]} */
export const helpNotes = [];

/** Opens the list of all keys. */
export function openHelp() {
    if (!helpDialog) {
        helpDialog = makeDialog('help', 'Keys');
        onPrefs(drawLetters);
    }
    const made = helpDialog, all = [...actionTable.values()], groupName = (/** @type {Action} */ { group = 'Page' }) => group;
    drawLetters();
    fill(made, el('div.help-box',
        el('div.help-head', el('h2', 'Keys'), iconButton('.quiet', 'close', 'Close', () => made.close())),
        el('div.help-groups', [...new Set(all.map(groupName))].map((name) => el('section', el('h3.heading', name),
            el('dl', all.filter((one) => groupName(one) === name).map(({ id, keys, label }) => el('div', { 'data-action': id },
                el('dt', keys.map((key) => el('kbd', { class: isLetter(key) && 'letter' }, keyText(key)))), el('dd', label))))))),
        helpNotes.map((note) => el('p.muted', note)), el('label.check', el('input', {
            type: 'checkbox', role: 'switch', checked: prefs.letterKeys, onchange: ({ target }) => setPref('letterKeys', target.checked),
        }), ' Keys of one letter or sign (switch off if you use speech input)')));
    if (made.open) return;
    document.body.append(made);
    made.showModal();
}

/** Adds the key of the help itself. */
export function addHelp() {
    addAction({ id: 'help', keys: ['?'], label: 'Show the keys', run: openHelp });
}
