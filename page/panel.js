// Controls of a catalogue: the bar at the top, the filters, and the chips of those in use.
import { plural, sizeText, visible } from './text.js';
import { el, fill, foreign } from './dom.js';
import { icon } from './icons.js';
import { prefs, setPref } from './prefs.js';
import { openHelp } from './keys.js';
import { FIELDS } from './search.js';
import { filterCount, noFilters, TRAITS } from './filter.js';
import { ORDERS } from './sort.js';

/**
 * @typedef {object} App what the controls act on
 * @property {import('./data.js').Catalog} catalog
 * @property {import('./filter.js').Facets} facets
 * @property {import('./state.js').State} state
 * @property {import('./filter.js').Counts} counts
 * @property {(change: (state: import('./state.js').State) => void) => void} change
 * @property {() => void} toGrid moves the focus to the models
 */

const DENSITIES = /** @type {const} */ (['large', 'medium', 'small', 'list']);
const THEMES = /** @type {const} */ (['auto', 'light', 'dark']);
/** @type {[number, string][]} */
const LEVELS_HIDDEN = [[2, 'PG-13 and above'], [4, 'R and above'], [8, 'X and above'], [16, 'XXX'], [64, 'none']];
let lastHidden = 4;

/** Hides pictures from the level that was hidden last, or shows all. */
export function switchMaturity() {
    if (prefs.hideFrom < 64) lastHidden = prefs.hideFrom;
    setPref('hideFrom', prefs.hideFrom < 64 ? 64 : lastHidden);
}

/** Automatic, light, dark. */
export function switchTheme() {
    setPref('theme', THEMES[(THEMES.indexOf(prefs.theme) + 1) % THEMES.length]);
}

/** @param {1 | -1} step */
export function switchDensity(step) {
    setPref('density', DENSITIES[(DENSITIES.indexOf(prefs.density) + step + DENSITIES.length) % DENSITIES.length]);
}

/**
 * A button that opens a panel below it; Esc, and focus or a click elsewhere, closes it.
 * @param {HTMLButtonElement} button
 * @param {HTMLElement} panel
 */
function popover(button, panel) {
    const box = el('span', { class: 'popover' }, button, panel);
    const toggle = (/** @type {boolean} */ show) => {
        panel.hidden = !show;
        button.setAttribute('aria-expanded', String(show));
    };
    toggle(false);
    button.addEventListener('click', () => toggle(panel.hidden));
    box.addEventListener('keydown', (event) => {
        if (event.key !== 'Escape' || panel.hidden) return;
        event.preventDefault();
        toggle(false);
        button.focus();
    });
    document.addEventListener('pointerdown', (event) => { if (!box.contains(/** @type {Node} */ (event.target))) toggle(false); });
    box.addEventListener('focusout', (event) => {
        if (event.relatedTarget && !box.contains(/** @type {Node} */ (event.relatedTarget))) toggle(false);
    });
    return box;
}

/** @param {App} app @param {() => void} openFilters */
export function makeTop(app, openFilters) {
    const { catalog } = app;
    const input = el('input', {
        type: 'search', id: 'search', class: 'search-input', autocomplete: 'off', spellcheck: 'false', 'aria-label': 'Search', placeholder: 'Search names, words, tags, descriptions …',
        oninput: () => app.change((state) => { state.q = input.value; }),
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
            if (event.key === 'Enter' || event.key === 'ArrowDown') { event.preventDefault(); app.toGrid(); }
            if (event.key === 'Escape') {
                event.preventDefault();
                event.stopPropagation();
                if (input.value) clearSearch();
                else app.toGrid();
            }
        },
    });
    const clearSearch = () => { input.value = ''; app.change((state) => { state.q = ''; }); input.focus(); };
    const clear = el('button', { type: 'button', class: 'button quiet small icon-only', 'aria-label': 'Clear the search', hidden: true, onclick: clearSearch }, icon('close'));
    /** @param {string} shown @param {string} words */
    const hint = (shown, words) => el('div', null, el('dt', null, el('code', { class: 'mono' }, shown)), el('dd', null, words));
    const hints = el('div', { class: 'menu search-help' }, el('dl', null, hint('ink wash', 'both words, anywhere'), hint('"ink wash"', 'this phrase'), hint('-anime', 'without this word'),
        Object.entries(FIELDS).map(([name, words]) => hint(`${name}:`, `in the ${words}`)), hint('base:"SD 1.5"', 'a value with spaces'), hint('3c7be1f2', 'six digits or more: also the start of a hash')));
    const search = el('div', { class: 'search', role: 'search' }, icon('search'), input, clear,
        popover(el('button', { type: 'button', class: 'button quiet small icon-only', 'aria-label': 'How to search', title: 'how to search' }, icon('help')), hints));

    const count = el('p', { class: 'result-count', role: 'status' });
    const filterBadge = el('span', { class: 'filter-number' });
    const filters = el('button', { type: 'button', class: 'button filters-button', title: 'filters (F)', onclick: openFilters }, icon('filter'), el('span', { class: 'wide' }, 'Filters'), ' ', filterBadge);
    const order = el('select', { 'aria-label': 'Sort by', class: 'order', title: 'sort by (S)',
        onchange: () => app.change((state) => { state.order = order.value; state.reverse = ORDERS[order.value].down; }) },
    Object.entries(ORDERS).map(([key, { label }]) => el('option', { value: key }, label)));
    const reverse = el('button', { type: 'button', class: 'button icon-only', onclick: () => app.change((state) => { state.reverse = !state.reverse; }) });
    const density = el('div', { class: 'segments density', role: 'group', 'aria-label': 'Size of the cards' }, DENSITIES.map((one) =>
        el('button', { type: 'button', 'data-density-of': one, 'aria-label': one === 'list' ? 'List' : `${one} cards`, title: `${one === 'list' ? 'list' : `${one} cards`} (V)`, onclick: () => setPref('density', one) }, icon(one))));

    const threshold = el('select', { onchange: () => setPref('hideFrom', /** @type {any} */ (Number(threshold.value))) }, LEVELS_HIDDEN.map(([level, label]) => el('option', { value: level }, label)));
    const unknown = el('input', { type: 'checkbox', onchange: () => setPref('hideUnknown', unknown.checked) });
    const hidden = el('button', { type: 'button', class: 'button icon-only maturity' });
    const maturity = popover(hidden, el('div', { class: 'menu maturity-menu' }, el('label', { class: 'field' }, 'Hide pictures rated', threshold),
        el('label', { class: 'check' }, unknown, 'Hide pictures that are not rated'), el('p', { class: 'muted tiny' }, 'Hidden pictures are not loaded.')));
    const theme = el('button', { type: 'button', class: 'button icon-only', onclick: switchTheme });
    const help = el('button', { type: 'button', class: 'button icon-only', 'aria-label': 'Keys', title: 'keys (?)', onclick: openHelp }, icon('help'));

    const listHead = el('div', { class: 'list-head as-list' }, el('span'), [['name', 'Name'], ['', 'Base'], ['', 'Kind'], ['', 'Trigger words'], ['size', 'Size'], ['modified', 'File date'], ['path', 'Folder']]
        .map(([key, label]) => key ? el('button', { type: 'button', class: `button quiet small head-${key}`, 'data-order': key, onclick: () => app.change((state) => {
            state.reverse = state.order === key ? !state.reverse : ORDERS[key].down;
            state.order = key;
        }) }, label) : el('span', { class: `head-${label.split(' ')[0].toLowerCase()}` }, label)));

    const element = el('header', { class: 'top' },
        el('div', { class: 'top-bar' }, el('div', { class: 'brand' }, el('h1', { class: 'cut' }, foreign(catalog.rows.title)), count), search,
            el('div', { class: 'tools' }, filters, el('span', { class: 'order-group' }, order, reverse), density, maturity, theme, help)));
    return {
        element, input, listHead,
        showPrefs() {
            for (const button of density.children) button.setAttribute('aria-pressed', String(/** @type {HTMLElement} */ (button).dataset.densityOf === prefs.density));
            listHead.hidden = prefs.density !== 'list';
            threshold.value = String(prefs.hideFrom);
            unknown.checked = prefs.hideUnknown;
            const words = prefs.hideFrom < 64 ? `hidden: pictures rated ${LEVELS_HIDDEN.find(([level]) => level === prefs.hideFrom)?.[1]}` : 'no picture is hidden by its rating';
            hidden.title = `${words} (B)`;
            hidden.setAttribute('aria-label', `Maturity, ${words}`);
            fill(hidden, icon(prefs.hideFrom < 64 ? 'hidden' : 'eye'));
            theme.title = `theme: ${prefs.theme} (T)`;
            theme.setAttribute('aria-label', `Theme: ${prefs.theme}`);
            fill(theme, icon(prefs.theme));
        },
        update() {
            const { state, counts } = app;
            if (input.value !== state.q) input.value = state.q;
            clear.hidden = !state.q;
            let bytes = 0;
            for (let i = 0; i < catalog.count; i++) if (counts.mask[i] && catalog.rows.bytes[i] > 0) bytes += catalog.rows.bytes[i];
            const text = counts.total === catalog.count ? plural(catalog.count, 'model') : `${counts.total.toLocaleString('en')} of ${plural(catalog.count, 'model')}`;
            fill(count, el('b', null, text), el('span', { class: 'muted' }, ` · ${sizeText(bytes)}`));
            const active = filterCount(state.filters);
            fill(filterBadge, active ? String(active) : '');
            filters.setAttribute('aria-label', active ? `Filters ${active} in use` : 'Filters');
            order.value = state.order;
            const words = ORDERS[state.order][state.reverse ? 'fall' : 'up'];
            reverse.title = words;
            reverse.setAttribute('aria-label', `Order: ${words}`);
            fill(reverse, icon(state.reverse ? 'fall' : 'up'));
            for (const button of listHead.querySelectorAll('button')) {
                const key = button.dataset.order ?? '', isOn = key === state.order;
                fill(button, key === 'path' ? 'Folder' : ORDERS[key].label, isOn && icon(state.reverse ? 'fall' : 'up'));
                button.setAttribute('aria-pressed', String(isOn));
            }
        },
    };
}

/** @param {string[]} list @param {string} one */
function toggled(list, one) {
    return list.includes(one) ? list.filter((other) => other !== one) : [...list, one];
}

/** Puts rows into a list; what has the focus keeps it. @param {HTMLElement} list @param {HTMLElement[]} rows */
function setRows(list, rows) {
    if (list.children.length === rows.length && rows.every((row, k) => list.children[k] === row)) return;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    const inside = list.contains(focused);
    fill(list, rows);
    if (inside && focused?.isConnected) focused.focus({ preventScroll: true });
}

/** @param {string} key @param {string} title @param {boolean} open @param {...import('./dom.js').Child} content */
function section(key, title, open, ...content) {
    return el('details', { class: 'facet', open, 'data-facet': key }, el('summary', null, el('span', null, title), icon('down')), el('div', { class: 'facet-body' }, content));
}

/**
 * @typedef {object} Choice
 * @property {HTMLElement} row
 * @property {(state: boolean | undefined, count: number) => void} show chosen, excluded or neither
 */

/** A box to tick. @param {string} label @param {() => void} toggle @param {(label: HTMLElement) => HTMLElement} wrap @returns {Choice} */
function boxChoice(label, toggle, wrap = (one) => el('li', null, one)) {
    const box = el('input', { type: 'checkbox', onchange: toggle }), number = el('span', { class: 'count' });
    return {
        row: wrap(el('label', { class: 'check option' }, box, foreign(label, 'spread'), number)),
        show(state, count) {
            box.checked = state === true;
            number.textContent = count.toLocaleString('en');
        },
    };
}

/** A chip: a click includes, a second one excludes, a third one lets go. @param {string} label @param {() => void} cycle @returns {Choice} */
function chipChoice(label, cycle) {
    const chip = el('button', { type: 'button', class: 'chip', onclick: cycle });
    return {
        row: chip,
        show(state, count) {
            chip.classList.toggle('on', state === true);
            chip.classList.toggle('out', state === false);
            chip.setAttribute('aria-pressed', String(state !== undefined));
            fill(chip, state === false && el('span', { class: 'unseen' }, 'not '), foreign(label), state !== false && el('span', { class: 'count' }, count.toLocaleString('en')));
        },
    };
}

/**
 * Choices with their counts: the first few, all, or those that a text finds.
 * @param {object} options
 * @param {string} options.key
 * @param {string} options.title
 * @param {boolean} options.open
 * @param {string[]} options.labels
 * @param {number} options.few
 * @param {(k: number) => Choice} options.make
 * @param {(k: number) => boolean | undefined} options.state
 * @param {() => Int32Array} options.counts
 * @param {HTMLElement} [options.above]
 * @param {() => boolean} [options.isUseless] whether there is nothing to choose
 */
function makeChoices({ key, title, open, labels, few, make, state, counts, above, isUseless }) {
    /** @type {Map<number, Choice>} */
    const made = new Map();
    let isWhole = false;
    const box = el('input', { type: 'search', class: 'narrow', 'aria-label': `Find in ${title}`, placeholder: 'Find …', autocomplete: 'off', spellcheck: 'false', oninput: update });
    const list = el(few < 9 ? 'ul' : 'div', { class: few < 9 ? 'options' : 'chips' });
    const all = el('button', { type: 'button', class: 'button quiet small', onclick: () => { isWhole = !isWhole; update(); } });
    const element = section(key, title, open, labels.length > 13 && box, above, list, all);
    function update() {
        const numbers = counts(), text = box.value.trim().toLowerCase(), most = isWhole || text ? 300 : few;
        const useful = labels.map((_, k) => k).filter((k) => state(k) !== undefined || numbers[k] > 0 && labels[k].toLowerCase().includes(text));
        const shown = useful.filter((k, place) => place < most || state(k) !== undefined);
        setRows(list, shown.map((k) => {
            const choice = made.get(k) ?? make(k);
            made.set(k, choice);
            choice.show(state(k), numbers[k]);
            return choice.row;
        }));
        element.hidden = !text && (!shown.length || isUseless?.() === true);
        all.hidden = text !== '' || !isWhole && shown.length === useful.length;
        fill(all, isWhole ? 'Show fewer' : `Show all ${Math.min(300, useful.length)}`);
    }
    return { element, update };
}

/** @param {App} app @param {import('./filter.js').Facet} facet @param {boolean} open */
function makeFacet(app, { key, title, ids, labels }, open) {
    const chosen = () => app.state.filters.only[key] ?? [];
    return makeChoices({
        key, title, open, labels, few: 8, counts: () => app.counts.only[key],
        state: (k) => chosen().includes(ids[k]) || undefined,
        make: (k) => boxChoice(labels[k], () => app.change(({ filters }) => { filters.only[key] = toggled(chosen(), ids[k]); })),
        isUseless: () => ids.length < 3 && !chosen().length && !app.counts.only[key][ids.length - 1],
    });
}

/** @param {App} app */
function makeTags(app) {
    const { tags } = app.facets;
    const modes = el('div', { class: 'segments modes', role: 'group', 'aria-label': 'Models must have' }, [false, true].map((every) =>
        el('button', { type: 'button', 'data-all': String(every), onclick: () => app.change(({ filters }) => { filters.all = every; }) }, every ? 'all of them' : 'any of them')));
    const { element, update } = makeChoices({
        key: 'tags', title: 'Tags', open: true, labels: tags, few: 18, counts: () => app.counts.tag, above: modes,
        state: (k) => app.state.filters.tag.includes(tags[k]) ? true : app.state.filters.not.includes(tags[k]) ? false : undefined,
        make: (k) => chipChoice(tags[k], () => app.change(({ filters }) => {
            const isIn = filters.tag.includes(tags[k]);
            if (isIn || !filters.not.includes(tags[k])) filters.tag = toggled(filters.tag, tags[k]);
            if (isIn || filters.not.includes(tags[k])) filters.not = toggled(filters.not, tags[k]);
        })),
    });
    return {
        element,
        update() {
            update();
            modes.hidden = app.state.filters.tag.length < 2;
            for (const mode of modes.children) mode.setAttribute('aria-pressed', String(/** @type {HTMLElement} */ (mode).dataset.all === String(app.state.filters.all)));
        },
    };
}

/** What models have or have not. @param {App} app */
function makeTraits(app) {
    return makeChoices({
        key: 'is', title: 'Properties', open: true, labels: TRAITS.map((one) => one.label), few: 18, counts: () => app.counts.is,
        state: (k) => app.state.filters.is[TRAITS[k].id],
        make: (k) => chipChoice(TRAITS[k].label, () => app.change(({ filters: { is } }) => {
            const { id } = TRAITS[k];
            if (is[id] === false) delete is[id];
            else is[id] = is[id] === undefined;
        })),
    });
}

/** @param {App} app */
function makeFolders(app) {
    const { folders } = app.facets;
    const parents = new Set(folders.map((one) => one.parent));
    const isOpen = Uint8Array.from(folders, (one) => +(folders.length <= 14 || one.depth === 0 && folders.filter((other) => other.depth === 0).length < 4));
    /** @type {Map<number, Choice & { twist: HTMLElement }>} */
    const made = new Map();
    const list = el('ul', { class: 'options' });
    const element = section('folder', 'Folder', true, list);
    /** @param {number} k */
    function make(k) {
        const { path, label, depth } = folders[k], name = label || 'directly in the folder';
        const twist = parents.has(k) ? el('button', { type: 'button', class: 'twist', 'aria-label': `Folders in ${visible(name)}`, onclick: () => { isOpen[k] ^= 1; update(); } }, icon('next')) : el('span', { class: 'twist' });
        const choice = boxChoice(name, () => app.change(({ filters }) => { filters.folder = toggled(filters.folder, path); }), (box) => el('li', { class: 'folder' }, twist, box));
        choice.row.style.paddingInlineStart = `${Math.min(depth, 6) * .75}rem`;
        return { ...choice, twist };
    }
    function update() {
        const { folder: counts } = app.counts, chosen = app.state.filters.folder, isShown = new Uint8Array(folders.length);
        /** @type {HTMLElement[]} */
        const rows = [];
        folders.forEach(({ parent, path }, k) => {
            isShown[k] = parent < 0 || isShown[parent] && isOpen[parent] ? 1 : 0;
            if (!isShown[k] || !counts[k] && !chosen.includes(path) || rows.length >= 400) return;
            const choice = made.get(k) ?? make(k);
            made.set(k, choice);
            choice.show(chosen.includes(path), counts[k]);
            if (parents.has(k)) choice.twist.setAttribute('aria-expanded', String(!!isOpen[k]));
            rows.push(choice.row);
        });
        element.hidden = folders.length < 2 || !rows.length;
        setRows(list, rows);
    }
    return { element, update };
}

/** All filters. @param {App} app */
export function makeFilters(app) {
    const [kind, base, ...rest] = app.facets.list.map((facet, k) => makeFacet(app, facet, k < 2));
    const parts = [kind, base, makeTags(app), makeTraits(app), makeFolders(app), ...rest];
    const clear = el('button', { type: 'button', class: 'button quiet small', onclick: () => app.change((state) => { state.filters = noFilters(); }) }, 'Clear all');
    const element = el('div', { class: 'filters' }, el('div', { class: 'row filters-head' }, el('h2', { class: 'heading spread' }, 'Filters'), clear), parts.map((part) => part.element));
    return {
        element,
        update() {
            clear.hidden = !filterCount(app.state.filters);
            for (const part of parts) part.update();
        },
    };
}

/** Chips of the filters in use, each with what removes it. @param {App} app */
export function makeActiveFilters(app) {
    const element = el('div', { class: 'row active-filters', role: 'group', 'aria-label': 'Filters in use' });
    /** @param {string} title @param {string} value @param {(filters: import('./filter.js').Filters) => void} remove @param {boolean} [out] */
    const chip = (title, value, remove, out) => el('button', { type: 'button', class: out ? 'chip on excluded' : 'chip on', title: 'remove this filter',
        onclick: () => {
            app.change(({ filters }) => remove(filters));
            /** @type {HTMLElement | null} */ (element.querySelector('button'))?.focus();
        } }, title && el('span', { class: 'muted' }, title), foreign(value), icon('close'));
    return {
        element,
        update() {
            const { filters } = app.state;
            const chips = [
                ...app.facets.list.flatMap(({ key, title, ids, labels }) => (filters.only[key] ?? []).map((id) =>
                    chip(`${title}:`, labels[ids.indexOf(id)] ?? id, (now) => { now.only[key] = toggled(now.only[key] ?? [], id); }))),
                ...filters.folder.map((path) => chip('Folder:', path || '(none)', (now) => { now.folder = toggled(now.folder, path); })),
                ...filters.tag.map((tag) => chip('Tag:', tag, (now) => { now.tag = toggled(now.tag, tag); })),
                ...filters.not.map((tag) => chip('Not:', tag, (now) => { now.not = toggled(now.not, tag); }, true)),
                ...TRAITS.filter(({ id }) => filters.is[id] !== undefined).map(({ id, label }) => chip(filters.is[id] ? '' : 'Not:', label, (now) => { delete now.is[id]; }, !filters.is[id])),
            ];
            element.hidden = !chips.length;
            fill(element, chips, chips.length > 1 && el('button', { type: 'button', class: 'button quiet small', onclick: () => app.change((state) => { state.filters = noFilters(); }) }, 'Clear all'));
        },
    };
}
