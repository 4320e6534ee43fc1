// Keys: one table of actions, one listener, and the help that lists them.
import { el, fill } from './dom.js';
import { icon } from './icons.js';
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

/** What text is typed into: text fields keep all keys but Esc and those with Ctrl. @param {EventTarget | null} target */
function isTyped(target) {
    const node = /** @type {HTMLInputElement} */ (target);
    if (node?.isContentEditable) return true;
    return node?.tagName === 'TEXTAREA' || node?.tagName === 'SELECT'
        || node?.tagName === 'INPUT' && !/^(checkbox|radio|range|button|submit|reset|color)$/.test(node.type);
}

/** Keys that a control needs itself. @param {EventTarget | null} target @param {string} name */
function isTaken(target, name) {
    const node = /** @type {HTMLInputElement} */ (target);
    if (/^(Enter| )$/.test(name)) return /^(A|BUTTON|SUMMARY|INPUT|VIDEO)$/.test(node?.tagName);
    return node?.tagName === 'INPUT' && /^(radio|range)$/.test(node.type)
        && /^(Arrow|Home|End|Page)/.test(name);
}

/**
 * The name that the table has of a key: "c", "Ctrl+f", "Shift+Home"; "" of one with Alt.
 * @param {{ key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean, shiftKey?: boolean }} event
 */
export function keyName(event) {
    if (event.altKey || event.key === undefined) return '';
    const single = [...event.key].length === 1;
    const key = single ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.metaKey) return 'Ctrl+' + key;
    return event.shiftKey && !single ? 'Shift+' + key : key;
}

/** A key that types something: WCAG 2.1.4 wants a switch for these. @param {string} name */
export function isLetter(name) {
    return [...name].length === 1 && name !== ' ';
}

/** @param {KeyboardEvent} event */
function pressed(event) {
    const name = keyName(event);
    if (!name || event.defaultPrevented || event.isComposing || helpDialog?.open) return;
    if (isTyped(event.target) && !/^(Escape$|Ctrl\+)/.test(name) && !(name === '/' && /** @type {Element} */ (event.target).tagName === 'SELECT')) return;
    if (isTaken(event.target, name) || isLetter(name) && (!prefs.letterKeys || event.repeat)) return;
    for (const action of actionTable.values()) {
        if (!action.keys.includes(name) || action.when && !action.when()) continue;
        if (action.run(event) !== false) event.preventDefault();
        return;
    }
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
export function keyText(name) {
    return name.split(/\+(?=.)/).map((part) => SIGNS[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join(' ');
}

/** Opens the list of all keys. */
export function openHelp() {
    if (!helpDialog) {
        helpDialog = el('dialog', { class: 'help', 'aria-labelledby': 'help-title' });
        const made = helpDialog;
        made.addEventListener('click', (event) => { if (event.target === made) made.close(); });
        onPrefs(() => made.classList.toggle('letters-off', !prefs.letterKeys));
    }
    const made = helpDialog;
    /** @type {Map<string, Action[]>} */
    const groups = new Map();
    for (const action of actionTable.values())
        groups.set(action.group ?? 'Page', [...groups.get(action.group ?? 'Page') ?? [], action]);
    made.classList.toggle('letters-off', !prefs.letterKeys);
    fill(made, el('div', { class: 'help-box' },
        el('header', { class: 'help-head' }, el('h2', { id: 'help-title' }, 'Keys'),
            el('button', { type: 'button', class: 'button quiet icon-only', 'aria-label': 'Close', onclick: () => made.close() }, icon('close'))),
        el('div', { class: 'help-groups' }, [...groups].map(([name, list]) => el('section', null, el('h3', null, name),
            el('dl', { class: 'help-list' }, list.map((action) => el('div', { 'data-action': action.id },
                el('dt', null, action.keys.map((key) => el('kbd', { class: isLetter(key) ? 'letter' : null }, keyText(key)))),
                el('dd', null, action.label))))))),
        el('label', { class: 'check' }, el('input', {
            type: 'checkbox', role: 'switch', checked: prefs.letterKeys,
            onchange: (/** @type {any} */ event) => setPref('letterKeys', event.target.checked),
        }), ' Keys of one letter or sign (switch off if you use speech input)')));
    document.body.append(made);
    if (!made.open) made.showModal();
}

/** Adds the key of the help itself. */
export function addHelp() {
    addAction({ id: 'help', keys: ['?'], label: 'Show the keys', run: openHelp });
}
