// Tensors as areas: a treemap, in step with the tree.
import { visible } from './text.js';
import { el } from './dom.js';
import { onPrefs } from './prefs.js';
import { total } from './tensors.js';
import { TreeNode, shownKids } from './tree.js';

/** @typedef {{ node: TreeNode, x: number, y: number, w: number, h: number, head: number }} Box head: pixels of its heading; -1: no group */

const HEAD = 16;
/* Pixels; what is narrower is not divided. */
const TINY = 5;

/**
 * Rectangles of these areas, as [x, y, width, height]: halves of halves, across the longer side.
 * @param {number[]} sizes positive
 * @param {number} x @param {number} y @param {number} w @param {number} h
 * @returns {[number, number, number, number][]}
 */
export function divide(sizes, x, y, w, h) {
    if (sizes.length < 2) return sizes.map(() => [x, y, w, h]);
    const all = total(sizes);
    let [sum] = sizes, at = 1;
    while (at < sizes.length - 1 && sum + sizes[at] / 2 < all / 2) sum += sizes[at++];
    const first = sizes.slice(0, at), rest = sizes.slice(at), wide = w * sum / all, high = h * sum / all;
    return w > h ? [...divide(first, x, y, wide, h), ...divide(rest, x + wide, y, w - wide, h)]
        : [...divide(first, x, y, w, high), ...divide(rest, x, y + high, w, h - high)];
}

/** Boxes of a node and what is in it, groups first. @param {TreeNode} top @param {number} width @param {number} height */
export function layTreemap(top, width, height) {
    /** @type {Box[]} */
    const boxes = [{ node: top, x: 0, y: 0, w: width, h: height, head: 0 }];
    for (const box of boxes) {
        const { node, x, y, w, h } = box, edge = Math.min(w, h);
        const kids = edge < TINY ? [] : node.kids.filter((kid) => kid.bytes > 0).sort((a, b) => b.bytes - a.bytes);
        const pad = node === top || edge < 24 ? 0 : 2;
        box.head = !kids.length ? -1 : node !== top && h > 4 * HEAD && w > 40 ? HEAD : 0;
        const above = box.head || pad;
        divide(kids.map((kid) => kid.bytes), x + pad, y + above, w - 2 * pad, h - above - pad).forEach(([x, y, w, h], i) => boxes.push({ node: kids[i], x, y, w, h, head: 0 }));
    }
    return boxes;
}

/**
 * @param {import('./tensors.js').Tensors} tensors
 * @param {TreeNode} root
 * @param {{ select: (node: TreeNode) => void, hover: (node?: TreeNode) => void, zoom: (node: TreeNode) => void }} tell
 */
export function createTreemap(tensors, root, tell) {
    const base = el('canvas'), frames = el('canvas'), element = el('div.treemap', { 'aria-hidden': 'true' }, base, frames);
    /** @type {Box[]} */
    let boxes = [];
    /** @type {Map<TreeNode | null, Box>} */
    let places = new Map();
    let top = root, hovered = /** @type {TreeNode[]} */ ([]), selected = /** @type {TreeNode[]} */ ([]);

    /** @param {HTMLCanvasElement} canvas */
    const begin = (canvas) => {
        const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
        canvas.width = element.clientWidth * devicePixelRatio;
        canvas.height = element.clientHeight * devicePixelRatio;
        context.scale(devicePixelRatio, devicePixelRatio);
        return context;
    };
    const draw = () => {
        const context = begin(base), { fontFamily, color, backgroundColor, borderTopColor } = getComputedStyle(element);
        context.textBaseline = 'middle';
        context.strokeStyle = borderTopColor;
        for (const { node, x, y, w, h, head } of boxes) {
            if (node === top && head >= 0) continue;
            const isGroup = head >= 0, gap = isGroup || Math.min(w, h) <= 3 ? 0 : 0.5;
            context.fillStyle = isGroup ? backgroundColor : tensors.colours[node.main];
            context.fillRect(x + gap, y + gap, w - 2 * gap, h - 2 * gap);
            if (isGroup && Math.min(w, h) > 24) context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
            /* Characters that fit, of about 6.5 pixels. */
            const most = Math.floor((w - 8) / 6.5), label = visible(node.label) + (node.fold ? ` ×${node.kids.length}` : '');
            if (isGroup ? !head : w < 44 || h < 15) continue;
            context.fillStyle = isGroup ? color : '#fff';
            context.font = `${isGroup ? '600 ' : ''}11px ${fontFamily}`;
            context.fillText(label.length > most ? label.slice(0, most - 1) + '…' : label, x + 5, y + (isGroup ? HEAD / 2 + 1 : Math.min(h / 2, 10)), w - 8);
        }
        mark();
    };
    /** Frames around nodes, or around what they are in if they have no area. */
    const mark = () => {
        const context = begin(frames);
        context.fillStyle = '#ffd034';
        for (const [nodes, width] of /** @type {[TreeNode[], number][]} */ ([[selected, 2], [hovered, 1]])) {
            const found = new Set(nodes.map((one) => {
                let at = /** @type {TreeNode | null} */ (one);
                while (at && !places.has(at)) at = at.parent;
                return places.get(at);
            }));
            for (const box of found) {
                if (!box || box.node === top) continue;
                const { x, y, w, h } = box;
                if (Math.min(w, h) < 8) context.fillRect(x + 1, y + 1, w - 2, h - 2);
                else for (const line of [width + 2, width]) {
                    context.lineWidth = line;
                    context.strokeStyle = line > width ? '#fff' : '#111';
                    context.strokeRect(x + width / 2, y + width / 2, w - width, h - width);
                }
            }
        }
    };
    const lay = () => {
        boxes = element.clientWidth ? layTreemap(top, element.clientWidth, element.clientHeight) : [];
        places = new Map(boxes.map((box) => [box.node, box]));
        draw();
    };
    /** @param {MouseEvent} event */
    const nodeUnder = ({ clientX, clientY }) => {
        const { left, top: above } = base.getBoundingClientRect(), px = clientX - left, py = clientY - above;
        let found;
        for (const { node, x, y, w, h } of boxes) if (node !== top && px >= x && py >= y && px < x + w && py < y + h) found = node;
        return found;
    };
    /** @param {TreeNode[]} nodes */
    const point = (nodes) => {
        if (nodes.length === hovered.length && nodes[0] === hovered[0]) return;
        hovered = nodes;
        mark();
    };
    /** @param {TreeNode} [node] */
    const hover = (node) => {
        if (node === hovered[0]) return;
        point(node ? [node] : []);
        tell.hover(node);
    };
    element.addEventListener('mousemove', (event) => hover(nodeUnder(event)));
    element.addEventListener('mouseleave', () => hover());
    for (const [type, run] of /** @type {const} */ ([['click', tell.select], ['dblclick', tell.zoom]]))
        element.addEventListener(type, (event) => {
            const node = nodeUnder(event);
            if (node) run(node);
        });
    new ResizeObserver(lay).observe(element);
    onPrefs(draw);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
    return {
        element, point,
        /** @param {TreeNode[]} nodes */
        choose(nodes) {
            selected = nodes;
            mark();
        },
        /** Shows what is in a node; of a tensor, in its group. @param {TreeNode} node */
        zoom(node) {
            top = node;
            while (top.parent && !shownKids(top).length) top = top.parent;
            hovered = [];
            lay();
            return top;
        },
    };
}
