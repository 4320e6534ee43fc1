// The tree of tensors by parts of their names, with equal layers as one row.
import { countText, plural, sizeText } from './text.js';
import { el, fill, foreign } from './dom.js';
import { shapeText } from './tensors.js';

/** A group of tensors, or one. */
export class TreeNode {
    /** @param {string} label part of the name; of a fold "0–31" @param {number} end of it, in the names @param {string} separator that follows */
    constructor(label, end, separator) {
        this.label = label;
        this.end = end;
        this.separator = separator;
        this.key = ''; // its place among others
        /** @type {TreeNode[]} */
        this.kids = [];
        this.parent = /** @type {TreeNode | null} */ (null);
        this.tensor = -1; // of a group
        this.first = -1; // tensor below it
        this.fold = false; // the kids are equal layers
        this.unfolded = false; // and are rows
        this.mixed = false; // a search found different things in them
        this.open = this.was = false; // was: before a search
        this.tensors = this.parameters = this.bytes = 0;
        this.dtype = -1; // of all, if they have the same
        this.main = 0; // that of the largest
        this.form = -1; // the same in two nodes: they have equal contents
        this.hits = -1; // tensors found below it; -1: no search
        this.pattern = 0; // which
    }
}

/**
 * @typedef {object} TreeRow
 * @property {TreeNode} node
 * @property {number} depth
 * @property {number} outer how many nodes like this the row stands for
 * @property {number} times the same, with the layers of a fold
 */

const DEPTH = 24; // parts of a name; what follows stays one part
const GROUPS = 3e5; // of a tree; names are not divided any more then
const KOHYA = /(?<=^(?:(?:lora|oft|boft)_[a-z]+\d*|lycoris))_|_(?=\d+(?:_|$))|(?<=_\d+)_/g;

/** Natural order: numbers by their value. @param {TreeNode} a @param {TreeNode} b */
const byLabel = (a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
/** @param {string} label */
export const orderKey = (label) => label.slice(0, 999).replace(/\d+/g, (number) => number.padStart(12, '0'));

/**
 * Where the parts of a name end: before dots, slashes and colons; in names like lora_unet_down_blocks_0_…
 * also around numbers.
 * @param {string} name
 */
export function partEnds(name) {
    const ends = [];
    if (/^(lora|oft|boft|lycoris)_/.test(name))
        for (const one of name.slice(0, name.search(/[./:]|$/)).matchAll(KOHYA))
            if (ends.push(one.index) === DEPTH) break;
    for (let at = 0; at < name.length && ends.length < DEPTH; at++) {
        const code = name.charCodeAt(at);
        if (code === 46 || code === 47 || code === 58) ends.push(at); // . / :
    }
    return ends.slice(0, DEPTH);
}

/** @param {import('./tensors.js').Tensors} tensors @returns {TreeNode} */
export function buildTree(tensors) {
    const { page, names } = tensors, root = new TreeNode('', 0, '');
    /** @type {Map<string, TreeNode>} */
    const groups = new Map();
    /** @type {TreeNode[]} groups of the previous tensor */
    const path = [];
    for (let i = 0; i < page.count; i++) {
        const name = names[i], ends = partEnds(name);
        let node = root, from = 0, depth = 0;
        for (; depth < ends.length; depth++) {
            const end = ends[depth];
            let next = end < page.shared[i] && path[depth]?.end === end ? path[depth] : groups.get(name.slice(0, end + 1));
            if (!next) {
                if (groups.size >= GROUPS) break;
                next = new TreeNode(name.slice(from, end), end, name[end]);
                groups.set(name.slice(0, end + 1), next);
                node.kids.push(next);
            }
            path[depth] = node = next;
            from = end + 1;
        }
        path.length = depth;
        const leaf = new TreeNode(name.slice(from), name.length, '');
        leaf.tensor = leaf.first = i;
        leaf.tensors = 1;
        leaf.parameters = tensors.elements[i];
        leaf.bytes = page.bytes[i];
        leaf.dtype = leaf.main = page.dtype[i];
        node.kids.push(leaf);
    }
    finishNode(root, page, new Map());
    root.open = true;
    return root;
}

/** Folds, sums; a group of one becomes that one. @param {TreeNode} node @param {ModelPage} page @param {Map<string | number, number>} forms @returns {TreeNode} */
function finishNode(node, page, forms) {
    if (node.tensor >= 0) node.form = formOf(page.dtype[node.tensor] * page.shapes.length + page.shape[node.tensor], forms);
    else {
        let kids = node.kids;
        for (let i = 0; i < kids.length; i++) kids[i] = finishNode(kids[i], page, forms);
        if (kids.length > 1) {
            for (const kid of kids) kid.key = orderKey(kid.label);
            kids = foldLayers(kids.sort(byLabel), forms);
        }
        if (kids.length === 1 && node.separator) {
            kids[0].label = node.label + node.separator + kids[0].label;
            return kids[0];
        }
        takeKids(node, kids);
        node.form = formOf(JSON.stringify(kids.map((kid) => [kid.label, kid.form])), forms);
    }
    return node;
}

/** @param {string | number} what @param {Map<string | number, number>} forms */
function formOf(what, forms) {
    let form = forms.get(what);
    if (form === undefined) forms.set(what, form = forms.size);
    return form;
}

/** @param {TreeNode} node @param {TreeNode[]} kids */
function takeKids(node, kids) {
    let largest = -1;
    node.kids = kids;
    node.dtype = kids[0]?.dtype ?? -1;
    node.first = kids[0]?.first ?? -1;
    for (const kid of kids) {
        kid.parent = node;
        node.tensors += kid.tensors;
        node.parameters += kid.parameters;
        node.bytes += kid.bytes;
        if (kid.dtype !== node.dtype) node.dtype = -1;
        if (kid.bytes > largest) [largest, node.main] = [kid.bytes, kid.main];
    }
}

/** Runs of numbers whose contents are equal, as one node each. @param {TreeNode[]} kids @param {Map<string | number, number>} forms */
function foldLayers(kids, forms) {
    /** @type {TreeNode[]} */
    const out = [];
    for (let i = 0, end; i < kids.length; i = end) {
        const [number, rest] = layerNumber(kids[i].label);
        for (end = i + 1; number >= 0 && end < kids.length; end++) {
            const [other, its] = layerNumber(kids[end].label);
            if (other !== number + end - i || its !== rest || kids[end].form !== kids[i].form) break;
        }
        if (end === i + 1) {
            out.push(kids[i]);
            continue;
        }
        const fold = new TreeNode(`${number}–${number + end - i - 1}${rest}`, kids[i].end, kids[i].separator);
        fold.fold = true;
        fold.key = kids[i].key;
        takeKids(fold, kids.slice(i, end));
        fold.form = formOf(`×${end - i} ${kids[i].form}`, forms);
        out.push(fold);
    }
    return out;
}

/** @param {string} label @returns {[number, string]} */
function layerNumber(label) {
    const [, number, rest] = /^(0|[1-9]\d{0,8})(?!\d)(.*)$/s.exec(label) ?? [];
    return number === undefined ? [-1, ''] : [+number, rest];
}

/** Calls visit for each node, parents first. @param {TreeNode} node @param {(node: TreeNode) => void} visit */
export function eachNode(node, visit) {
    visit(node);
    for (const kid of node.kids) eachNode(kid, visit);
}

/** Orders what is in groups; layers of a fold stay in theirs. @param {TreeNode} root @param {'name' | 'bytes'} key */
export function sortTree(root, key) {
    eachNode(root, (node) => {
        if (!node.fold) node.kids.sort((a, b) => (key === 'bytes' ? b.bytes - a.bytes : 0) || byLabel(a, b));
    });
}

/** Notes what a search found below each node; null: there is none. @param {TreeNode} node @param {Uint8Array | null} hits */
export function markHits(node, hits) {
    for (const kid of node.kids) markHits(kid, hits);
    if (node.hits < 0) node.was = node.open;
    node.hits = node.tensor < 0 || !hits ? 0 : hits[node.tensor];
    node.pattern = node.hits;
    for (const kid of node.kids) {
        node.hits += kid.hits;
        node.pattern = Math.imul(node.pattern, 31) + kid.pattern + (kid.hits > 0 ? 7 : 1) | 0;
    }
    node.mixed = !!hits && node.fold && node.kids.some((kid) => kid.pattern !== node.kids[0].pattern);
    node.open = hits ? node.hits > 0 : node.was;
    if (!hits) node.hits = -1;
}

/** Whether a fold is shown as one layer: in a search, if the same was found in all. @param {TreeNode} node */
export function isFolded(node) {
    return node.fold && !node.unfolded && !node.mixed;
}

/** Nodes in the row's place of the tree: a fold shows what is in its first layer. @param {TreeNode} node */
function shownKids(node) {
    return isFolded(node) ? node.kids[0].kids : node.kids;
}

/** @param {TreeNode} root @returns {TreeRow[]} what is open, from top to bottom */
export function treeRows(root) {
    /** @type {TreeRow[]} */
    const rows = [];
    /** @type {(node: TreeNode, depth: number, outer: number) => void} */
    const list = (node, depth, outer) => {
        for (const kid of shownKids(node)) {
            if (!kid.hits) continue;
            const times = isFolded(kid) ? outer * kid.kids.length : outer;
            rows.push({ node: kid, depth, outer, times });
            if (kid.open) list(kid, depth + 1, times);
        }
    };
    list(root, 0, 1);
    return rows;
}

/** Opens the largest groups, as long as few rows come of it. @param {TreeNode} root @param {number} most */
export function openSome(root, most) {
    for (let rows = treeRows(root); ;) {
        const next = rows.filter(({ node }) => !node.open && shownKids(node).length > 0 && rows.length + shownKids(node).length <= most)
            .sort((a, b) => b.outer * b.node.bytes - a.outer * a.node.bytes)[0];
        if (!next) return;
        next.node.open = true;
        rows = treeRows(root);
    }
}

/** The way from the root to a node. @param {TreeNode} node */
export function pathOf(node) {
    const path = [node];
    for (let at = node.parent; at; at = at.parent) path.unshift(at);
    return path;
}

/** The node whose row stands for a node: in folds, that of the first layer. @param {TreeNode} node @returns {TreeNode} */
export function shownNode(node) {
    const path = pathOf(node);
    let shown = path[0];
    for (let i = 1; i < path.length; i++) shown = shown.kids[isFolded(path[i - 1]) ? 0 : path[i - 1].kids.indexOf(path[i])];
    return shown.parent && isFolded(shown.parent) ? shown.parent : shown;
}

/** All nodes that a row stands for. @param {TreeNode} shown */
export function nodesOf(shown) {
    const path = pathOf(shown);
    let all = [path[0]];
    for (let i = 1; i < path.length; i++) {
        const at = path[i - 1].kids.indexOf(path[i]);
        all = isFolded(path[i - 1]) ? all.flatMap((one) => one.kids) : all.map((one) => one.kids[at]);
    }
    return all;
}

/** The name that a node's tensors share; of a row for several layers "layers.{0–31}.mlp". @param {string[]} names @param {TreeNode} node @param {boolean} [alone] not what a row stands for */
export function nodeName(names, node, alone) {
    let name = (names[node.first] ?? '').slice(0, node.end);
    for (let at = /** @type {TreeNode | null} */ (node), below = null; at; below = at, at = at.parent) {
        const first = at.kids[0];
        if (!isFolded(at) || below && (alone || below !== first)) continue;
        const from = first.end - first.label.length, number = layerNumber(first.label)[0];
        name = `${name.slice(0, from)}{${number}–${number + at.kids.length - 1}}${name.slice(from + String(number).length)}`;
    }
    return name;
}

/**
 * The tree as an element: only rows in view are in the document.
 * @param {import('./tensors.js').Tensors} tensors
 * @param {TreeNode} root
 * @param {{ select: (row: TreeRow) => void, hover: (node: TreeNode | null) => void, zoom: (node: TreeNode) => void }} tell
 */
export function createTree(tensors, root, tell) {
    const { page } = tensors;
    /** @type {TreeRow[]} */
    let rows = [];
    let active = 0, typed = '', typedAt = 0, height = 26, frame = 0, wanted = root.kids[0];
    /** @type {Map<number, HTMLElement>} */
    let live = new Map();
    const body = el('div', { class: 'tree-body', role: 'rowgroup' });
    const heads = ['Name', 'Dtype', 'Shape', 'Parameters', 'Bytes', 'Share', 'Offset']
        .map((name) => el('span', { role: 'columnheader', class: 'c-' + name.toLowerCase() }, name));
    const grid = el('div', { class: 'tree', role: 'treegrid', tabindex: 0, 'aria-label': 'Tensors by name', 'aria-colcount': heads.length },
        el('div', { role: 'rowgroup', class: 'tree-head' }, el('div', { role: 'row', class: 'tree-row' }, heads)), body);

    /** @param {number} i */
    const rowElement = (i) => {
        const { node, depth, outer, times } = rows[i];
        const tensor = node.tensor, bytes = outer * node.bytes;
        const leaf = !shownKids(node).length;
        const only = leaf && node.fold ? node.first : tensor;
        const share = tensors.bytes ? bytes / tensors.bytes : 0;
        const bar = el('span');
        bar.style.width = share * 100 + '%';
        const name = el('span', { role: 'gridcell', class: 'c-name' }, el('i', { class: leaf ? 'twig' : 'twig fork', 'aria-hidden': 'true' }),
            foreign(node.label.trim() ? node.label : `"${node.label}"`, 'cut'), times > 1 && foldBadge(node, times));
        name.style.paddingInlineStart = `calc(${Math.min(depth, 14)} * var(--indent))`;
        const row = el('div', {
            role: 'row', class: 'tree-row', id: 'tree-' + i, 'aria-level': depth + 1, 'aria-rowindex': i + 2,
            'aria-expanded': leaf ? null : String(node.open), 'aria-selected': String(i === active), 'data-i': i,
        }, name,
        el('span', { role: 'gridcell', class: 'c-dtype' }, node.dtype < 0 ? 'mixed' : [
            el('i', { class: 'swatch', 'data-dtype': tensors.hues[node.dtype], 'aria-hidden': 'true' }), page.dtypes[node.dtype]]),
        el('span', { role: 'gridcell', class: 'c-shape' }, only >= 0 ? shapeText(page.shapes[page.shape[only]]) : plural(outer * node.tensors, 'tensor')),
        el('span', { role: 'gridcell', class: 'c-parameters' }, countText(outer * node.parameters)),
        el('span', { role: 'gridcell', class: 'c-bytes' }, sizeText(bytes)),
        el('span', { role: 'gridcell', class: 'c-share' }, el('span', { class: 'bar', 'aria-hidden': 'true' }, bar),
            el('span', null, partText(share))),
        el('span', { role: 'gridcell', class: 'c-offset' }, tensor >= 0 && times === 1 ? page.offset[tensor].toLocaleString('en') : ''));
        row.style.top = i * height + 'px';
        row.style.height = height + 'px';
        return row;
    };
    /** @param {TreeNode} node @param {number} times */
    const foldBadge = (node, times) => el('span', {
        class: 'times' + (node.fold ? ' folds' : ''), 'data-fold': node.fold ? '' : null,
        title: node.fold ? 'Equal layers: unfold (Space)' : null,
    }, '×' + times.toLocaleString('en'));

    const draw = () => {
        frame = 0;
        const from = Math.max(0, Math.floor(grid.scrollTop / height) - 6);
        const to = Math.min(rows.length, Math.ceil((grid.scrollTop + grid.clientHeight) / height) + 6);
        /** @type {Map<number, HTMLElement>} */
        const next = new Map();
        for (let i = from; i < to; i++) next.set(i, live.get(i) ?? rowElement(i));
        for (const [i, element] of live) if (!next.has(i)) element.remove();
        for (const [i, element] of next) if (!live.has(i)) body.append(element);
        live = next;
        if (live.has(active)) grid.setAttribute('aria-activedescendant', 'tree-' + active);
        else grid.removeAttribute('aria-activedescendant');
    };
    /** Lists rows anew. The active row stays, or becomes that of what it is in. */
    const refresh = () => {
        rows = treeRows(root);
        const there = new Set(rows.map((row) => row.node));
        let at = wanted && shownNode(wanted);
        while (at?.parent && !there.has(at)) at = shownNode(at.parent);
        active = Math.max(0, rows.findIndex((row) => row.node === at));
        height = Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 1.625);
        body.style.height = rows.length * height + 'px';
        grid.setAttribute('aria-rowcount', String(rows.length + 1));
        fill(body);
        live = new Map();
        draw();
    };
    /** @param {number} i */
    const activate = (i) => {
        if (!rows.length) return;
        live.get(active)?.setAttribute('aria-selected', 'false');
        active = Math.max(0, Math.min(rows.length - 1, i));
        wanted = rows[active].node;
        const room = grid.clientHeight - 2 * height, top = active * height;
        if (top < grid.scrollTop) grid.scrollTop = top;
        else if (top > grid.scrollTop + room) grid.scrollTop = top - room;
        draw();
        live.get(active)?.setAttribute('aria-selected', 'true');
        tell.select(rows[active]);
    };
    /** @param {TreeNode} node @param {boolean} open */
    const setOpen = (node, open) => {
        node.open = open;
        refresh();
    };
    /** @param {TreeNode} node */
    const toggleFold = (node) => {
        const fold = node.fold ? node : node.parent;
        if (!fold?.fold) return false;
        fold.unfolded = !fold.unfolded;
        if (fold.unfolded) fold.open = true;
        refresh();
        activate(rows.findIndex((row) => row.node === fold));
        return true;
    };
    const parentRow = () => {
        let i = active;
        while (i > 0 && rows[i].depth >= rows[active].depth) i--;
        return i;
    };
    /** @param {string} key */
    const find = (key) => {
        typed = performance.now() - typedAt < 700 ? typed + key : key;
        typedAt = performance.now();
        const from = typed.length > 1 ? active : active + 1;
        for (let k = 0; k < rows.length; k++) {
            const i = (from + k) % rows.length;
            if (rows[i].node.label.toLowerCase().startsWith(typed.toLowerCase())) return i;
        }
        return active;
    };
    /** @param {KeyboardEvent} event @returns {boolean} whether the key was used */
    const press = (event) => {
        const row = rows[active], page = Math.max(1, Math.floor(grid.clientHeight / height) - 2);
        if (!row || event.ctrlKey || event.metaKey || event.altKey) return false;
        const { node } = row, fork = shownKids(node).length > 0;
        const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
        if (step) return activate(active + step), true;
        switch (event.key) {
        case 'ArrowRight': if (fork && !node.open) setOpen(node, true); else if (fork) activate(active + 1); break;
        case 'ArrowLeft': if (fork && node.open) setOpen(node, false); else if (row.depth) activate(parentRow()); break;
        case 'Enter': tell.zoom(node); break;
        case ' ': if (!toggleFold(node) && fork) setOpen(node, !node.open); break;
        case '*':
            for (const one of rows) if (one.depth === row.depth && one.node.parent === node.parent) one.node.open = shownKids(one.node).length > 0;
            refresh();
            break;
        default:
            if (event.key.length !== 1 || event.key === '/' || event.key === '?') return false;
            activate(find(event.key));
        }
        return true;
    };
    grid.addEventListener('keydown', (event) => { if (press(event)) event.preventDefault(); });
    grid.addEventListener('scroll', () => { frame ||= requestAnimationFrame(draw); }, { passive: true });
    body.addEventListener('click', (event) => {
        const target = /** @type {HTMLElement} */ (event.target);
        const i = Number(target.closest('[data-i]')?.getAttribute('data-i') ?? -1);
        if (i < 0) return;
        const { node } = rows[i];
        activate(i);
        if (target.hasAttribute('data-fold')) toggleFold(node);
        else if (shownKids(node).length) setOpen(node, !node.open);
    });
    body.addEventListener('mouseover', (event) => {
        const i = /** @type {HTMLElement} */ (event.target).closest('[data-i]')?.getAttribute('data-i');
        tell.hover(i ? rows[+i]?.node ?? null : null);
    });
    body.addEventListener('mouseleave', () => tell.hover(null));
    new ResizeObserver(() => { frame ||= requestAnimationFrame(draw); }).observe(grid);
    return {
        element: grid, refresh,
        current: () => rows[active],
        /** Opens what is above a node and makes its row the active one. @param {TreeNode} node */
        reveal(node) {
            const shown = shownNode(node);
            for (let at = shown.parent; at; at = at.parent) at.open = true;
            refresh();
            activate(rows.findIndex((row) => row.node === shown));
        },
        /** @param {TreeNode | null} node */
        light(node) {
            const shown = node && shownNode(node);
            for (const [i, element] of live) element.classList.toggle('lit', rows[i].node === shown);
        },
    };
}

/** "12.5 %". @param {number} share */
export function partText(share) {
    return share === 0 ? '0 %' : share < 0.001 ? '< 0.1 %' : (share * 100).toFixed(share < 0.9995 ? 1 : 0) + ' %';
}
