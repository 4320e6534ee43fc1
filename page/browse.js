// One model of the catalogue in a dialog; previous and next of the filtered order.
import { el, fill } from './dom.js';
import { icon } from './icons.js';
import { visible } from './text.js';
import { addIds } from './facts.js';
import { detailView } from './detail.js';

/**
 * @param {import('./data.js').Catalog} catalog
 * @param {object} options
 * @param {(model: number) => number} options.position of a model in the result, -1 if it is not in it
 * @param {(position: number) => number} options.at
 * @param {() => number} options.size
 * @param {(model: number) => void} options.shown after a model was opened or changed, -1: closed
 */
export function makeBrowser(catalog, { position, at, size, shown }) {
    let model = -1;
    const { kind, base, architecture, precision } = catalog.rows.dict;
    addIds([...kind, ...base, ...architecture, ...precision]);
    const place = el('span', { class: 'muted number browse-place' });
    const button = (/** @type {'back' | 'next' | 'close'} */ name, /** @type {string} */ label, /** @type {() => void} */ run) =>
        el('button', { type: 'button', class: 'button quiet icon-only', 'aria-label': label, title: label, onclick: run }, icon(name));
    const back = button('back', 'Previous model (←)', () => step(-1));
    const next = button('next', 'Next model (→)', () => step(1));
    const body = el('div', { class: 'browse-body', tabindex: -1 });
    const dialog = el('dialog', { class: 'browse', 'aria-label': 'Model' },
        el('div', { class: 'browse-head' }, back, next, place, el('span', { class: 'spread' }), button('close', 'Close (Esc)', () => dialog.close())), body);
    dialog.addEventListener('close', () => { model = -1; fill(body); shown(-1); });
    dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });

    /** @param {number} i */
    function show(i) {
        model = i;
        const { rows } = catalog;
        fill(body, detailView(catalog.more(i), { picture: catalog.picture, name: rows.name[i] || catalog.stem(i) }));
        dialog.setAttribute('aria-label', visible(rows.name[i] || catalog.stem(i)));
        const k = position(i);
        fill(place, k < 0 ? '' : `${(k + 1).toLocaleString('en')} of ${size().toLocaleString('en')}`);
        back.disabled = k <= 0;
        next.disabled = k < 0 || k >= size() - 1;
        if (!dialog.open) { dialog.showModal(); body.focus(); }
        dialog.scrollTop = body.scrollTop = 0;
        shown(i);
    }

    /** @param {1 | -1} by */
    function step(by) {
        const k = position(model) + by;
        if (model < 0 || position(model) < 0 || k < 0 || k >= size()) return;
        show(at(k));
        /* A button that was disabled under the focus would lose it to the document. */
        if (!dialog.contains(document.activeElement) || document.activeElement === dialog) body.focus({ preventScroll: true });
    }
    return { element: dialog, show, step, close: () => { if (dialog.open) dialog.close(); }, isOpen: () => model >= 0, model: () => model };
}
