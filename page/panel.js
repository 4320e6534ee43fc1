// Controls of a catalogue: the bar at the top, the filters, and the chips of those in use.
import { plural, sizeText, visible } from './text.js';
import { el, fill, foreign } from './dom.js';
import { icon, iconButton } from './icons.js';
import { prefs, setPref } from './prefs.js';
import { openHelp } from './keys.js';
import { SEARCH_HELP } from './search.js';
import { choiceOf, choose, noFilters } from './filter.js';
import { ORDERS } from './sort.js';
import { popover } from './card.js';

/**
 * @typedef {object} App what the controls act on
 * @property {import('./data.js').Catalog} catalog
 * @property {import('./filter.js').Facets} facets
 * @property {import('./state.js').State} state
 * @property {import('./filter.js').Counts} counts
 * @property {(change: Partial<import('./state.js').State>) => void} change
 * @property {() => void} toGrid moves the focus to the models
 */

/** @type {{ density: import('./prefs.js').Prefs['density'][], theme: import('./prefs.js').Prefs['theme'][] }} */
const CHOICES = { density: ['large', 'medium', 'small', 'list'], theme: ['auto', 'light', 'dark'] };
/** @type {Record<number, string>} */
const LEVELS_HIDDEN = { 2: 'PG-13 and above', 4: 'R and above', 8: 'X and above', 16: 'XXX', 64: 'none' };
const HEADINGS = [['name', 'Name'], ['base', 'Base'], ['kind', 'Kind'], ['words', 'Trigger words'], ['size', 'Size'], ['modified', 'File date'], ['path', 'Folder']];
let lastHidden = 4;

/** Hides pictures from the level that was hidden last, or shows all. */
export function switchMaturity() {
    const { hideFrom } = prefs;
    setPref('hideFrom', hideFrom < 64 ? 64 : lastHidden);
    if (hideFrom < 64) lastHidden = hideFrom;
}

/** @param {'density' | 'theme'} key */
export function nextPref(key) {
    /** @type {any[]} */
    const all = CHOICES[key];
    setPref(key, all[(all.indexOf(prefs[key]) + 1) % all.length]);
}

/** What an icon says now. @param {HTMLElement} button @param {string} words @param {string} key @param {Parameters<typeof icon>[0]} name */
function describe(button, words, key, name) {
    button.ariaLabel = words;
    button.title = words + key;
    fill(button, icon(name));
}

/** @param {App} app @param {() => void} openFilters @param {() => void} openStars */
export function makeTop(app, openFilters, openStars) {
    const { rows, count } = app.catalog, unread = Object.keys(rows.fault).length,
        setOrder = (/** @type {string} */ order, /** @type {boolean} */ reverse) => app.change({ order, reverse }),
        input = el('input.search-input', {
            type: 'search', id: 'search', autocomplete: 'off', spellcheck: 'false', label: 'Search', placeholder: 'Search names, words, descriptions …',
            title: SEARCH_HELP,
            oninput: () => app.change({ q: input.value }),
            onkeydown: (/** @type {KeyboardEvent} */ event) => {
                if (!/^(Enter|ArrowDown|Escape)$/.test(event.key)) return;
                event.preventDefault();
                if (event.key === 'Escape' && input.value) clearSearch();
                else app.toGrid();
            },
        }),
        clearSearch = () => { input.value = ''; app.change({ q: '' }); input.focus(); },
            clear = iconButton('.quiet.small', 'close', 'Clear the search', clearSearch);

    const result = el('p.result-count', { role: 'status' }), badge = el('span.filter-number'),
        filters = el('button.button.filters-button', { title: 'Filters (F)', onclick: openFilters }, icon('filter'), el('span.wide', 'Filters'), ' ', badge),
        order = el('select.order', { label: 'Sort by', title: 'Sort by (S)', onchange: () => setOrder(order.value, ORDERS[order.value].down) },
            Object.entries(ORDERS).map(([value, { label }]) => el('option', { value }, label))),
        reverse = iconButton('', 'up', '', () => setOrder(app.state.order, !app.state.reverse)),
        densities = CHOICES.density.map((one) => {
            const button = el('button', { 'data-density-of': one, onclick: () => setPref('density', one) });
            describe(button, one === 'list' ? 'List' : `${one} cards`, ' (V)', one);
            return button;
        }),
        threshold = el('select', { onchange: () => setPref('hideFrom', Number(threshold.value)) }, Object.entries(LEVELS_HIDDEN).map(([value, label]) => el('option', { value }, label))),
        unknown = el('input', { type: 'checkbox', onchange: () => setPref('hideUnknown', unknown.checked) }),
        veil = el('select', { onchange: () => setPref('veil', /** @type {any} */ (veil.value)) }, [['stripes', 'striped, not loaded'], ['blur', 'blurred']].map(([value, label]) => el('option', { value }, label))),
        starsButton = el('button.button.stars-button', { onclick: openStars, hidden: true }),
        ratings = el('div.menu.maturity-menu', el('label.field', 'Hide pictures rated', threshold), el('label.check', unknown, 'Hide pictures that are not rated'),
            el('label.field', 'Hidden pictures are', veil)),
        maturity = iconButton('.maturity', 'eye', ''), theme = iconButton('', 'auto', '', () => nextPref('theme'));

    const headings = HEADINGS.map(([key]) => el(`${ORDERS[key] ? 'button.button.quiet.small' : 'span'}.head-${key}`, ORDERS[key]
        && { onclick: () => setOrder(key, app.state.order === key ? !app.state.reverse : ORDERS[key].down) })),
        listHead = el('div.list-head.as-list', el('span'), headings),
        element = el('header.top', el('div.top-bar', el('div.brand', el('h1.cut', foreign(rows.title)), result),
            el('div.search', { role: 'search' }, icon('search'), input, clear),
            el('div.tools', starsButton, filters, el('span.order-group', order, reverse), el('div.segments.density', { role: 'group', label: 'Size of the cards' }, densities),
                popover(el('span.popover', maturity, ratings), maturity, ratings).box, theme, iconButton('', 'help', 'Keys', openHelp, ' (?)'))));
    return {
        element, input, listHead,
        /** @param {number} count of stars that only the browser has */
        showStars(count) {
            starsButton.hidden = !count;
            fill(starsButton, icon('star'), `${count}`, el('span.wide', count === 1 ? 'star in this browser' : 'stars in this browser'));
            starsButton.title = 'Keep the stars that were set in this page';
        },
        showPrefs() {
            for (const button of densities) button.ariaPressed = `${button.dataset.densityOf === prefs.density}`;
            listHead.hidden = prefs.density !== 'list';
            threshold.value = `${prefs.hideFrom}`;
            unknown.checked = prefs.hideUnknown;
            veil.value = prefs.veil;
            const isHiding = prefs.hideFrom < 64;
            describe(maturity, isHiding ? `Hidden: pictures rated ${LEVELS_HIDDEN[prefs.hideFrom]}` : 'No picture is hidden by its rating', ' (B)', isHiding ? 'hidden' : 'eye');
            describe(theme, `Theme: ${prefs.theme}`, ' (T)', prefs.theme);
        },
        update() {
            const { state, counts: { mask, total } } = app, active = state.filters.choices.length, { up, fall } = ORDERS[state.order];
            if (input.value !== state.q) input.value = state.q;
            clear.hidden = !state.q;
            let bytes = 0;
            for (let i = 0; i < count; i++) if (mask[i]) bytes += Math.max(0, rows.bytes[i]);
            fill(result, el('b', total === count ? plural(count - unread, 'model') : `${total.toLocaleString('en')} of ${plural(count, 'model')}`),
                el('span.muted', total === count && unread && `, ${unread} unreadable`, ` · ${sizeText(bytes)}`));
            fill(badge, active || '');
            filters.ariaLabel = active ? `Filters ${active} in use` : 'Filters';
            order.value = state.order;
            describe(reverse, `Order: ${state.reverse ? fall : up}`, '', state.reverse ? 'fall' : 'up');
            headings.forEach((heading, k) => {
                const [key, label] = HEADINGS[k], isOn = key === state.order;
                if (ORDERS[key]) heading.ariaPressed = `${isOn}`;
                fill(heading, label, isOn && icon(state.reverse ? 'fall' : 'up'));
            });
        },
    };
}

/** @param {App} app */
const clearButton = (app) => el('button.button.quiet.small', { onclick: () => app.change({ filters: noFilters() }) }, 'Clear all');

/**
 * A facet: boxes to tick, a tree of folders, or chips of which a click wants, a second one excludes,
 * a third one lets go; the first few, all, or those that a text finds.
 * @param {App} app
 * @param {import('./filter.js').Facet} facet
 * @param {boolean} open
 */
function makeFacet(app, { key, title, ids, labels, parents }, open) {
    const isChips = /^(tag|is)$/.test(key), few = parents ? 300 : isChips ? 18 : 8,
        isUseless = !isChips && app.counts.only[key].filter(Boolean).length < 2,
        isOpen = parents?.map(() => ids.length < 15);
    /** @type {Map<number, { row: HTMLElement, show: () => void }>} */
    const made = new Map();
    let isWhole = false;
    const find = el('input.narrow', { type: 'search', label: `Find in ${title}`, placeholder: 'Find …', autocomplete: 'off', spellcheck: 'false', oninput: update }),
        modes = ['any', 'all'].map((mode) => el('button', { 'data-all': String(mode === 'all'), onclick: () => app.change({ filters: { ...app.state.filters, all: mode === 'all' } }) }, `${mode} of them`)),
        modeBox = el('div.segments', { role: 'group', label: 'Models must have' }, modes),
            list = el(isChips ? 'div.chips' : 'ul.options'),
            all = el('button.button.quiet.small', { onclick: () => { isWhole = !isWhole; update(); } }),
        element = el('details.facet', { open, 'data-facet': key }, el('summary', title, icon('down')),
            el('div.facet-body', !parents && ids.length > 13 && find, key === 'tag' && modeBox, list, all)),
        wanted = (/** @type {number} */ k) => choiceOf(app.state.filters, key, ids[k]);

    /** @param {number} k */
    function make(k) {
        const name = foreign(labels[k], 'spread'), number = el('span.count'),
            set = (/** @type {boolean | undefined} */ now) => app.change({ filters: choose(app.state.filters, key, ids[k], now) }),
            count = () => { number.textContent = app.counts.only[key][k].toLocaleString('en'); };
        if (isChips) {
            const row = el('button.chip', { onclick: () => set(wanted(k) === undefined ? true : wanted(k) ? false : undefined) });
            return { row, show() {
                const now = wanted(k);
                row.className = now === undefined ? 'chip' : now ? 'chip on' : 'chip out';
                row.ariaPressed = `${now !== undefined}`;
                fill(row, now === false && el('span.unseen', 'not '), name, now !== false && number);
                count();
            } };
        }
        const box = el('input', { type: 'checkbox', onchange: () => set(box.checked || undefined) }),
            label = el('label.check.option', box, name, number),
            twist = parents?.includes(k) ? el('button.twist', { label: `Folders in ${visible(labels[k])}`, onclick: () => {
                if (isOpen) isOpen[k] = !isOpen[k];
                update();
            } }, icon('next')) : el('span.twist'),
            row = parents ? el('li.folder', twist, label) : el('li', label);
        if (parents) row.style.paddingInlineStart = `${Math.min(ids[k].split('/').length - 1, 6) * .75}rem`;
        return { row, show() {
            box.checked = wanted(k) === true;
            if (isOpen && twist.firstChild) twist.ariaExpanded = `${isOpen[k]}`;
            count();
        } };
    }

    function update() {
        const counts = app.counts.only[key], text = find.value.trim().toLowerCase(), most = isWhole || text ? 300 : few;
        /** @type {boolean[]} */
        const inOpen = [];
        parents?.forEach((parent, k) => { inOpen[k] = parent < 0 || inOpen[parent] && isOpen?.[parent] === true; });
        const useful = labels.map((_, k) => k).filter((k) => wanted(k) !== undefined || counts[k] > 0 && inOpen[k] !== false && labels[k].toLowerCase().includes(text)),
            shown = useful.filter((k, place) => place < most || wanted(k) !== undefined);
        setRows(list, shown.map((k) => {
            const choice = made.get(k) ?? make(k);
            made.set(k, choice);
            choice.show();
            return choice.row;
        }));
        element.hidden = isUseless || !text && !shown.length;
        all.hidden = text !== '' || !isWhole && shown.length === useful.length;
        fill(all, isWhole ? 'Show fewer' : `Show all ${Math.min(300, useful.length)}`);
        modeBox.hidden = app.state.filters.choices.filter(([one, , is]) => one === 'tag' && is).length < 2;
        for (const mode of modes) mode.ariaPressed = `${mode.dataset.all === String(app.state.filters.all)}`;
    }
    return { element, update };
}

/** Puts rows into a list; what has the focus keeps it. @param {HTMLElement} list @param {HTMLElement[]} rows */
function setRows(list, rows) {
    if (list.children.length === rows.length && rows.every((row, k) => list.children[k] === row)) return;
    const focused = /** @type {HTMLElement | null} */ (list.querySelector(':focus'));
    fill(list, rows);
    if (focused?.isConnected) focused.focus({ preventScroll: true });
}

/** All filters. @param {App} app */
export function makeFilters(app) {
    const facets = app.facets.list.map((facet, k) => makeFacet(app, facet, k < 6)), clear = clearButton(app);
    return {
        element: el('div.filters', el('div.row.filters-head', el('h2.heading.spread', 'Filters'), clear), facets.map((facet) => facet.element)),
        update() {
            clear.hidden = !app.state.filters.choices.length;
            for (const facet of facets) facet.update();
        },
    };
}

/** Chips of the filters in use, each with what removes it. @param {App} app */
export function makeActiveFilters(app) {
    const element = el('div.row.active-filters', { role: 'group', label: 'Filters in use' });
    return {
        element,
        update() {
            const chips = app.state.filters.choices.map(([key, id, wanted]) => {
                const { title, ids, labels, parents } = /** @type {import('./filter.js').Facet} */ (app.facets.list.find((one) => one.key === key));
                return el(`button.chip.${wanted ? 'on' : 'out'}`, { title: 'remove this filter', onclick: () => {
                    app.change({ filters: choose(app.state.filters, key, id) });
                    element.querySelector('button')?.focus();
                } }, (!wanted || key !== 'is') && el('span', wanted ? `${title}:` : 'Not:'), foreign(parents && id || labels[ids.indexOf(id)] || id), icon('close'));
            });
            element.hidden = !chips.length;
            fill(element, chips, chips.length > 1 && clearButton(app));
        },
    };
}
