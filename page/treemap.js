// Tensors as areas: a squarified treemap, in step with the tree.
import { visible } from './text.js';
import { el } from './dom.js';
import { onPrefs } from './prefs.js';
import { TreeNode, isFolded } from './tree.js';


/** @typedef {{ node: TreeNode, x: number, y: number, width: number, height: number, head: number }} Box */

const HEAD = 16; // pixels of a group's heading
const TINY = 5; // what is narrower is not divided

/**
 * Rectangles of these areas, nearly square (Bruls, Huizing, van Wijk 2000), as [x, y, width, height].
 * @param {number[]} sizes positive, descending
 * @param {number} x @param {number} y @param {number} width @param {number} height
 */
export function squarify(sizes, x, y, width, height) {
    /** @type {[number, number, number, number][]} */
    const out = [];
    const scale = width * height / sizes.reduce((sum, size) => sum + size, 0);
    for (let i = 0, end = 0; i < sizes.length; i = end) {
        const side = Math.min(width, height);
        let sum = 0, worst = Infinity;
        for (end = i; end < sizes.length; end++) {
            const area = (sum + sizes[end]) * scale, square = side * side / (area * area) * scale;
            const ratio = Math.max(square * sizes[i], 1 / (square * sizes[end]));
            if (ratio > worst) break;
            worst = ratio;
            sum += sizes[end];
        }
        if (end === i) end = sizes.length; // no room left
        const thick = side > 0 ? Math.min(sum * scale / side, Math.max(width, height)) : 0;
        let along = 0;
        for (let k = i; k < end; k++) {
            const length = sum > 0 ? sizes[k] / sum * side : 0;
            out.push(width < height ? [x + along, y, length, thick] : [x, y + along, thick, length]);
            along += length;
        }
        if (width < height) { y += thick; height -= thick; } else { x += thick; width -= thick; }
    }
    return out;
}

/** Boxes of a node and what is in it, groups first. @param {TreeNode} top @param {number} width @param {number} height */
export function layTreemap(top, width, height) {
    /** @type {Box[]} */
    const boxes = [];
    /** @type {Box[]} */
    const work = [{ node: top, x: 0, y: 0, width, height, head: 0 }];
    for (let box; (box = work.pop());) {
        const { node } = box, edge = Math.min(box.width, box.height);
        const kids = edge < TINY ? [] : node.kids.filter((kid) => kid.bytes > 0).sort((a, b) => b.bytes - a.bytes);
        boxes.push(box);
        if (!kids.length) {
            box.head = -1;
            continue;
        }
        box.head = node !== top && box.height > 4 * HEAD && box.width > 60 ? HEAD : 0;
        const pad = node === top || edge < 24 ? 0 : 2;
        const rects = squarify(kids.map((kid) => kid.bytes), box.x + pad, box.y + (box.head || pad),
            box.width - 2 * pad, box.height - (box.head || pad) - pad);
        kids.forEach((kid, i) => {
            const [x, y, w, h] = rects[i];
            work.push({ node: kid, x, y, width: w, height: h, head: 0 });
        });
    }
    return boxes;
}

/**
 * @param {import('./tensors.js').Tensors} tensors
 * @param {TreeNode} root
 * @param {{ select: (node: TreeNode) => void, hover: (node: TreeNode | null) => void, zoom: (node: TreeNode) => void }} tell
 */
export function createTreemap(tensors, root, tell) {
    const base = el('canvas'), chosen = el('canvas'), lit = el('canvas');
    const swatches = el('span', { hidden: true }, [0, 1, 2, 3, 4, 5, 6, 7].map((hue) => el('i', { class: 'swatch', 'data-dtype': hue })));
    const element = el('div', { class: 'treemap', 'aria-hidden': 'true' }, base, chosen, lit, swatches);
    /** @type {Box[]} */
    let boxes = [];
    /** @type {Map<TreeNode, Box>} */
    let places = new Map();
    let top = root, hovered = /** @type {TreeNode[]} */ ([]), selected = hovered;

    /** @param {HTMLCanvasElement} canvas */
    const begin = (canvas) => {
        const ratio = devicePixelRatio || 1, width = element.clientWidth, height = element.clientHeight;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
        context.scale(ratio, ratio);
        context.clearRect(0, 0, width, height);
        context.textBaseline = 'middle';
        return context;
    };
    /** @param {CanvasRenderingContext2D} context @param {string} text @param {number} x @param {number} y @param {number} room */
    const write = (context, text, x, y, room) => {
        let shown = visible(text).slice(0, 80);
        if (context.measureText(shown).width > room) {
            const most = Math.floor(room / context.measureText('n').width) - 1;
            if (most < 3) return;
            shown = shown.slice(0, most) + '…';
        }
        context.fillText(shown, x, y);
    };
    const draw = () => {
        const context = begin(base), style = getComputedStyle(element);
        const fills = [...swatches.children].map((one) => getComputedStyle(one).backgroundColor);
        const font = style.fontFamily, text = style.color, back = style.backgroundColor, line = style.borderTopColor;
        for (const { node, x, y, width, height, head } of boxes) {
            if (head < 0) {
                context.fillStyle = fills[tensors.hues[node.main]];
                const gap = Math.min(width, height) > 3 ? 0.5 : 0;
                context.fillRect(x + gap, y + gap, width - 2 * gap, height - 2 * gap);
                if (width < 44 || height < 15) continue;
                context.fillStyle = '#fff';
                context.font = `11px ${font}`;
                write(context, node.label, x + 5, y + Math.min(height / 2, 10), width - 8);
            } else if (node !== top) {
                context.fillStyle = back;
                context.fillRect(x, y, width, height);
                context.strokeStyle = line;
                if (width > 24 && height > 24) context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
                if (!head) continue;
                context.fillStyle = text;
                context.font = `600 11px ${font}`;
                write(context, node.label + (node.fold ? ` ×${node.kids.length}` : ''), x + 5, y + HEAD / 2 + 1, width - 8);
            }
        }
        mark(lit, hovered, 1);
        mark(chosen, selected, 2);
    };
    /** Frames around nodes, or around what they are in if they have no area. @param {HTMLCanvasElement} canvas @param {TreeNode[]} nodes @param {number} width */
    const mark = (canvas, nodes, width) => {
        const context = begin(canvas), found = new Set();
        for (const one of nodes) {
            let at = /** @type {TreeNode | null} */ (one);
            while (at && !places.has(at)) at = at.parent;
            if (at && at !== top) found.add(places.get(at));
        }
        context.fillStyle = '#ffd034';
        for (const { x, y, width: w, height: h } of found) {
            if (Math.min(w, h) < 8) context.fillRect(x + 1, y + 1, w - 2, h - 2);
            else for (const [line, style] of /** @type {[number, string][]} */ ([[width + 2, '#fff'], [width, '#111']])) {
                context.lineWidth = line;
                context.strokeStyle = style;
                context.strokeRect(x + width / 2, y + width / 2, w - width, h - width);
            }
        }
    };
    const lay = () => {
        boxes = element.clientWidth ? layTreemap(top, element.clientWidth, element.clientHeight) : [];
        places = new Map(boxes.map((box) => [box.node, box]));
        draw();
    };
    /** @param {MouseEvent} event */
    const boxAt = (event) => {
        const { left, top: above } = base.getBoundingClientRect(), x = event.clientX - left, y = event.clientY - above;
        for (let i = boxes.length - 1; i >= 0; i--) {
            const box = boxes[i];
            if (x >= box.x && y >= box.y && x < box.x + box.width && y < box.y + box.height && box.node !== top) return box;
        }
        return null;
    };
    /** @param {TreeNode[]} nodes */
    const light = (nodes) => {
        if (nodes[0] === hovered[0] && nodes.length === hovered.length) return;
        hovered = nodes;
        mark(lit, nodes, 1);
    };
    element.addEventListener('mousemove', (event) => {
        const node = boxAt(event)?.node;
        if (node === hovered[0]) return;
        light(node ? [node] : []);
        tell.hover(node ?? null);
    });
    element.addEventListener('mouseleave', () => {
        light([]);
        tell.hover(null);
    });
    element.addEventListener('click', (event) => {
        const box = boxAt(event);
        if (box) tell.select(box.node);
    });
    element.addEventListener('dblclick', (event) => {
        let at = /** @type {TreeNode | null} */ (boxAt(event)?.node ?? null);
        while (at?.parent && at.parent !== top) at = at.parent;
        if (at?.kids.length) tell.zoom(at);
    });
    new ResizeObserver(lay).observe(element);
    onPrefs(draw);
    for (const media of ['(prefers-color-scheme: dark)', '(forced-colors: active)', '(prefers-contrast: more)'])
        matchMedia(media).addEventListener('change', draw);
    return {
        element, light,
        /** @param {TreeNode[]} nodes */
        choose(nodes) {
            selected = nodes;
            mark(chosen, nodes, 2);
        },
        /** Shows what is in a node; of a tensor, in its group. @param {TreeNode} node */
        zoom(node) {
            top = node;
            while (top.parent && !top.kids.length) top = top.parent;
            if (isFolded(top) && top.kids.every((kid) => !kid.kids.length) && top.parent) top = top.parent;
            hovered = [];
            lay();
            return top;
        },
    };
}
