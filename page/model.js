// The page about one model.
import { countText, plural, sizeText } from './text.js';
import { byId, el, fill, foreign } from './dom.js';
import { icon } from './icons.js';
import { loadPrefs, onPrefs, prefs, setPref } from './prefs.js';
import { announce, copyText } from './copy.js';
import { addAction, addHelp, openHelp } from './keys.js';
import { addDetailKeys, detailView, kindWords } from './detail.js';
import { dtypeSums, matchTensors, openTensors } from './tensors.js';
import { buildTree, createTree, eachNode, markHits, nodeName, nodesOf, openSome, partText, pathOf, sortTree } from './tree.js';
import { createTreemap } from './treemap.js';
import { normsView, rowDetails } from './statistics.js';

/** @param {import('./tensors.js').Tensors} tensors */
function totalsView(tensors) {
    const { page } = tensors, { file } = page.info, sums = dtypeSums(tensors);
    /** @type {[string, string][]} */
    const totals = [[page.count.toLocaleString('en'), page.count === 1 ? 'tensor' : 'tensors'],
        [countText(page.info.model.parameters ?? file?.parameters ?? tensors.parameters), 'parameters'], [sizeText(file?.bytes ?? tensors.bytes), 'in all'],
        [String(page.files?.length ?? 1), (page.files?.length ?? 1) === 1 ? 'file' : 'files']];
    const bar = el('div', { class: 'dtypes', 'aria-hidden': 'true' }, sums.map((sum) => {
        const part = el('span', { 'data-dtype': sum.hue, title: sum.name });
        part.style.flexGrow = String(sum.bytes);
        return part;
    }));
    return el('section', { class: 'panel-card totals', 'aria-label': 'Totals' },
        el('dl', { class: 'figures' }, totals.map(([value, label]) => el('div', null, el('dd', null, value), el('dt', null, label)))),
        el('div', { class: 'by-dtype' }, bar, el('ul', { class: 'legend' }, sums.map((sum) => el('li', null,
            el('i', { class: 'swatch', 'data-dtype': sum.hue, 'aria-hidden': 'true' }), el('strong', null, foreign(sum.name)), ' ',
            el('span', { class: 'muted' }, `${partText(tensors.bytes ? sum.bytes / tensors.bytes : 0)} · ${sizeText(sum.bytes)} · ${plural(sum.tensors, 'tensor')}`))))));
}

/** Search, tree, treemap and what is selected. @param {import('./tensors.js').Tensors} tensors */
function tensorsView(tensors) {
    const { page } = tensors, root = buildTree(tensors);
    const search = el('input', {
        type: 'search', id: 'find', placeholder: 'Search names, dtype:f16, shape:4096', autocomplete: 'off', spellcheck: 'false',
        'aria-label': 'Search tensors', oninput: () => find(),
    });
    const found = el('span', { class: 'muted small-text found', role: 'status' });
    const crumbs = el('nav', { class: 'crumbs', 'aria-label': 'Area shown' });
    const caption = el('p', { class: 'caption small-text muted', 'aria-hidden': 'true' });
    const details = el('div', { class: 'chosen', id: 'chosen' });
    /** @param {import('./tree.js').TreeNode | null} node */
    const say = (node) => fill(caption, node ? [foreign(nodeName(tensors.names, node, true)), ' · ', sizeText(node.bytes),
        ' · ', partText(tensors.bytes ? node.bytes / tensors.bytes : 0)] : 'Click selects, double click zooms');
    const tree = createTree(tensors, root, {
        select(row) {
            map.choose(nodesOf(row.node));
            fill(details, rowDetails(tensors, row, nodesOf(row.node)));
        },
        hover: (node) => map.light(node ? nodesOf(node) : []),
        zoom: (node) => zoom(node),
    });
    const map = createTreemap(tensors, root, {
        select: (node) => tree.reveal(node),
        hover(node) {
            tree.light(node);
            say(node);
        },
        zoom: (node) => zoom(node),
    });
    /** @param {import('./tree.js').TreeNode} node */
    const zoom = (node) => {
        const top = map.zoom(node), path = pathOf(top);
        fill(crumbs, path.flatMap((one, i) => [i > 0 && el('span', { 'aria-hidden': 'true' }, '›'), el('button', {
            type: 'button', class: 'button quiet small', 'aria-current': one === top ? 'true' : null, onclick: () => zoom(one),
        }, i ? foreign(one.label) : 'All tensors')]));
    };
    const find = () => {
        const matched = matchTensors(tensors, search.value);
        markHits(root, matched && matched.hits);
        root.open = true;
        tree.refresh();
        fill(found, matched ? `${matched.count.toLocaleString('en')} of ${plural(page.count, 'tensor')}` : '');
    };
    /** @param {string} text */
    const show = (text) => {
        search.value = text;
        find();
        search.scrollIntoView({ block: 'nearest' });
        search.focus();
    };
    const order = el('select', { 'aria-label': 'Order', onchange: () => {
        sortTree(root, /** @type {'name' | 'bytes'} */ (order.value));
        tree.refresh();
    } }, el('option', { value: 'name' }, 'By name'), el('option', { value: 'bytes' }, 'By size'));
    /** @param {boolean} open */
    const setAll = (open) => {
        eachNode(root, (node) => { node.open = node === root || open && node.kids.length > 0; });
        tree.refresh();
    };
    const fold = el('input', { type: 'checkbox', checked: true, onchange: () => {
        eachNode(root, (node) => { node.unfolded = !fold.checked; });
        tree.refresh();
    } });
    addAction({ id: 'find', keys: ['/', 'Ctrl+f'], label: 'Search tensors', run: () => document.activeElement !== search && search.select() === undefined });
    addAction({ id: 'unfind', keys: ['Escape'], label: 'End the search, zoom out', run: () => {
        if (search.value) show('');
        else zoom(root);
        tree.element.focus();
    } });
    for (const [id, key, label] of [['move', 'ArrowDown', 'Move in the tree'], ['open', 'ArrowRight', 'Open, then go in'],
        ['level', '*', 'Open all of a level'], ['unfold', ' ', 'Unfold equal layers'], ['zoom', 'Enter', 'Zoom the map to the row']])
        addAction({ id, keys: [key], label, group: 'Tree', when: () => false, run: () => undefined });
    addAction({ id: 'copy', keys: ['Ctrl+c'], label: 'Copy the name', group: 'Tree', when: () => document.activeElement === tree.element && !getSelection()?.toString(),
        run: () => copyText(nodeName(tensors.names, tree.current().node), 'name') });
    markHits(root, null);
    openSome(root, 22);
    requestAnimationFrame(() => {
        zoom(root);
        say(null);
        if (page.count) tree.reveal(root.kids[0]);
    });
    const { stats } = page;
    const bad = stats ? stats.nan.filter((count, i) => count + stats.inf[i] > 0).length : 0;
    return { show, element: el('section', { class: 'panel-card tensors', 'aria-labelledby': 'tensors-title' },
        el('div', { class: 'row tree-tools' }, el('h2', { id: 'tensors-title' }, 'Tensors'),
            el('label', { class: 'search-box' }, icon('search'), search), found, el('span', { class: 'spread' }),
            el('label', { class: 'check' }, fold, 'Fold equal layers'), order,
            el('span', { class: 'row pair' }, el('button', { type: 'button', class: 'button quiet small', onclick: () => setAll(true) }, 'Open all'),
                el('button', { type: 'button', class: 'button quiet small', onclick: () => setAll(false) }, 'Close all'))),
        bad > 0 && el('p', { class: 'note bad bad-values' }, icon('warn'), `${plural(bad, 'tensor')} with NaN or infinite values`,
            el('button', { type: 'button', class: 'button small', onclick: () => show('is:nan') }, 'Show')),
        page.count ? el('div', { class: page.stats ? 'split with-stats' : 'split' }, tree.element, el('div', { class: 'map-side' }, crumbs, map.element, caption, details))
            : el('p', { class: 'muted' }, 'This model has no tensors.')) };
}

const THEMES = /** @type {const} */ (['auto', 'light', 'dark']);

function themeButton() {
    const button = el('button', { type: 'button', class: 'button quiet icon-only', onclick: () => turn() });
    const draw = () => {
        button.title = `Theme: ${prefs.theme}`;
        button.setAttribute('aria-label', button.title);
        fill(button, icon(prefs.theme));
    };
    const turn = () => {
        setPref('theme', THEMES[(THEMES.indexOf(prefs.theme) + 1) % THEMES.length]);
        announce(`theme: ${prefs.theme}`);
    };
    addAction({ id: 'theme', keys: ['t'], label: 'Change the theme', run: turn });
    onPrefs(draw);
    draw();
    return button;
}

/** @param {ModelPage} page */
function startModel(page) {
    loadPrefs(page.id);
    const tensors = openTensors(page), view = tensorsView(tensors);
    addDetailKeys();
    addHelp();
    document.body.append(
        el('header', { class: 'model-head' },
            el('div', { class: 'spread' }, el('h1', null, foreign(page.title)),
                el('p', { class: 'small-text muted' }, foreign(kindWords(page.info)), ' · ', foreign(page.info.path))),
            themeButton(), el('button', { type: 'button', class: 'button quiet icon-only', 'aria-label': 'Keys', title: 'Keys', onclick: openHelp }, icon('help'))),
        el('main', { class: 'model' }, totalsView(tensors), view.element, page.norms && page.norms.length > 0 && normsView(page.norms, view.show),
            el('div', null, detailView(page.info, { name: page.title, picture: (one) => document.getElementById(`embed-${one.href}`)?.textContent?.slice(1, -1) ?? '' }))),
        el('footer', { class: 'tiny muted model-foot' }, page.generator));
}

startModel(JSON.parse(byId('model').textContent ?? ''));
