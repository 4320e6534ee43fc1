// The virtual grid: of all models only those near the window are in the document, at computed places.
import { el } from './dom.js';
import { setPaused } from './preview.js';
import { fillCard, makeBar } from './card.js';

/** @typedef {import('./prefs.js').Prefs['density']} Density */

/** Narrowest card of a density, in px; on a narrow screen. */
const NARROWEST = { large: [264, 220], medium: [196, 136], small: [138, 100], list: [1e9, 1e9] };
/* Browsers limit the height of elements (Firefox: 17.9 million px): beyond this, scrolling is scaled. */
const TALLEST = 15e6;

/**
 * @param {import('./data.js').Catalog} catalog
 * @param {import('./card.js').Actions} actions
 * @param {(model: number) => void} open
 * @param {() => number} head height of what sticks to the top of the window
 * @param {import('./select.js').Selection} selection
 * @param {(models: number[]) => void} star
 */
export function makeGrid(catalog, actions, open, head, selection, star) {
    const probe = el('li.card.probe', { 'aria-hidden': 'true' }, el('div.picture'), el('span.card-name', ' '), el('span.card-what', ' '), el('span.card-words')),
        list = el('ul.grid', { role: 'list', label: 'Models' }, probe),
            hover = makeBar(actions, catalog.rows, (i) => star([i])), focused = makeBar(actions, catalog.rows, (i) => star([i]));
    let order = new Uint32Array();
    /** The place of each model in the order. */
    const place = new Int32Array(catalog.count).fill(-1);
    /** Items of the models that are shown. @type {Map<number, HTMLElement>} */
    const live = new Map();
    let columns = 1, rowHeight = 100, cardWidth = 100, gap = 0, height = 0, width = 0, listTop = 0;
    /* The model last used, and the one that Tab reaches. */
    let active = -1, stop = -1;
    let measured = '', lastTop = 0, lastTime = 0, resting = 0, seenTop = 0;

    const isList = () => list.dataset.density === 'list',
        wholeHeight = () => Math.ceil(order.length / columns) * rowHeight,
        isFocused = () => list.contains(document.activeElement),
        positionOf = (/** @type {number} */ model) => place[model] ?? -1,
        yOf = (/** @type {number} */ position) => Math.floor(position / columns) * rowHeight;

    /** Where the window is over the whole height, which may be scaled. */
    function viewTop() {
        const top = scrollY - listTop;
        return top <= 0 || height === wholeHeight() ? top : Math.min(1, top / (height - innerHeight)) * (wholeHeight() - innerHeight);
    }

    /** @param {number} y offset within the list, so that it lies at the top of the window */
    function scrollToOffset(y) {
        const top = y <= 0 || height === wholeHeight() ? y : y / (wholeHeight() - innerHeight) * (height - innerHeight);
        scrollTo({ top: Math.max(0, top + listTop), behavior: 'instant' });
    }

    /** Position of the first card in view. */
    const firstSeen = () => Math.max(0, Math.floor((viewTop() + head()) / rowHeight)) * columns;

    function measure() {
        width = list.clientWidth;
        gap = parseFloat(getComputedStyle(list).gap) || 0;
        columns = Math.max(1, Math.floor((width + gap) / (NARROWEST[/** @type {Density} */ (list.dataset.density)][+(width < 560)] + gap)));
        cardWidth = Math.floor((width - gap * (columns - 1)) / columns);
        list.style.setProperty('--card', `${cardWidth}px`);
        rowHeight = Math.max(24, Math.ceil(probe.getBoundingClientRect().height) + gap);
        measured = `${width} ${probe.offsetHeight}`;
        height = Math.min(TALLEST, wholeHeight());
        list.style.height = `${height}px`;
        list.style.overflow = height < wholeHeight() ? 'clip' : '';
        listTop = Math.round(list.getBoundingClientRect().top + scrollY);
    }

    /** @param {number} model */
    function show(model) {
        const item = el('li.card', { 'data-model': model, 'aria-setsize': order.length });
        fillCard(item, catalog, model, isList(), isList() ? width * .15 : cardWidth - 50);
        live.set(model, item);
        mark(item, model);
        return item;
    }

    /** Whether it is selected. @param {HTMLElement} item @param {number} model */
    function mark(item, model) {
        const check = item.querySelector('.card-check');
        item.classList.toggle('selected', selection.has(model));
        if (check) check.ariaChecked = `${selection.has(model)}`;
    }

    /** Shows what is in the window and what comes next; removes everything else but what has the focus. */
    function render() {
        const top = viewTop(), shift = scrollY - listTop - top, seen = firstSeen(), over = (isList() ? 6 : 1) * columns, isDown = top >= seenTop,
            first = Math.max(0, seen - (isDown ? 0 : over)),
            last = Math.min(order.length, (Math.floor((top + innerHeight) / rowHeight) + 1) * columns + (isDown ? over : 0)),
            wanted = order.slice(first, last), kept = positionOf(active),
            shown = isFocused() && kept >= 0 && kept < first ? [active, ...wanted] : isFocused() && kept >= last ? [...wanted, active] : [...wanted];
        seenTop = top;
        const isShown = new Set(shown);
        for (const [model, item] of live) {
            if (isShown.has(model)) continue;
            live.delete(model);
            item.remove();
        }
        /* The one card that Tab reaches: the active one, else the first in view. */
        const before = stop;
        stop = isShown.has(active) ? active : order[Math.min(seen, order.length - 1)] ?? -1;
        /** @type {HTMLElement | null} */
        let after = null;
        for (const model of shown.reverse()) {
            const item = live.get(model) ?? show(model), number = `${place[model] + 1}`,
                at = `translate(${place[model] % columns * (cardWidth + gap)}px, ${yOf(place[model]) + shift}px)`;
            /* In the order of the models; what has the focus would lose it by a move. */
            if (!item.parentNode || item.nextSibling !== after && !item.contains(document.activeElement)) list.insertBefore(item, after);
            after = item;
            if (item.ariaPosInSet !== number) item.ariaPosInSet = number;
            if (item.style.transform !== at) item.style.transform = at;
            if (model === stop || model === before)
                for (const one of /** @type {Iterable<HTMLElement>} */ (item.querySelectorAll('.card-name, .chip, .card-check'))) one.tabIndex = model === stop ? 0 : -1;
        }
    }

    /** @param {number} position */
    function reveal(position) {
        const top = viewTop(), y = yOf(position), under = head() + 8;
        if (y < top + under) scrollToOffset(y - under);
        else if (y + rowHeight > top + innerHeight) scrollToOffset(y + rowHeight - innerHeight + 8);
    }

    /** @param {number} position */
    function focusAt(position) {
        if (!order.length) return;
        const at = Math.min(Math.max(0, position), order.length - 1);
        active = order[at];
        reveal(at);
        render();
        /** @type {HTMLElement | null | undefined} */ (live.get(active)?.querySelector('.card-name'))?.focus({ preventScroll: true });
    }

    /** Measures anew, after a change; the active card if it is in view, else what is at the top, stays there. */
    function layout(change = () => {}) {
        const y = yOf(positionOf(active)) - viewTop(), isSeen = live.has(active) && y > head() - rowHeight && y < innerHeight,
            model = isSeen ? active : order[firstSeen()], away = yOf(positionOf(model)) - viewTop() - head();
        change();
        measure();
        if (scrollY > 0 && order.length) scrollToOffset(yOf(positionOf(model)) - away - head());
        if (isSeen) reveal(place[active]);
        render();
    }

    function scrolled() {
        const now = performance.now(), time = Math.max(8, now - lastTime);
        if (time < 200 && Math.abs(scrollY - lastTop) / time > innerHeight * 3 / 1000) setPaused(true);
        lastTop = scrollY;
        lastTime = now;
        clearTimeout(resting);
        resting = window.setTimeout(() => setPaused(false), 100);
        render();
    }

    /** @param {(event: any, model: number, item: HTMLElement) => void} run for events in cards @returns {(event: Event) => void} */
    const inCard = (run) => (event) => {
        const item = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('.card'));
        if (item) run(event, Number(item.dataset.model), item);
    };
    list.addEventListener('click', inCard((event, model) => {
        const { target, shiftKey, ctrlKey, metaKey } = event;
        if (target.closest('.card-bar')) return;
        if (shiftKey || ctrlKey || metaKey || target.closest('.card-check')) {
            active = model;
            return selection[shiftKey ? 'extend' : 'toggle'](model);
        }
        const word = target.closest('.chip')?.dataset.word;
        if (word !== undefined) actions.word(model, word);
        else open(active = model);
    }));
    /* Space selects, where it would press the button that a name is; a range selects no text. */
    for (const type of ['keydown', 'keyup'])
        list.addEventListener(type, inCard((event, model) => {
            if (event.key !== ' ' || event.ctrlKey || !event.target.matches('.card-name')) return;
            event.preventDefault();
            if (type === 'keydown' && !event.repeat) selection.toggle(model);
        }));
    list.addEventListener('mousedown', (event) => { if (event.shiftKey) event.preventDefault(); });
    list.addEventListener('pointerover', inCard(({ pointerType }, model, item) => {
        if (pointerType === 'touch') return;
        if (item.contains(focused.bar)) hover.place();
        else hover.place(item, model);
    }));
    list.addEventListener('pointerleave', () => hover.place());
    list.addEventListener('focusin', inCard(({ target }, model, item) => {
        active = model;
        render();
        if (hover.bar.contains(target)) return;
        if (item.contains(hover.bar)) hover.place();
        focused.place(item, model);
    }));
    addEventListener('scroll', scrolled, { passive: true });
    addEventListener('resize', () => layout());
    const sizes = new ResizeObserver(() => { if (!list.hidden && measured !== `${list.clientWidth} ${probe.offsetHeight}`) layout(); });
    for (const one of [list, probe]) sizes.observe(one);

    return {
        element: list, layout, isFocused, focusAt,
        result: () => ({ order, place }),
        showSelected() {
            list.classList.toggle('selecting', selection.count() > 0);
            for (const [model, item] of live) mark(item, model);
        },
        /** Draws models anew, after a change of them. @param {number[]} some */
        redraw(some) {
            const isIn = isFocused();
            for (const model of some) {
                const item = live.get(model);
                if (!item) continue;
                hover.place();
                focused.place();
                fillCard(item, catalog, model, isList(), isList() ? width * .15 : cardWidth - 50);
                mark(item, model);
            }
            stop = -1;
            render();
            if (isIn && !isFocused()) focusAt(positionOf(active));
        },
        /** The model that keys act on: the focused one, else the last one used. */
        active: () => positionOf(active) >= 0 ? active : -1,
        position: positionOf,
        order: () => order,
        /** Moves the focus by rows and cards, if it is on one. @param {number} rows @param {number} cards */
        move: (rows, cards) => focusAt(isFocused() ? place[active] + rows * columns + cards : positionOf(active)),
        /** The same, selecting what is between. @param {number} rows @param {number} cards */
        stretch(rows, cards) {
            selection.begin(active);
            this.move(rows, cards);
            selection.extend(active);
        },
        rowsOfPage: () => Math.max(1, Math.floor((innerHeight - head()) / rowHeight)),
        /** Shows a result from its top, or where a model of it was. @param {Uint32Array} result @param {number} keep */
        setOrder(result, keep) {
            const hadFocus = isFocused(), before = positionOf(active);
            place.fill(-1);
            order = /** @type {any} */ (result);
            order.forEach((model, k) => { place[model] = k; });
            for (const item of live.values()) item.ariaSetSize = `${order.length}`;
            list.hidden = !order.length;
            measure();
            if (positionOf(keep) >= 0) reveal(place[keep]);
            else if (scrollY > listTop - head()) scrollTo({ top: Math.max(0, listTop - head() - 8), behavior: 'instant' });
            render();
            if (hadFocus && (positionOf(active) < 0 || !isFocused())) focusAt(positionOf(active) >= 0 ? place[active] : before);
        },
        /** @param {Density} to */
        setDensity(to) {
            if (to === list.dataset.density) return;
            const hadFocus = isFocused();
            layout(() => {
                list.dataset.density = to;
                list.classList.toggle('as-list', isList());
                for (const item of live.values()) item.remove();
                live.clear();
            });
            if (hadFocus) focusAt(positionOf(active));
        },
    };
}
