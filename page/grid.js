// The virtual grid: of all models only those near the window are in the document, at computed places.
import { el } from './dom.js';
import { copyText } from './copy.js';
import { setPaused } from './preview.js';
import { fillCard, makeBar } from './card.js';

/** Narrowest card of a density, in px; on a narrow screen. */
const NARROWEST = { large: [264, 220], medium: [196, 136], small: [138, 100], list: [0, 0] };
/* Browsers limit the height of elements (Firefox: 17.9 million px): beyond this, scrolling is scaled. */
const TALLEST = 15e6;
const OVERSCAN = 1, OVERSCAN_ROWS = 6;

/**
 * @typedef {object} Live a list item that shows a model
 * @property {HTMLElement} item
 * @property {number} model
 * @property {number} position
 * @property {string} at where it is: its transform
 */

/**
 * @param {import('./data.js').Catalog} catalog
 * @param {ReturnType<typeof import('./card.js').makeActions>} actions
 * @param {object} options
 * @param {(model: number) => void} options.open
 * @param {() => number} options.head height of what sticks to the top of the window
 */
export function makeGrid(catalog, actions, { open, head }) {
    const list = el('ul', { class: 'grid', role: 'list', 'aria-label': 'Models' });
    const probe = el('li', { class: 'card probe', 'aria-hidden': 'true' }, el('div', { class: 'picture' }), el('span', { class: 'card-name' }, ' '),
        el('span', { class: 'card-what' }, ' '), el('span', { class: 'card-words' }));
    const hover = makeBar(actions), focused = makeBar(actions);
    /** @type {Uint32Array} */
    let order = new Uint32Array(0);
    const place = new Int32Array(catalog.count).fill(-1);
    /** @type {Map<number, Live>} */
    const live = new Map();
    /** @type {Live[]} */
    let pool = [];
    /** @type {'large' | 'medium' | 'small' | 'list' | undefined} */
    let density;
    let columns = 1, rowHeight = 100, cardWidth = 100, gap = 12, height = 0, width = 0, listTop = 0;
    let active = -1, stop = -1;
    let lastTop = 0, lastTime = 0, resting = 0, seenTop = 0;

    const isList = () => density === 'list';
    const rowCount = () => Math.ceil(order.length / columns);
    const isFocused = () => list.contains(document.activeElement);

    /** Where the window is over the whole height, which may be scaled; and by how much cards are shifted. */
    function view() {
        const top = window.scrollY - listTop, whole = rowCount() * rowHeight;
        if (whole <= TALLEST) return { top, shift: 0 };
        const share = Math.min(1, Math.max(0, top / (height - window.innerHeight)));
        const virtual = top <= 0 ? top : share * (whole - window.innerHeight);
        return { top: virtual, shift: top - virtual };
    }

    /** @param {number} virtual offset within the list, so that it lies at the top of the window */
    function scrollToOffset(virtual) {
        const whole = rowCount() * rowHeight;
        const top = whole <= TALLEST || virtual <= 0 ? virtual : virtual / (whole - window.innerHeight) * (height - window.innerHeight);
        window.scrollTo({ top: Math.max(0, top + listTop), behavior: 'instant' });
    }

    function measure() {
        const style = getComputedStyle(list);
        width = list.clientWidth;
        gap = isList() ? 0 : parseFloat(style.columnGap) || 0;
        const narrowest = NARROWEST[density ?? 'medium'][width < 560 ? 1 : 0];
        columns = isList() ? 1 : Math.max(1, Math.floor((width + gap) / (narrowest + gap)));
        cardWidth = Math.floor((width - gap * (columns - 1)) / columns);
        list.style.setProperty('--card', `${cardWidth}px`);
        rowHeight = Math.max(24, Math.ceil(probe.getBoundingClientRect().height) + (isList() ? 0 : parseFloat(style.rowGap) || 0));
        height = Math.min(TALLEST, rowCount() * rowHeight);
        list.style.height = `${height}px`;
        list.style.overflow = height < rowCount() * rowHeight ? 'clip' : '';
        listTop = Math.round(list.getBoundingClientRect().top + window.scrollY);
    }

    /** @param {Live} card @param {number} position @param {number} shift */
    function put(card, position, shift) {
        if (card.position !== position) {
            card.position = position;
            card.item.setAttribute('aria-posinset', String(position + 1));
        }
        const row = Math.floor(position / columns);
        const at = `translate(${position % columns * (cardWidth + gap)}px, ${row * rowHeight + shift}px)`;
        if (card.at !== at) card.item.style.transform = card.at = at;
    }

    /** @param {number} model @returns {Live} */
    function show(model) {
        const card = pool.pop() ?? { item: el('li', { class: 'card' }), model, position: -1, at: '' };
        card.model = model;
        fillCard(card.item, catalog, model, isList(), isList() ? width * .15 : cardWidth - 50);
        card.item.setAttribute('aria-setsize', String(order.length));
        live.set(model, card);
        return card;
    }

    /** Shows what is in the window and what comes next; everything else goes to the pool. */
    function render() {
        const { top, shift } = view();
        const over = isList() ? OVERSCAN_ROWS : OVERSCAN;
        const seen = Math.max(0, Math.floor((top + head()) / rowHeight)), down = top >= seenTop;
        const first = Math.max(0, seen - (down ? 0 : over)) * columns;
        const last = Math.min(order.length, (Math.floor((top + window.innerHeight) / rowHeight) + 1 + (down ? over : 0)) * columns);
        seenTop = top;
        const kept = isFocused() && place[active] >= 0 ? active : -1;
        for (const [model, card] of live) {
            const position = place[model];
            if (position >= first && position < last || model === kept) continue;
            if (card.item.contains(hover.element)) hover.leave();
            live.delete(model);
            card.item.remove();
            if (pool.length < 64) pool.push(card);
        }
        const wanted = [];
        for (let position = first; position < last; position++)
            wanted.push([position, live.get(order[position]) ?? show(order[position])]);
        if (kept >= 0 && (place[kept] < first || place[kept] >= last)) {
            const card = /** @type {Live} */ (live.get(kept) ?? show(kept));
            place[kept] < first ? wanted.unshift([place[kept], card]) : wanted.push([place[kept], card]);
        }
        for (const [position, card] of /** @type {[number, Live][]} */ (wanted)) put(card, position, shift);
        arrange(/** @type {Live[]} */ (wanted.map(([, card]) => card)));
        chooseStop(seen * columns);
    }

    /** Puts the items into the order of the models; one that has the focus is never moved. @param {Live[]} wanted */
    function arrange(wanted) {
        let at = probe.nextSibling;
        for (const { item } of wanted) {
            if (at !== item && item.contains(document.activeElement))
                while (at && at !== item) {
                    const next = at.nextSibling;
                    list.append(at);
                    at = next;
                }
            if (at === item) at = at.nextSibling;
            else list.insertBefore(item, at);
        }
    }

    /** The one card that Tab reaches: the active one, else the first in view. @param {number} position */
    function chooseStop(position) {
        const wanted = live.has(active) ? active : order[Math.min(position, order.length - 1)] ?? -1;
        if (wanted !== stop && live.has(stop)) setStop(stop, -1);
        stop = wanted;
        if (live.has(stop)) setStop(stop, 0);
    }

    /** @param {number} model @param {0 | -1} index */
    function setStop(model, index) {
        for (const one of live.get(model)?.item.querySelectorAll('.card-name, .chip') ?? [])
            /** @type {HTMLElement} */ (one).tabIndex = index;
    }

    /** @param {number} position */
    function reveal(position) {
        const { top } = view(), y = Math.floor(position / columns) * rowHeight, under = head() + 8;
        if (y < top + under) scrollToOffset(y - under);
        else if (y + rowHeight > top + window.innerHeight) scrollToOffset(y + rowHeight - window.innerHeight + 8);
    }

    /** @param {number} position */
    function focusAt(position) {
        if (!order.length) return;
        const at = Math.min(Math.max(0, position), order.length - 1);
        active = order[at];
        reveal(at);
        render();
        /** @type {HTMLElement | null | undefined} */ (live.get(active)?.item.querySelector('.card-name'))?.focus({ preventScroll: true });
    }

    /** Measures anew; what was at the top of the window stays there. */
    function layout() {
        const { top } = view(), under = head();
        const position = Math.max(0, Math.floor((top + under) / rowHeight)) * columns;
        const within = (top + under - Math.floor(position / columns) * rowHeight) / rowHeight;
        measure();
        if (window.scrollY > 0 && top + under > 0)
            scrollToOffset(Math.floor(position / columns) * rowHeight + within * rowHeight - under);
        render();
    }

    function scrolled() {
        const now = performance.now(), moved = Math.abs(window.scrollY - lastTop), time = Math.max(8, now - lastTime);
        if (time < 200 && moved / time > window.innerHeight * 3 / 1000) setPaused(true);
        lastTop = window.scrollY;
        lastTime = now;
        clearTimeout(resting);
        resting = window.setTimeout(() => setPaused(false), 100);
        render();
    }

    /** The model whose card an event happened in, -1 outside of cards. @param {Event} event */
    function modelOf(event) {
        const item = /** @type {Element} */ (event.target).closest('.card');
        for (const card of live.values()) if (card.item === item) return card.model;
        return -1;
    }

    /** @param {ReturnType<typeof import('./card.js').makeBar>} bar @param {number} model */
    function placeBar(bar, model) {
        const card = live.get(model);
        if (card) bar.place(card.item, model, catalog.rows.word_count[model] > 0);
    }

    list.addEventListener('click', (event) => {
        const model = modelOf(event), target = /** @type {HTMLElement} */ (event.target);
        if (model < 0 || target.closest('.card-bar')) return;
        const chip = /** @type {HTMLElement | null} */ (target.closest('.chip'));
        if (chip?.dataset.word !== undefined) copyText(actions.word(model, chip.dataset.word), 'trigger word');
        else open(active = model);
    });
    list.addEventListener('pointerover', (event) => {
        const model = modelOf(event);
        if (event.pointerType === 'touch' || model < 0) return;
        if (focused.element.parentNode === live.get(model)?.item) hover.leave();
        else placeBar(hover, model);
    });
    list.addEventListener('pointerleave', () => hover.leave());
    list.addEventListener('focusin', (event) => {
        const model = modelOf(event);
        if (model < 0) return;
        active = model;
        chooseStop(place[model]);
        if (live.get(model)?.item.contains(hover.element)) {
            if (hover.element.contains(/** @type {Node} */ (event.target))) return;
            hover.leave();
        }
        placeBar(focused, model);
    });
    list.append(probe);
    window.addEventListener('scroll', scrolled, { passive: true });
    window.addEventListener('resize', layout);
    new ResizeObserver(() => { if (list.clientWidth !== width) layout(); }).observe(list);
    new ResizeObserver(() => { if (!list.hidden) layout(); }).observe(probe);

    return {
        element: list,
        layout,
        /** The model that keys act on: the focused one, else the last one used. */
        active: () => place[active] >= 0 ? active : -1,
        isFocused,
        /** @param {number} model */
        position: (model) => model >= 0 ? place[model] : -1,
        /** @param {number} position */
        at: (position) => order[position] ?? -1,
        size: () => order.length,
        order: () => order,
        perPage: () => columns * Math.max(1, Math.floor((window.innerHeight - head()) / rowHeight)),
        columns: () => columns,
        focusAt,
        /** Shows a result from its top, or where a model of it was. @param {Uint32Array} result @param {number} [keep] */
        setOrder(result, keep = -1) {
            const hadFocus = isFocused(), before = place[active];
            place.fill(-1);
            order = result;
            for (let k = 0; k < order.length; k++) place[order[k]] = k;
            for (const card of live.values()) card.item.setAttribute('aria-setsize', String(order.length));
            list.hidden = !order.length;
            measure();
            if (keep >= 0 && place[keep] >= 0) reveal(place[keep]);
            else if (window.scrollY > listTop - head()) window.scrollTo({ top: Math.max(0, listTop - head() - 8), behavior: 'instant' });
            render();
            if (hadFocus && (place[active] < 0 || !isFocused())) focusAt(place[active] >= 0 ? place[active] : before);
        },
        /** @param {'large' | 'medium' | 'small' | 'list'} to */
        setDensity(to) {
            if (to === density) return;
            const { top } = view(), anchor = live.has(active) ? active : order[Math.max(0, Math.floor((top + head()) / rowHeight)) * columns];
            const away = place[anchor] >= 0 ? Math.floor(place[anchor] / columns) * rowHeight - top : 0;
            const hadFocus = isFocused();
            density = to;
            list.classList.toggle('as-list', isList());
            list.dataset.density = density;
            for (const card of live.values()) card.item.remove();
            live.clear();
            pool = [];
            measure();
            if (window.scrollY > 0 && place[anchor] >= 0) scrollToOffset(Math.floor(place[anchor] / columns) * rowHeight - away);
            render();
            if (hadFocus) focusAt(place[active]);
        },
    };
}
