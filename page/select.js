// Models that are selected: which, by pointer and by key, and the bar that says so.
import { sizeText } from './text.js';
import { el, fill } from './dom.js';
import { icon, iconButton } from './icons.js';

/**
 * @param {import('./data.js').Catalog} catalog
 * @param {() => { order: Uint32Array, place: Int32Array }} result
 * @param {() => void} changed
 */
export function makeSelection({ rows }, result, changed) {
    /** @type {Set<number>} */
    const chosen = new Set();
    /** What the range that is drawn has added. @type {number[]} */
    let ranged = [];
    let anchor = -1;

    /** @param {number} model */
    function toggle(model) {
        if (!chosen.delete(model)) chosen.add(model);
        anchor = model;
        ranged = [];
        changed();
    }

    /** From the anchor to a model, in the order of the result; the range before is taken back. @param {number} model */
    function extend(model) {
        const { order, place } = result(), [from, to] = [place[anchor] ?? -1, place[model]].sort((a, b) => a - b);
        if (from < 0) return toggle(model);
        for (const one of ranged) chosen.delete(one);
        ranged = [...order.subarray(from, to + 1)].filter((one) => !chosen.has(one));
        for (const one of ranged) chosen.add(one);
        changed();
    }
    return {
        toggle, extend,
        has: (/** @type {number} */ model) => chosen.has(model),
        count: () => chosen.size,
        /** In the order of the rows. */
        models: () => [...chosen].sort((a, b) => a - b),
        bytes: () => [...chosen].reduce((sum, i) => sum + Math.max(0, rows.bytes[i]), 0),
        hidden: () => [...chosen].filter((i) => result().place[i] < 0).length,
        /** Begins a range at a model, unless one is begun. @param {number} model */
        begin(model) {
            if (result().place[anchor] >= 0 && chosen.has(anchor)) return;
            anchor = model;
            ranged = [];
        },
        all() {
            for (const one of result().order) chosen.add(one);
            changed();
        },
        clear() {
            chosen.clear();
            ranged = [];
            anchor = -1;
            changed();
        },
    };
}

/** @typedef {ReturnType<typeof makeSelection>} Selection */

/** @param {Selection} selection @param {() => number} total @param {() => void} act @param {() => void} star */
export function makeSelectionBar(selection, total, act, star) {
    const count = el('p.selected-count', { role: 'status' }),
        all = el('button.button.quiet', { onclick: () => selection.all(), title: 'Ctrl A' }),
        element = el('section.select-bar', { label: 'Selection', hidden: true }, count, all,
            el('button.button.primary', { onclick: act, title: 'A' }, icon('code'), 'Commands'),
            el('button.button.quiet', { onclick: star, title: '*' }, icon('star'), el('span.wide', 'Star')),
            iconButton('.quiet', 'close', 'Select none', () => selection.clear(), ' (Esc)'));
    return {
        element,
        update() {
            const chosen = selection.count(), hidden = selection.hidden();
            element.hidden = !chosen;
            fill(count, el('b', `${chosen.toLocaleString('en')} selected`), chosen > 0 && el('span.muted', ` · ${sizeText(selection.bytes())}`),
                hidden > 0 && el('span.warn', ` · ${hidden.toLocaleString('en')} not shown`));
            all.hidden = chosen - hidden >= total();
            fill(all, `Select all ${total().toLocaleString('en')}`);
        },
    };
}
