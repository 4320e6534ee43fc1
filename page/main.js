// Start of a catalogue: opens the data, joins grid and controls, and has the table of actions.
import { plural } from './text.js';
import { append, el, fill, foreign, makeDialog } from './dom.js';
import { icon } from './icons.js';
import { areStarsKept, forgetStars, loadPrefs, loadStars, onPrefs, prefs, stars } from './prefs.js';
import { announce } from './copy.js';
import { addAction, addHelp, helpNotes } from './keys.js';
import { addDetailKeys } from './detail.js';
import { FLAG, openCatalog } from './data.js';
import { addDetails, makeHaystack, namedFirst, parseQuery, search, SEARCH_HELP } from './search.js';
import { applyFilters, makeFacets, noFilters, renewTraits } from './filter.js';
import { isByNumber, ORDERS, sorted } from './sort.js';
import { firstOrder, parseState, writeState } from './state.js';
import { makeActions, printCells } from './card.js';
import { makeSelection, makeSelectionBar } from './select.js';
import { makeGrid } from './grid.js';
import { makeActiveFilters, makeFilters, makeTop, nextPref, switchMaturity } from './panel.js';
import { makeCommands } from './command.js';
import { makeBrowser } from './browse.js';

const PRINTED = 2000;

/** @param {import('./data.js').Catalog} catalog */
function start(catalog) {
    const { rows, count } = catalog, roots = rows.roots.join(', '), facets = makeFacets(catalog), everything = new Uint8Array(count).fill(1);
    /** Made when it is first needed: not before the first cards are shown. @type {import('./search.js').Haystack | undefined} */
    let haystack;
    loadStars((path) => { const i = catalog.find(path); return i < 0 ? undefined : (rows.flags[i] & FLAG.favourite) > 0; });
    if (stars.size) renewTraits(facets, catalog);
    if (isByNumber(catalog)) Object.assign(firstOrder, { order: 'modified', reverse: true });
    let found = everything, searched = '', shown = '', isQueued = false;

    /** @type {import('./panel.js').App} */
    const app = {
        catalog, facets, state: parseState(location.hash), counts: applyFilters(facets, noFilters(), everything),
        change(part) {
            Object.assign(app.state, part);
            if (isQueued) return;
            isQueued = true;
            requestAnimationFrame(() => { isQueued = false; update(); writeState(app.state); });
        },
        toGrid: () => grid.focusAt(Math.max(0, grid.position(grid.active()))),
    },
        actions = makeActions(catalog), top = makeTop(app, showFilters, () => commands.open([], true)), filters = makeFilters(app), active = makeActiveFilters(app),
            selection = makeSelection(catalog, () => grid.result(), () => { grid.showSelected(); bar.update(); }),
            grid = makeGrid(catalog, actions, (model) => browser.show(model), () => Math.max(0, (top.listHead.hidden ? top.element : top.listHead).getBoundingClientRect().bottom), selection, star),
            commands = makeCommands(catalog, starred, () => { const before = [...starred().set, ...starred().unset]; forgetStars(); showStars(before); }),
            bar = makeSelectionBar(selection, () => app.counts.total, act, () => star(selection.models())),
        browser = makeBrowser(catalog, grid, { star: (model) => star([model]), act: (model) => commands.open([model]) }, (model) => {
            const { state } = app, before = state.open;
            state.open = model < 0 ? '' : catalog.path(model);
            if (model < 0 && before && history.state?.opened) history.back();
            else if (state.open !== before) writeState(state, !before);
            if (model < 0 && before) grid.focusAt(grid.position(catalog.find(before)));
        });

    /** Models whose star differs from what their files say. */
    function starred() {
        /** @type {{ set: number[], unset: number[] }} */
        const made = { set: [], unset: [] };
        for (const [path, is] of stars) made[is ? 'set' : 'unset'].push(catalog.find(path));
        return made;
    }
    /** @param {number[]} some */
    function showStars(some) {
        renewTraits(facets, catalog);
        shown = '';
        update();
        grid.redraw(some);
        top.showStars(stars.size);
    }
    /** @param {number[]} some */
    function star(some) {
        if (!some.length) return;
        const is = actions.star(some);
        showStars(some);
        announce(is ? 'starred' : 'star taken', some.length > 1 && `: ${plural(some.length, 'model')}`, areStarsKept ? ', in this browser' : ', until this page is closed');
    }
    /** Commands for the selection, else for the model with the focus. */
    function act() {
        const some = selection.count() ? selection.models() : grid.active() >= 0 ? [grid.active()] : [];
        if (some.length) commands.open(some);
        else announce('select models first');
    }

    const side = el('aside.side', { label: 'Filters' }), wide = matchMedia('(min-width: 901px)'),
        drawer = makeDialog('drawer', 'Filters', el('div.drawer-head', el('button.button.primary', { onclick: () => drawer.close() }, 'Show the models')));
    function placeFilters() {
        drawer.close();
        side.hidden = !wide.matches;
        (wide.matches ? side : drawer).append(filters.element);
        grid.layout();
    }
    function showFilters() {
        if (!wide.matches) return drawer.showModal();
        side.hidden = !side.hidden;
        grid.layout();
    }

    const empty = el('div.empty');
    function showEmpty() {
        const { q, filters } = app.state, chosen = filters.choices.length, used = [q && 'the search', chosen > 0 && plural(chosen, 'filter')].filter(Boolean).join(' and ');
        empty.hidden = app.counts.total > 0;
        fill(empty, icon(count ? 'search' : 'folder'), el('h2', count ? 'No models match' : 'No models here'),
            el('p.muted', count ? used : ['No models were found in ', foreign(roots), '.']),
            !count && el('p.muted.takes', 'Models are files that end in .safetensors or .sft, folders with an index (.safetensors.index.json), and models in files that end in ',
                rows.takes.join(', '), '. Put some there and write the page again.'),
            count > 0 && el('button.button.primary', { onclick: () => {
                app.change({ q: '', filters: noFilters() });
                top.input.focus();
            } }, 'Clear search and filters'));
    }

    /** Computes and shows the result of the state. */
    function update() {
        const { state, state: { filters: chosen, order, reverse } } = app, query = state.q.trim();
        if (query !== searched) found = query ? search(haystack ??= makeHaystack(catalog), parseQuery(query)) : everything;
        searched = query;
        app.counts = applyFilters(facets, chosen, found);
        const now = JSON.stringify([query, chosen, order, reverse]), isPlain = !query && !chosen.choices.length;
        if (now !== shown) {
            const result = sorted(catalog, app.counts.mask, order, reverse);
            grid.setOrder(query && haystack && order === 'name' ? namedFirst(haystack, parseQuery(query), result) : result,
                grid.isFocused() || isPlain ? grid.active() : -1);
        }
        shown = now;
        for (const part of [top, active, filters, bar]) part.update();
        showEmpty();
    }

    /** Shows the model of the address; at the start, and when it was changed by hand or by Back. */
    function openShown() {
        const model = app.state.open ? catalog.find(app.state.open) : -1;
        if (model < 0) {
            app.state.open = '';
            browser.element.close();
        } else if (browser.model() !== model) browser.show(model);
    }
    function followAddress() {
        app.state = parseState(location.hash);
        update();
        openShown();
    }

    /** Adds descriptions to the haystack; a search that is on is done again at the end. */
    function readDetails() {
        const begin = performance.now(), all = haystack ??= makeHaystack(catalog);
        let isDone = false;
        do isDone = addDetails(all, 128); while (!isDone && performance.now() - begin < 8);
        if (!isDone) return void setTimeout(readDetails, 40);
        document.documentElement.dataset.details = 'searched';
        if (!searched) return;
        const had = app.counts.total;
        searched = shown = '\n';
        update();
        if (app.counts.total !== had) announce(`${plural(app.counts.total, 'model')} with descriptions searched`);
    }

    append(document.body, [top.element, el('div.page', side, el('main', active.element, top.listHead, grid.element, empty)), bar.element, drawer, browser.element, commands.element,
        el('footer.page-foot', foreign(rows.generator), ` · ${plural(count - Object.keys(rows.fault).length, 'model')} in `, foreign(roots), rows.newest && ` · newest file of ${rows.newest}`)]);
    const showPrefs = () => { top.showPrefs(); grid.setDensity(prefs.density); };
    onPrefs(showPrefs);
    wide.addEventListener('change', placeFilters);
    new ResizeObserver(() => document.documentElement.style.setProperty('--head', `${top.element.offsetHeight}px`)).observe(top.element);
    showPrefs();
    update();
    placeFilters();
    addEventListener('popstate', followAddress);
    addEventListener('hashchange', followAddress);
    openShown();
    top.showStars(stars.size);
    addActions(app, grid, browser, actions, top.input, showFilters, selection, star, act);
    addPrint(catalog, grid);
    setTimeout(readDetails, 40);
}

/**
 * The table of actions.
 * @param {import('./panel.js').App} app
 * @param {ReturnType<typeof makeGrid>} grid
 * @param {ReturnType<typeof makeBrowser>} browser
 * @param {import('./card.js').Actions} actions
 * @param {HTMLInputElement} input
 * @param {() => void} showFilters
 * @param {import('./select.js').Selection} selection
 * @param {(models: number[]) => void} star
 * @param {() => void} act
 */
function addActions(app, grid, browser, actions, input, showFilters, selection, star, act) {
    const noDialog = () => !document.querySelector('dialog:modal'), isOpen = () => browser.model() >= 0,
        inGrid = () => noDialog() && grid.isFocused(), hasModel = () => noDialog() && grid.active() >= 0,
        nearGrid = () => inGrid() || noDialog() && document.activeElement === document.body,
        focusSearch = () => { input.focus(); input.select(); };
    const step = (/** @type {-1 | 1} */ by) => isOpen() ? browser.step(by) : grid.move(0, by),
        nextOrder = () => {
            const keys = Object.keys(ORDERS), order = keys[(keys.indexOf(app.state.order) + 1) % keys.length];
            app.change({ order, reverse: ORDERS[order].down });
            announce(`sorted by ${ORDERS[order].label.toLowerCase()}`);
        },
        switchTheme = () => { nextPref('theme'); announce(`theme: ${prefs.theme}`); },
        hide = () => { switchMaturity(); announce(prefs.hideFrom < 64 ? 'mature pictures are hidden' : 'no picture is hidden by its rating'); };
    /** @type {[id: string, key: string, label: string, when: (() => boolean) | undefined, run: () => unknown][]} */
    const page = [
        ['search', '/', 'Search', noDialog, focusSearch],
        ['find', 'Ctrl+f', 'Search; again: find in the page', noDialog, () => document.activeElement === input ? false : focusSearch()],
        ['filters', 'f', 'Filters', noDialog, showFilters],
        ['sort', 's', 'Next order', noDialog, nextOrder],
        ['density', 'v', 'Next size of cards, list', noDialog, () => nextPref('density')],
        ['theme', 't', 'Theme: automatic, light, dark', undefined, switchTheme],
        ['maturity', 'b', 'Hide or show mature pictures', undefined, hide],
        ['unselect', 'Escape', 'Close; select none; clear the search', () => noDialog() && selection.count() > 0 && document.activeElement !== input, () => selection.clear()],
        ['clear', 'Escape', 'Clear the search', () => noDialog() && app.state.q !== '', () => app.change({ q: '' })],
    ];
    /** @type {typeof page} */
    const models = [
        ['left', 'ArrowLeft', 'Previous model', () => isOpen() || inGrid(), () => step(-1)],
        ['right', 'ArrowRight', 'Next model', () => isOpen() || nearGrid(), () => step(1)],
        ['up', 'ArrowUp', 'Row above', inGrid, () => grid.move(-1, 0)],
        ['down', 'ArrowDown', 'Row below', nearGrid, () => grid.move(1, 0)],
        ['first', 'Home', 'First model', inGrid, () => grid.focusAt(0)],
        ['last', 'End', 'Last model', inGrid, () => grid.focusAt(Infinity)],
        ['page-up', 'PageUp', 'Page up', inGrid, () => grid.move(-grid.rowsOfPage(), 0)],
        ['page-down', 'PageDown', 'Page down', inGrid, () => grid.move(grid.rowsOfPage(), 0)],
        ['open', 'Enter', 'Open the model', () => inGrid() && hasModel(), () => browser.show(grid.active())],
        ['select', 'x', 'Select the model (also Space)', inGrid, () => selection.toggle(grid.active())],
        ['select-all', 'Ctrl+a', 'Select all', nearGrid, () => selection.all()],
        ['stretch-left', 'Shift+ArrowLeft', 'Select to the left', inGrid, () => grid.stretch(0, -1)],
        ['stretch-right', 'Shift+ArrowRight', 'Select to the right', inGrid, () => grid.stretch(0, 1)],
        ['stretch-up', 'Shift+ArrowUp', 'Select the row above', inGrid, () => grid.stretch(-1, 0)],
        ['stretch-down', 'Shift+ArrowDown', 'Select the row below', inGrid, () => grid.stretch(1, 0)],
        ['act', 'a', 'Commands for what is selected', () => noDialog(), act],
        ['star', '*', 'Favourite: set or take the star', () => isOpen() || hasModel() || noDialog() && selection.count() > 0,
            () => { star(isOpen() ? [browser.model()] : selection.count() ? selection.models() : [grid.active()]); browser.drawStar(); }],
        ['words', 'c', 'Copy the trigger words', hasModel, () => actions.words(grid.active())],
        ['syntax', 'l', 'Copy the prompt: <lora:…> and words', hasModel, () => actions.syntax(grid.active())],
        ['site', 'o', 'Open its CivitAI page', hasModel, () => actions.site(grid.active())],
    ];
    for (const list of [page, models])
        for (const [id, key, label, when, run] of list) addAction({ id, keys: [key], label, when, run, group: list === models ? 'Models' : 'Page' });
    addDetailKeys();
    helpNotes.push(SEARCH_HELP);
    addHelp();
}

/** For print, a table of the result: the grid has only what is near the window. @param {import('./data.js').Catalog} catalog @param {ReturnType<typeof makeGrid>} grid */
function addPrint(catalog, grid) {
    const table = el('div.printed');
    addEventListener('beforeprint', () => {
        const order = grid.order(), rest = order.length - PRINTED;
        fill(table, el('h1', foreign(catalog.rows.title)), el('table.table', el('thead', el('tr', ['Name', 'File', 'Base', 'Kind', 'Trigger words', 'Size'].map((title) => el('th', { scope: 'col' }, title)))),
            el('tbody', Array.from(order.subarray(0, PRINTED), (i) => el('tr', printCells(catalog, i).map((text) => el('td', el('bdi', text))))))),
        rest > 0 && el('p', `${plural(rest, 'more model is', 'more models are')} not printed: narrow the result down.`));
        document.body.append(table);
    });
    addEventListener('afterprint', () => table.remove());
}

try {
    const catalog = openCatalog();
    loadPrefs(catalog.rows.id);
    start(catalog);
} catch (error) {
    document.body.append(el('p.note.bad', { role: 'alert' }, error instanceof Error ? error.message : `${error}`));
    throw error;
}
