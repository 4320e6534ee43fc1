// The page about one model.
import { countText, plural, sizeText } from './text.js';
import { byId, el, fill, foreign } from './dom.js';
import { icon } from './icons.js';
import { loadPrefs, onPrefs, prefs, setPref } from './prefs.js';
import { announce } from './copy.js';
import { addAction, addHelp, openHelp } from './keys.js';
import { addDetailKeys, detailView, kindWords } from './detail.js';
import { dtypeSums, isBad, matchTensors, numberText, openTensors, partText, swatch } from './tensors.js';
import { buildTree, createTree, markHits, nodeName, nodesOf, openAll, openSome, pathOf } from './tree.js';
import { createTreemap } from './treemap.js';
import { normsView, rowDetails } from './statistics.js';

/** @param {import('./tensors.js').Tensors} tensors */
function totalsView(tensors) {
    const { page } = tensors, { file, model } = page.info, sums = dtypeSums(tensors);
    const elements = file?.parameters ?? tensors.parameters; // of packed weights these are no parameters
    const totals = [plural(page.count, 'tensor'), model.parameters ? `${countText(model.parameters)} parameters` : `${countText(elements)} elements`,
        `${sizeText(file?.bytes ?? tensors.bytes)} total`, plural(page.files?.length ?? 1, 'file')].map((text) => text.split(/ (?=[a-z])/));
    return el('div.panel-card.totals',
        el('dl.figures', totals.map(([value, label]) => el('div', el('dt', label), el('dd', value)))),
        el('div.by-dtype',
            el('div.dtypes', { 'aria-hidden': 'true' }, sums.map(({ colour, bytes }) => {
                const part = swatch(colour);
                part.style.flexGrow = String(bytes);
                return part;
            })),
            el('ul.legend', sums.map(({ name, colour, bytes, tensors: count }) => el('li', swatch(colour), el('strong', foreign(name)),
                el('span.muted', ` ${partText(tensors, bytes)} · ${sizeText(bytes)} · ${plural(count, 'tensor')}`))))));
}

/** Search, tree, treemap and what is selected. @param {import('./tensors.js').Tensors} tensors */
function tensorsView(tensors) {
    const { page, names } = tensors, root = buildTree(tensors);
    const found = el('span.muted.small-text.found', { role: 'status' });
    const crumbs = el('nav.row.crumbs', { label: 'Area shown' });
    const caption = el('p.caption.small-text.muted', { 'aria-hidden': 'true' }, 'Click selects, double click zooms');
    const details = el('div.chosen', { id: 'chosen' });
    /** @param {import('./tree.js').TreeNode} node */
    const zoom = (node) => {
        const top = map.zoom(node);
        fill(crumbs, pathOf(top).flatMap((one, i) => [i > 0 && '›',
            el('button.button.quiet.small', { 'aria-current': one === top && 'true', onclick: () => zoom(one) }, i ? foreign(one.label) : 'All tensors')]));
    };
    /** @param {import('./tree.js').TreeNode} [node] */
    const describe = (node) => node && fill(caption, foreign(nodeName(names, node, true)), ` · ${sizeText(node.bytes)} · ${partText(tensors, node.bytes)}`);
    const tree = createTree(tensors, root, {
        select(row) {
            const all = nodesOf(row.node);
            map.choose(all);
            fill(details, rowDetails(tensors, row, all));
        },
        hover(node) {
            map.point(node ? nodesOf(node) : []);
            describe(node);
        },
        zoom,
    });
    const map = createTreemap(tensors, root, {
        select(node) {
            if (!node.hits) find('');
            tree.reveal(node);
        },
        hover(node) {
            tree.point(node);
            describe(node);
        },
        zoom,
    });
    const search = el('input', {
        type: 'search', id: 'find', placeholder: 'Search names, dtype:f16, shape:4096', spellcheck: 'false',
        label: 'Search tensors', oninput: () => find(search.value),
    });
    const order = el('select.small-text', { label: 'Order of the tensors', title: 'Order (S)', onchange: () => tree.sort(order.value === 'size') },
        ['name', 'size'].map((value) => el('option', { value }, `By ${value}`)));
    addAction({ id: 'order', keys: ['s'], label: 'Order by name or by size', run() {
        order.value = order.value === 'size' ? 'name' : 'size';
        tree.sort(order.value === 'size');
        announce(`Tensors by ${order.value}`);
    } });
    /** @param {string} text */
    const find = (text) => {
        const matched = matchTensors(tensors, search.value = text);
        markHits(root, matched && matched.hits);
        tree.refresh();
        fill(found, matched && `${numberText(matched.count)} of ${plural(page.count, 'tensor')}`);
    };
    /** @param {string} text */
    const show = (text) => {
        find(text);
        search.focus();
    };
    addAction({ id: 'find', keys: ['/', 'Ctrl+f'], label: 'Search tensors', run: () => document.activeElement !== search && search.select() });
    addAction({ id: 'unfind', keys: ['Escape'], label: 'End the search, zoom out', run() {
        if (search.value) find('');
        else zoom(root);
        tree.element.focus();
    } });
    openSome(root, 22);
    zoom(root);
    if (page.count) tree.reveal(root.kids[0]);
    const bad = names.filter((_, i) => isBad(page, i)).length;
    return { show, element: el('section.panel-card.tensors', { 'aria-labelledby': 'tensors-title' },
        el('div.row.tree-tools', el('h2', { id: 'tensors-title' }, 'Tensors'),
            el('label.search-box', icon('search'), search), found, el('span.spread'),
            order,
            el('span', [true, false].map((open) => el('button.button.quiet.small', { onclick() {
                openAll(root, open);
                tree.refresh();
            } }, open ? 'Open all' : 'Close all')))),
        bad > 0 && el('p.note.bad.row', icon('warn'), `${plural(bad, 'tensor')} with NaN or infinite values`,
            el('button.button.small', { onclick: () => show('is:nan') }, 'Show')),
        page.count > 0 && el(page.stats ? 'div.split.with-stats' : 'div.split', tree.element, el('div.map-side', crumbs, map.element, caption, details))) };
}

function themeButton() {
    const run = () => {
        setPref('theme', /** @type {const} */ ({ auto: 'light', light: 'dark', dark: 'auto' })[prefs.theme]);
        announce(made.title);
    };
    const made = el('button.button.quiet.icon-only', { onclick: run });
    const draw = () => {
        made.title = `Theme: ${prefs.theme}`;
        fill(made, icon(prefs.theme), el('span.unseen', made.title));
    };
    addAction({ id: 'theme', keys: ['t'], label: 'Change the theme', run });
    onPrefs(draw);
    draw();
    return made;
}

/** @param {ModelPage} page */
function startModel(page) {
    loadPrefs(page.id);
    const tensors = openTensors(page), { show, element } = tensorsView(tensors);
    addDetailKeys();
    addHelp();
    document.body.append(
        el('header.model-head',
            el('div.spread', el('h1', foreign(page.title)),
                el('p.small-text.muted', foreign(kindWords(page.info)), ' · ', foreign(page.info.path))),
            themeButton(), el('button.button.quiet.icon-only', { title: 'Keys', label: 'Keys', onclick: openHelp }, icon('help'))),
        el('main.model', totalsView(tensors), element, (page.adapter_error || page.norms?.length) && normsView(page, show),
            detailView(page.info, { name: page.title, picture: (one) => document.getElementById(`embed-${one.href}`)?.textContent?.slice(1, -1) ?? '' })),
        el('footer.tiny.muted.model-foot', page.generator));
}

startModel(JSON.parse(byId('model').textContent ?? ''));
