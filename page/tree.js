// The tree of tensors by parts of their names, with equal layers as one row.
import { countText, plural, sizeText } from './text.js';
import { bar, el, fill, foreign } from './dom.js';
import { copyText } from './copy.js';
import { addAction } from './keys.js';
import { numberText, partText, shapeText, swatch } from './tensors.js';

/** A group of tensors, or one. */
export class TreeNode {
    /** @type {TreeNode[]} */
    kids = [];
    /** @type {TreeNode | null} */
    parent = null;
    /* It, or the first one below a group. */
    tensor = -1;
    /* The kids are equal layers; and are rows. */
    fold = false;
    unfolded = false;
    open = false;
    /* Open before a search. */
    was = false;
    tensors = 0;
    parameters = 0;
    bytes = 0;
    /* Dtype of all, if they have the same, and that of the largest. */
    dtype = -1;
    main = 0;
    /* The same in two nodes: they have equal contents. */
    form = -1;
    /* Tensors found below it, or -1: no search; and which. */
    hits = -1;
    pattern = 0;
    /** @param {string} label part of the name; of a fold "0–31" @param {number} end of it, in the names @param {string} separator that follows */
    constructor(label, end, separator) {
        this.label = label;
        this.end = end;
        this.separator = separator;
    }
}

/**
 * @typedef {object} TreeRow
 * @property {TreeNode} node
 * @property {number} depth
 * @property {number} outer how many nodes like this the row stands for
 * @property {number} times the same, with the layers of a fold
 */

/* Parts of a name; what follows stays one part. */
const DEPTH = 24;
/* Most groups of a tree; names are not divided any more then. */
const GROUPS = 3e5;
const KOHYA = /(?<=^(?:(?:lora|oft|boft)_[a-z]+\d*|lycoris))_|_(?=\d+(?:_|$))|(?<=_\d+)_/g;

const collator = new Intl.Collator('en', { numeric: true });
/** Compares names, which may be of any length; numbers by their value. @param {string} a @param {string} b */
export const compare = (a, b) => collator.compare(a.slice(0, 999), b.slice(0, 999));

/**
 * Where the parts of a name end: before dots, slashes and colons; in names like lora_unet_down_blocks_0_…
 * also around numbers.
 * @param {string} name
 */
export function partEnds(name) {
    const inside = /^(lora|oft|boft|lycoris)_/.test(name) ? name.slice(0, name.search(/[./:]|$/)).matchAll(KOHYA) : [];
    const ends = [];
    for (const all of [inside, name.matchAll(/[./:]/g)])
        for (const { index } of all)
            if (ends.push(index) >= DEPTH) return ends.slice(0, DEPTH);
    return ends;
}

/** @param {import('./tensors.js').Tensors} tensors */
export function buildTree({ page, names, elements }) {
    const root = new TreeNode('', 0, ''), forms = new Map();
    /** @type {Map<string, TreeNode>} */
    const groups = new Map();
    names.forEach((name, i) => {
        let node = root, from = 0;
        for (const end of partEnds(name)) {
            const path = name.slice(0, end + 1);
            let next = groups.get(path);
            if (!next) {
                if (groups.size >= GROUPS) break;
                groups.set(path, next = new TreeNode(name.slice(from, end), end, name[end]));
                node.kids.push(next);
            }
            node = next;
            from = end + 1;
        }
        const dtype = page.dtype[i], leaf = new TreeNode(name.slice(from), name.length, '');
        node.kids.push(Object.assign(leaf, { tensor: i, tensors: 1, parameters: elements[i], bytes: page.bytes[i], dtype, main: dtype }));
    });
    finishNode(root, page, (what) => {
        if (!forms.has(what)) forms.set(what, forms.size);
        return forms.get(what);
    });
    return root;
}

/** Folds, sums; a group of one becomes that one. @param {TreeNode} node @param {ModelPage} page @param {(what: string) => number} formOf @returns {TreeNode} */
function finishNode(node, page, formOf) {
    let kids = node.kids.map((kid) => finishNode(kid, page, formOf));
    if (kids.length > 1) kids = foldLayers(kids.sort((a, b) => compare(a.label, b.label)), formOf);
    if (kids.length === 1 && node.separator) {
        kids[0].label = node.label + node.separator + kids[0].label;
        return kids[0];
    }
    if (kids.length) takeKids(node, kids);
    node.form = formOf(kids.length ? JSON.stringify(kids.map((kid) => [kid.label, kid.form])) : `${node.dtype} ${page.shape[node.tensor]}`);
    return node;
}

/** @param {TreeNode} node @param {TreeNode[]} kids not empty */
function takeKids(node, kids) {
    const [{ tensor, dtype }] = kids;
    for (const kid of kids) {
        kid.parent = node;
        node.tensors += kid.tensors;
        node.parameters += kid.parameters;
        node.bytes += kid.bytes;
    }
    const { main } = kids.reduce((a, b) => b.bytes > a.bytes ? b : a);
    return Object.assign(node, { kids, tensor, main, dtype: kids.every((kid) => kid.dtype === dtype) ? dtype : -1 });
}

/** Runs of numbers whose contents are equal, as one node each. @param {TreeNode[]} kids @param {(what: string) => number} formOf */
function foldLayers(kids, formOf) {
    /** @type {TreeNode[]} */
    const out = [];
    for (let i = 0, end; i < kids.length; i = end) {
        const { label, form, end: from, separator } = kids[i], [, first, rest] = /^(0|[1-9]\d{0,8})(?!\d)(.*)$/s.exec(label) ?? [];
        for (end = i + 1; kids[end]?.form === form && kids[end].label === Number(first) + end - i + rest;) end++;
        if (end === i + 1) out.push(kids[i]);
        else {
            const fold = new TreeNode(`${first}–${Number(first) + end - i - 1}${rest}`, from, separator);
            out.push(Object.assign(takeKids(fold, kids.slice(i, end)), { fold: true, form: formOf(`×${end - i} ${form}`) }));
        }
    }
    return out;
}

/** Opens or closes all that is below a node. @param {TreeNode} node @param {boolean} open */
export function openAll(node, open) {
    node.open = open;
    for (const kid of node.kids) openAll(kid, open);
}

/** Notes what a search found below each node; null: there is none. @param {TreeNode} node @param {number[] | null} hits */
export function markHits(node, hits) {
    if (node.hits < 0) node.was = node.open;
    node.pattern = node.hits = !node.kids.length && hits?.[node.tensor] || 0;
    for (const kid of node.kids) {
        markHits(kid, hits);
        node.hits += kid.hits;
        node.pattern = Math.imul(node.pattern, 31) + kid.pattern + 1 | 0;
    }
    node.open = hits ? node.hits > 0 : node.was;
    if (!hits) node.hits = -1;
}

/** Whether a fold is shown as one layer: in a search, if the same was found in all. @param {TreeNode} node */
const isFolded = ({ fold, unfolded, kids }) => fold && !unfolded && kids.every((kid) => kid.pattern === kids[0].pattern);

/** What is below a node's row: of a fold, what is in its first layer. @param {TreeNode} node */
export const shownKids = (node) => isFolded(node) ? node.kids[0].kids : node.kids;

/** @param {TreeNode} root @param {boolean} [bySize] the largest first @returns {TreeRow[]} what is open, from top to bottom */
export function treeRows(root, bySize) {
    /** @type {TreeRow[]} */
    const rows = [];
    /** @type {(node: TreeNode, depth: number, outer: number) => void} */
    const list = (top, depth, outer) => {
        const kids = shownKids(top);
        for (const node of bySize ? kids.slice().sort((a, b) => b.bytes - a.bytes) : kids) {
            if (!node.hits) continue;
            const times = isFolded(node) ? outer * node.kids.length : outer;
            rows.push({ node, depth, outer, times });
            if (node.open) list(node, depth + 1, times);
        }
    };
    list(root, 0, 1);
    return rows;
}

/** Opens the largest groups, while few rows come of it. @param {TreeNode} root @param {number} most */
export function openSome(root, most) {
    for (;;) {
        const rows = treeRows(root), [next] = rows.filter(({ node }) => !node.open && shownKids(node).length).sort((a, b) => b.outer * b.node.bytes - a.outer * a.node.bytes);
        if (!next || rows.length + shownKids(next.node).length > most) return;
        next.node.open = true;
    }
}

/** The way from the root to a node. @param {TreeNode} node @returns {TreeNode[]} */
export const pathOf = (node) => node.parent ? [...pathOf(node.parent), node] : [node];

/** The node whose row stands for a node: in folds, that of the first layer. @param {TreeNode} node @returns {TreeNode} */
export function shownNode(node) {
    const shown = pathOf(node).reduce((above, one) => above.kids[isFolded(above) ? 0 : (one.parent ?? above).kids.indexOf(one)]);
    return shown.parent && isFolded(shown.parent) ? shown.parent : shown;
}

/** All nodes that a row stands for. @param {TreeNode} shown @returns {TreeNode[]} */
export function nodesOf(shown) {
    const above = shown.parent, all = above ? nodesOf(above) : [shown];
    if (!above) return all;
    if (isFolded(above)) return all.flatMap((one) => one.kids);
    const at = above.kids.indexOf(shown);
    return all.map((one) => one.kids[at]);
}

/** The name that a node's tensors share; of a row for several layers "layers.{0–31}.mlp". @param {string[]} names @param {TreeNode} node @param {boolean} [alone] not what a row stands for */
export function nodeName(names, node, alone) {
    let name = (names[node.tensor] ?? '').slice(0, node.end);
    for (let at = /** @type {TreeNode | null} */ (node), below = null; at; below = at, at = at.parent) {
        const first = at.kids[0];
        if (!isFolded(at) || below && (alone || below !== first)) continue;
        const from = first.end - first.label.length, last = parseInt(first.label) + at.kids.length - 1;
        name = name.slice(0, from) + name.slice(from).replace(/\d+/, `{$&–${last}}`);
    }
    return name;
}

/**
 * The tree as an element: only rows in view are in the document.
 * @param {import('./tensors.js').Tensors} tensors
 * @param {TreeNode} root
 * @param {{ select: (row: TreeRow) => void, hover: (node?: TreeNode) => void, zoom: (node: TreeNode) => void }} tell
 */
export function createTree(tensors, root, tell) {
    const { page, names, colours } = tensors;
    /** @type {TreeRow[]} */
    let rows = [];
    /* What was chosen, and the row that it or what it is in has now. */
    let chosen = root, active = 0, bySize = false, pointed = /** @type {TreeNode | undefined} */ (undefined);
    const height = parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.625;
    const heads = ['Name', 'Dtype', 'Shape', 'Parameters', 'Bytes', 'Share', 'Offset'];
    /** @param {string} role @param {(import('./dom.js').Child | import('./dom.js').Child[])[]} texts */
    const cellsOf = (role, texts) => texts.map((text, k) => el(`span.c-${heads[k].toLowerCase()}`, { role }, text));
    const body = el('div.tree-body', { role: 'rowgroup' });
    const grid = el('div.tree', { role: 'treegrid', tabindex: 0, label: 'Tensors by name', 'aria-colcount': heads.length },
        el('div.tree-head', { role: 'rowgroup' }, el('div.tree-row', { role: 'row' }, cellsOf('columnheader', heads))), body);

    /** @param {TreeRow} row @param {number} i */
    const rowElement = ({ node, depth, outer, times }, i) => {
        const { label, dtype, fold, tensor } = node, bytes = outer * node.bytes, isLeaf = !shownKids(node).length;
        const cells = cellsOf('gridcell', [
            [el(`i.twig${isLeaf ? '' : '.fork'}`, { 'aria-hidden': 'true' }), foreign(label.trim() ? label : `"${label}"`, 'cut'),
                times > 1 && el(`span.times${fold ? '.folds' : ''}`, `×${numberText(times)}`)],
            dtype < 0 ? 'mixed' : [swatch(colours[dtype]), page.dtypes[dtype]],
            isLeaf ? shapeText(page.shapes[page.shape[tensor]]) : plural(outer * node.tensors, 'tensor'),
            countText(outer * node.parameters), sizeText(bytes),
            [bar(bytes / tensors.bytes), el('span', partText(tensors, bytes))],
            isLeaf && times === 1 && numberText(page.offset[tensor]),
        ]);
        cells[0].style.paddingInlineStart = `calc(${Math.min(depth, 14)} * var(--indent))`;
        return el('div.tree-row', {
            role: 'row', class: node === pointed && 'pointed', id: `tree-${i}`, 'aria-level': depth + 1, 'aria-rowindex': i + 2,
            'aria-expanded': isLeaf ? null : String(node.open), 'aria-selected': String(i === active), 'data-i': i,
        }, cells);
    };
    const draw = () => {
        const from = Math.max(0, Math.floor(grid.scrollTop / height) - 6), to = from + grid.clientHeight / height + 12;
        fill(body, rows.slice(from, to).map((row, k) => rowElement(row, from + k)));
        body.style.paddingTop = `${from * height}px`;
        grid.setAttribute('aria-activedescendant', active >= from && active < to && rows.length ? `tree-${active}` : '');
    };
    /** @param {TreeNode} node */
    const rowOf = (node) => rows.findIndex((row) => row.node === node);
    /** Lists rows anew. */
    const refresh = () => {
        rows = treeRows(root, bySize);
        let at = shownNode(chosen);
        while (at.parent && rowOf(at) < 0) at = shownNode(at.parent);
        active = Math.max(0, rowOf(at));
        body.style.height = `${rows.length * height}px`;
        grid.setAttribute('aria-rowcount', String(rows.length + 1));
        draw();
    };
    /** @param {number} i */
    const activate = (i) => {
        active = Math.max(0, Math.min(rows.length - 1, i));
        if (!rows.length) return;
        const top = active * height;
        chosen = rows[active].node;
        grid.scrollTop = Math.min(top, Math.max(grid.scrollTop, top + 2 * height - grid.clientHeight));
        draw();
        tell.select(rows[active]);
    };
    /** @param {TreeNode} node @param {boolean} open */
    const setOpen = (node, open) => {
        node.open = open;
        refresh();
    };
    /** Unfolds or folds the layers that a node is or is in; else opens or closes it. @param {TreeNode} node */
    const toggleFold = (node) => {
        const fold = node.fold ? node : node.parent;
        if (!fold?.fold) return setOpen(node, !node.open);
        fold.unfolded = !fold.unfolded;
        fold.open ||= fold.unfolded;
        chosen = fold;
        refresh();
        activate(active);
    };
    /** @param {string} key */
    const move = (key) => {
        const page = Math.ceil(grid.clientHeight / height / 2);
        activate(active + ({ ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity }[key] ?? Infinity));
    };
    /** @type {[id: string, keys: string[], label: string, run: (at: { key: string, node: TreeNode, isGroup: boolean }) => unknown][]} */
    const actions = [
        ['move', ['ArrowUp', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End'], 'Move in the tree', ({ key }) => move(key)],
        ['open', ['ArrowRight'], 'Open, then go in', ({ node, isGroup }) => isGroup && (node.open ? activate(active + 1) : setOpen(node, true))],
        ['close', ['ArrowLeft'], 'Close, then go out', ({ node, isGroup }) =>
            isGroup && node.open ? setOpen(node, false) : node.parent?.parent && activate(rowOf(shownNode(node.parent)))],
        ['unfold', [' '], 'Unfold equal layers', ({ node }) => toggleFold(node)],
        ['zoom', ['Enter'], 'Zoom the map to the row', ({ node }) => tell.zoom(node)],
        ['copy', ['Ctrl+c'], 'Copy the name', ({ node }) => copyText(nodeName(names, node), 'name')],
    ];
    for (const [id, keys, label, run] of actions)
        addAction({ id, keys, label, group: 'Tree', when: () => document.activeElement === grid && rows.length > 0 && !(id === 'copy' && `${getSelection()}`), run({ key }) {
            const { node } = rows[active];
            run({ key, node, isGroup: shownKids(node).length > 0 });
        } });
    /** @param {EventTarget | null} target */
    const rowAt = (target) => Number(/** @type {HTMLElement} */ (target).closest('[data-i]')?.getAttribute('data-i') ?? -1);
    body.addEventListener('mousemove', ({ target }) => tell.hover(rows[rowAt(target)]?.node));
    body.addEventListener('mouseleave', () => tell.hover());
    body.addEventListener('click', ({ target }) => {
        const one = /** @type {HTMLElement} */ (target), i = rowAt(target);
        if (i < 0) return;
        const { node } = rows[i];
        activate(i);
        if (one.matches('.folds')) toggleFold(node);
        else setOpen(node, !node.open);
    });
    grid.addEventListener('scroll', draw);
    new ResizeObserver(draw).observe(grid);
    return {
        element: grid, refresh,
        /** @param {boolean} order by size, else by name */
        sort(order) {
            bySize = order;
            refresh();
            activate(active);
        },
        /** Marks the row that stands for a node. @param {TreeNode} [node] */
        point(node) {
            let at = /** @type {TreeNode | null | undefined} */ (node && shownNode(node));
            while (at && rowOf(at) < 0) at = at.parent && shownNode(at.parent);
            if (pointed === (at ?? undefined)) return;
            pointed = at ?? undefined;
            draw();
        },
        /** Opens what is above a node and makes its row the active one. @param {TreeNode} node */
        reveal(node) {
            chosen = node;
            for (let at = shownNode(node).parent; at; at = at.parent) at.open = true;
            refresh();
            activate(active);
        },
    };
}
