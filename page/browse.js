// One model of the catalogue in a dialog; previous and next of the filtered order.
import { el, fill, makeDialog } from './dom.js';
import { iconButton } from './icons.js';
import { visible } from './text.js';
import { addIds } from './facts.js';
import { detailView } from './detail.js';

/**
 * @param {import('./data.js').Catalog} catalog
 * @param {{ position: (model: number) => number, order: () => Uint32Array }} grid the result
 * @param {{ star: (model: number) => void, act: (model: number) => void }} hand
 * @param {(model: number) => void} shown after a model was opened or changed, -1: closed
 */
export function makeBrowser(catalog, { position, order }, hand, shown) {
    let model = -1;
    const { kind, base, architecture, precision } = catalog.rows.dict;
    addIds([...kind, ...base, ...architecture, ...precision]);
    const back = iconButton('.quiet', 'back', 'Previous model (←)', () => step(-1)), next = iconButton('.quiet', 'next', 'Next model (→)', () => step(1)),
        star = iconButton('.quiet', 'star', 'Favourite', () => { hand.star(model); drawStar(); }, ' (*)'),
        drawStar = () => { star.ariaPressed = `${catalog.isStarred(model)}`; },
        place = el('span.muted.spread.browse-place'), body = el('div.browse-body', { tabindex: -1 }),
        dialog = makeDialog('browse', '', el('div.browse-head', back, next, place, star, iconButton('.quiet', 'code', 'Commands', () => hand.act(model)), iconButton('.quiet', 'close', 'Close (Esc)', () => dialog.close())), body);
    dialog.addEventListener('close', () => { model = -1; fill(body); shown(-1); });

    /** @param {number} i */
    function show(i) {
        const name = catalog.name(i), k = position(i), size = order().length;
        model = i;
        fill(body, detailView(catalog.more(i), { picture: catalog.picture, name }));
        dialog.ariaLabel = visible(name);
        fill(place, k >= 0 && `${(k + 1).toLocaleString('en')} of ${size.toLocaleString('en')}`);
        drawStar();
        back.disabled = k <= 0;
        next.disabled = k < 0 || k >= size - 1;
        const isOpen = dialog.open;
        if (!isOpen) dialog.showModal();
        /* A button that was disabled under the focus would lose it to the document. */
        if (!isOpen || !document.activeElement?.matches('.browse :not(:disabled)')) body.focus({ preventScroll: true });
        body.scrollTop = 0;
        shown(i);
    }

    /** @param {1 | -1} by */
    function step(by) {
        const to = position(model) < 0 ? undefined : order()[position(model) + by];
        if (to !== undefined) show(to);
    }
    return { element: dialog, show, step, drawStar, model: () => model };
}
