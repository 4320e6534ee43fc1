// Start of a catalogue: opens the data, joins grid and controls, and has the table of actions.
import { countText, plural } from './text.js';
import { append, el, fill, foreign } from './dom.js';
import { icon } from './icons.js';
import { loadPrefs, onPrefs, prefs } from './prefs.js';
import { announce } from './copy.js';
import { addAction, addHelp } from './keys.js';
import { addDetailKeys } from './detail.js';
import { openCatalog } from './data.js';
import { addDetails, makeHaystack, namedFirst, parseQuery, search } from './search.js';
import { applyFilters, filterCount, makeFacets, noFilters } from './filter.js';
import { ORDERS, sorted } from './sort.js';
import { parseState, writeState } from './state.js';
import { makeActions, printCells } from './card.js';
import { makeGrid } from './grid.js';
import { makeActiveFilters, makeFilters, makeTop, switchDensity, switchMaturity, switchTheme } from './panel.js';
import { makeBrowser } from './browse.js';

const PRINTED = 2000;

/** @param {() => void} run when there is nothing else to do */
function later(run) {
    if ('requestIdleCallback' in window) requestIdleCallback(run, { timeout: 1000 });
    else setTimeout(run, 50);
}

/** @param {import('./data.js').Catalog} catalog */
function start(catalog) {
    const { rows } = catalog;
    /** Made when it is first needed: not before the first cards are shown. @type {import('./search.js').Haystack | undefined} */
    let haystack;
    const facets = makeFacets(catalog);
    const everything = new Uint8Array(catalog.count).fill(1);
    let state = parseState(location.hash);
    let found = everything;
    let searched = '';
    let isQueued = false;

    /** @type {import('./panel.js').App} */
    const app = {
        catalog, facets, state, counts: applyFilters(facets, noFilters(), everything),
        change(run) {
            run(state);
            if (isQueued) return;
            isQueued = true;
            requestAnimationFrame(() => { isQueued = false; update(); writeState(state); });
        },
        toGrid: () => grid.focusAt(Math.max(0, grid.position(grid.active()))),
    };
    const actions = makeActions(catalog);
    const top = makeTop(app, showFilters);
    const grid = makeGrid(catalog, actions, { open: (model) => browser.show(model), head: () => Math.max(0, (top.listHead.hidden ? top.element : top.listHead).getBoundingClientRect().bottom) });
    const filters = makeFilters(app);
    const active = makeActiveFilters(app);
    const side = el('aside', { class: 'side', 'aria-label': 'Filters' }, filters.element);
    const drawer = el('dialog', { class: 'drawer', 'aria-label': 'Filters' }, el('div', { class: 'row drawer-head' }, el('h2', { class: 'spread' }, 'Filters'),
        el('button', { type: 'button', class: 'button primary', onclick: () => drawer.close() }, 'Show the models')));
    const empty = el('div', { class: 'empty', hidden: true });
    const wide = matchMedia('(min-width: 901px)');

    function placeFilters() {
        if (wide.matches) { if (drawer.open) drawer.close(); side.append(filters.element); }
        else drawer.append(filters.element);
        if (!wide.matches) side.hidden = true;
        else side.hidden = sideHidden;
        grid.layout();
    }
    let sideHidden = false;
    function showFilters() {
        if (wide.matches) {
            sideHidden = !sideHidden;
            placeFilters();
        } else if (drawer.open) drawer.close();
        else drawer.showModal();
    }
    drawer.addEventListener('click', (event) => { if (event.target === drawer) drawer.close(); });

    function showEmpty() {
        const none = app.counts.total === 0;
        empty.hidden = !none;
        if (!none) return;
        const active = filterCount(state.filters);
        if (!catalog.count)
            fill(empty, icon('folder'), el('h2', null, 'No models here'), el('p', { class: 'muted' }, 'No models were found in ', foreign(rows.roots?.join(', ') ?? ''), '.'));
        else fill(empty, icon('search'), el('h2', null, 'No models match'), el('p', { class: 'muted' },
            state.q && active ? `the search and ${plural(active, 'filter')}` : state.q ? 'the search' : plural(active, 'filter')),
        el('button', { type: 'button', class: 'button primary', onclick: () => {
            app.change((now) => { now.q = ''; now.filters = noFilters(); });
            top.input.focus();
        } }, 'Clear search and filters'));
    }

    let shape = '';
    /** Computes and shows the result of the state. */
    function update() {
        const query = state.q.trim();
        if (query !== searched) {
            searched = query;
            found = query ? search(haystack ??= makeHaystack(catalog), parseQuery(query)) : everything;
        }
        app.counts = applyFilters(facets, state.filters, found);
        const now = JSON.stringify([query, state.filters, state.order, state.reverse]);
        const isPlain = !query && !filterCount(state.filters);
        if (now !== shape) {
            const order = sorted(catalog, app.counts.mask, state.order, state.reverse);
            grid.setOrder(query && haystack && state.order === 'name' ? namedFirst(haystack, parseQuery(query), order) : order,
                grid.isFocused() || isPlain ? grid.active() : -1);
        }
        shape = now;
        top.update();
        active.update();
        filters.update();
        showEmpty();
    }

    const browser = makeBrowser(catalog, {
        position: grid.position, at: grid.at, size: grid.size,
        shown(model) {
            const before = state.open;
            state.open = model < 0 ? '' : catalog.path(model);
            if (model < 0 && before && history.state?.opened) history.back();
            else if (state.open !== before) writeState(state, !before && model >= 0);
            if (model < 0 && before) grid.focusAt(grid.position(catalog.find(before)));
        },
    });

    /** The address was changed by hand, or by Back. */
    function followAddress() {
        const before = state.open;
        state = app.state = parseState(location.hash);
        const model = state.open ? catalog.find(state.open) : -1;
        update();
        if (model >= 0 && browser.model() !== model) browser.show(model);
        else if (model < 0 && before) { state.open = ''; browser.close(); }
    }

    /** Adds descriptions to the haystack; a search that is on is done again at the end. */
    function readDetails() {
        const begin = performance.now();
        let isDone = false;
        const all = haystack ??= makeHaystack(catalog);
        do isDone = addDetails(all, 128); while (!isDone && performance.now() - begin < 8);
        if (!isDone) return later(readDetails);
        document.documentElement.dataset.details = 'searched';
        if (!searched) return;
        const had = app.counts.total;
        searched = '\n';
        shape = '';
        update();
        if (app.counts.total !== had) announce(`${plural(app.counts.total, 'model')} with descriptions searched`);
    }

    append(document.body, [top.element, el('div', { class: 'page' }, side, el('main', null, active.element, top.listHead, grid.element, empty)), drawer, browser.element,
        el('footer', { class: 'page-foot' }, foreign(rows.generator), ` · ${plural(catalog.count, 'model')} in `, foreign(rows.roots?.join(', ') ?? ''), rows.newest ? ` · newest file of ${rows.newest}` : '')]);
    const showPrefs = () => { top.showPrefs(); grid.setDensity(prefs.density); };
    onPrefs(showPrefs);
    wide.addEventListener('change', placeFilters);
    new ResizeObserver(() => document.documentElement.style.setProperty('--head', `${top.element.offsetHeight}px`)).observe(top.element);
    top.showPrefs();
    update();
    grid.setDensity(prefs.density);
    placeFilters();
    window.addEventListener('popstate', followAddress);
    window.addEventListener('hashchange', followAddress);
    const opened = state.open ? catalog.find(state.open) : -1;
    if (opened >= 0) browser.show(opened);
    else state.open = '';
    addActions({ app, grid, browser, actions, top, showFilters });
    addPrint(catalog, grid);
    later(readDetails);
}

/** The table of actions. @param {any} parts */
function addActions({ app, grid, browser, actions, top, showFilters }) {
    const noDialog = () => !document.querySelector('dialog:modal');
    const inGrid = () => noDialog() && grid.isFocused();
    const nearGrid = () => noDialog() && (grid.isFocused() || document.activeElement === document.body);
    const withModel = () => grid.active() >= 0 && noDialog();
    const move = (/** @type {() => number} */ by) => () => grid.focusAt(grid.active() < 0 || !grid.isFocused() ? Math.max(0, grid.position(grid.active())) : grid.position(grid.active()) + by());
    const focusSearch = () => { top.input.focus(); top.input.select(); };
    const group = 'Models';
    addAction({ id: 'search', keys: ['/'], label: 'Search', when: noDialog, run: focusSearch });
    addAction({ id: 'find', keys: ['Ctrl+f'], label: 'Search; again: find in the page', when: noDialog, run: () => document.activeElement === top.input ? false : focusSearch() });
    addAction({ id: 'filters', keys: ['f'], label: 'Filters', when: noDialog, run: showFilters });
    addAction({ id: 'sort', keys: ['s'], label: 'Next order', when: noDialog, run: () => app.change((/** @type {any} */ state) => {
        const keys = Object.keys(ORDERS);
        state.order = keys[(keys.indexOf(state.order) + 1) % keys.length];
        state.reverse = ORDERS[state.order].down;
        announce(`sorted by ${ORDERS[state.order].label.toLowerCase()}`);
    }) });
    addAction({ id: 'density', keys: ['v'], label: 'Next size of cards, list', when: noDialog, run: () => switchDensity(1) });
    addAction({ id: 'theme', keys: ['t'], label: 'Theme: automatic, light, dark', run: () => { switchTheme(); announce(`theme: ${prefs.theme}`); } });
    addAction({ id: 'maturity', keys: ['b'], label: 'Hide or show mature pictures', run: () => { switchMaturity(); announce(prefs.hideFrom < 64 ? 'mature pictures are hidden' : 'no picture is hidden by its rating'); } });
    addAction({ id: 'left', keys: ['ArrowLeft'], label: 'Previous model', group, when: () => inGrid() || browser.isOpen(), run: () => browser.isOpen() ? browser.step(-1) : move(() => -1)() });
    addAction({ id: 'right', keys: ['ArrowRight'], label: 'Next model', group, when: () => nearGrid() || browser.isOpen(), run: () => browser.isOpen() ? browser.step(1) : move(() => 1)() });
    addAction({ id: 'up', keys: ['ArrowUp'], label: 'Row above', group, when: inGrid, run: move(() => -grid.columns()) });
    addAction({ id: 'down', keys: ['ArrowDown'], label: 'Row below', group, when: nearGrid, run: move(() => grid.columns()) });
    addAction({ id: 'first', keys: ['Home'], label: 'First model', group, when: inGrid, run: () => grid.focusAt(0) });
    addAction({ id: 'last', keys: ['End'], label: 'Last model', group, when: inGrid, run: () => grid.focusAt(grid.size() - 1) });
    addAction({ id: 'page-up', keys: ['PageUp'], label: 'Page up', group, when: inGrid, run: move(() => -grid.perPage()) });
    addAction({ id: 'page-down', keys: ['PageDown'], label: 'Page down', group, when: inGrid, run: move(() => grid.perPage()) });
    addAction({ id: 'open', keys: ['Enter'], label: 'Open the model', group, when: () => inGrid() && grid.active() >= 0, run: () => browser.show(grid.active()) });
    addAction({ id: 'words', keys: ['c'], label: 'Copy the trigger words', group, when: withModel, run: () => actions.words(grid.active()) });
    addAction({ id: 'syntax', keys: ['l'], label: 'Copy the prompt: <lora:…> and words', group, when: withModel, run: () => actions.syntax(grid.active()) });
    addAction({ id: 'site', keys: ['o'], label: 'Open its CivitAI page', group, when: withModel, run: () => actions.site(grid.active()) });
    addAction({ id: 'clear', keys: ['Escape'], label: 'Close; clear the search', when: () => noDialog() && app.state.q !== '', run: () => app.change((/** @type {any} */ state) => { state.q = ''; }) });
    addDetailKeys();
    addHelp();
}

/** For print, a table of the result: the grid has only what is near the window. @param {import('./data.js').Catalog} catalog @param {ReturnType<typeof makeGrid>} grid */
function addPrint(catalog, grid) {
    /** @type {HTMLElement | undefined} */
    let table;
    window.addEventListener('beforeprint', () => {
        const shown = Array.from(grid.order().subarray(0, PRINTED));
        table = el('div', { class: 'printed' }, el('h1', null, foreign(catalog.rows.title)), el('table', { class: 'table' }, el('thead', null, el('tr', null, ['Name', 'File', 'Base', 'Kind', 'Trigger words', 'Size'].map((title) => el('th', { scope: 'col' }, title)))),
            el('tbody', null, shown.map((i) => el('tr', null, printCells(catalog, i).map((text) => el('td', null, el('bdi', null, text))))))),
        grid.size() > PRINTED && el('p', null, `${countText(grid.size() - PRINTED)} more models are not printed: narrow the result down.`));
        document.body.append(table);
    });
    window.addEventListener('afterprint', () => table?.remove());
}

try {
    const catalog = openCatalog();
    loadPrefs(catalog.rows.id);
    start(catalog);
} catch (error) {
    document.body.append(el('p', { class: 'note bad', role: 'alert' }, error instanceof Error ? error.message : String(error)));
    throw error;
}
