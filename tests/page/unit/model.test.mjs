import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dtypeSums, matchTensors, numberText, openTensors, shapeText } from '../../../page/tensors.js';
import { buildTree, markHits, nodeName, openSome, nodesOf, partEnds, shownNode, treeRows } from '../../../page/tree.js';
import { divide, layTreemap } from '../../../page/treemap.js';
import { blockNorms, blockOf, leavesOf, meanSpectrum, sumHistograms } from '../../../page/statistics.js';

/** Columns of [name, dtype, shape, bytes] each. */
function pageOf(tensors, more = {}) {
    const dtypes = [...new Set(tensors.map((one) => one[1]))], shapes = [...new Set(tensors.map((one) => one[2]))];
    let before = '', offset = 0;
    const page = { count: tensors.length, dtypes, shapes, shared: [], rest: [], dtype: [], shape: [], bytes: [], offset: [], ...more };
    for (const [name, dtype, shape, bytes] of tensors) {
        let same = 0;
        while (same < Math.min(name.length, before.length) && name[same] === before[same]) same++;
        page.shared.push(same);
        page.rest.push(name.slice(same));
        page.dtype.push(dtypes.indexOf(dtype));
        page.shape.push(shapes.indexOf(shape));
        page.bytes.push(bytes);
        page.offset.push(offset);
        offset += bytes;
        before = name;
    }
    return page;
}
const treeOf = (tensors, more) => {
    const opened = openTensors(pageOf(tensors, more));
    return { opened, root: buildTree(opened) };
};
/** Rows as "  label ×times", everything open. */
const shown = (root) => {
    const open = (node) => { node.open = true; node.kids.forEach(open); };
    open(root);
    return treeRows(root).map(({ node, depth, times }) => '  '.repeat(depth) + node.label + (times > 1 ? ` ×${times}` : ''));
};
const layers = (count, extra = []) => [...Array(count).keys()].flatMap((i) => [
    [`m.layers.${i}.a.weight`, 'F16', '4,2', 16], [`m.layers.${i}.b.bias`, 'F32', '4', 16], [`m.layers.${i}.b.weight`, 'F16', '4,4', 32]]).concat(extra);

test('names are put together from what they share', () => {
    const { names, elements, parameters, bytes } = openTensors(pageOf([['a.😀b', 'F16', '2,3', 12], ['a.😀c', 'F16', '', 2], ['', 'F16', '0,7', 0]]));
    assert.deepEqual(names, ['a.😀b', 'a.😀c', '']);
    assert.deepEqual([...elements], [6, 1, 0]);
    assert.deepEqual([parameters, bytes], [7, 14]);
    assert.equal(shapeText('2,3'), '2 × 3');
    assert.equal(shapeText(''), 'scalar');
});

test('parts of names', () => {
    const parts = (name) => [...partEnds(name), name.length].map((end, i, ends) => name.slice(i ? ends[i - 1] + 1 : 0, end));
    assert.deepEqual(parts('a.b.c'), ['a', 'b', 'c']);
    assert.deepEqual(parts('unet/a.b:0'), ['unet', 'a', 'b', '0']);
    assert.deepEqual(parts('lora_unet_input_blocks_4_1_proj_in.lora_down.weight'),
        ['lora_unet', 'input_blocks', '4', '1', 'proj_in', 'lora_down', 'weight']);
    assert.deepEqual(parts('lora_te1_text_model_encoder_layers_11_mlp_fc1.alpha'), ['lora_te1', 'text_model_encoder_layers', '11', 'mlp_fc1', 'alpha']);
    assert.deepEqual(parts('layer_1_x.w'), ['layer_1_x', 'w']);
    assert.deepEqual(parts('..'), ['', '', '']);
    assert.equal(partEnds('x.'.repeat(9999)).length, 24);
});

test('names of strangers make no more groups than there is time for', () => {
    const { root } = treeOf([...Array(20000).keys()].map((i) => [`a${i}${'.b'.repeat(22)}.${i}`, 'F16', '', 2]));
    let groups = 0;
    const count = (node) => { groups += node.tensor < 0; node.kids.forEach(count); };
    count(root);
    assert.deepEqual([root.tensors, root.kids.length], [20000, 20000]);
    assert.ok(groups <= 3e5, String(groups));
});

test('equal layers are one row', () => {
    const { root } = treeOf(layers(3, [['m.norm', 'F32', '4', 16]]));
    assert.deepEqual(shown(root), ['m', '  layers.0–2 ×3', '    a.weight ×3', '    b ×3', '      bias ×3', '      weight ×3', '  norm']);
    assert.deepEqual([root.tensors, root.bytes, root.parameters], [10, 3 * 64 + 16, 3 * 28 + 4]);
    const fold = root.kids[0].kids[0];
    assert.deepEqual([fold.tensors, fold.bytes, fold.dtype, fold.kids.length], [9, 192, -1, 3]);
    fold.unfolded = true;
    assert.deepEqual(shown(root).slice(0, 5), ['m', '  layers.0–2', '    0', '      a.weight', '      b']);
});

test('what differs in form, number or contents is not folded', () => {
    assert.deepEqual(shown(treeOf([['l.0', 'F16', '4', 8], ['l.1', 'F16', '4', 8], ['l.2', 'F16', '5', 10], ['l.3', 'F32', '5', 20], ['l.5', 'F32', '5', 20],
        ['l.06', 'F32', '5', 20], ['l.7x', 'F32', '5', 20], ['l.8x', 'F32', '5', 20], ['l.9y', 'F32', '5', 20]]).root),
    ['l', '  0–1 ×2', '  2', '  3', '  5', '  06', '  7–8x ×2', '  9y']);
    assert.deepEqual(shown(treeOf([['l.0.a', 'F16', '', 2], ['l.1.a', 'F16', '', 2], ['l.1.b', 'F16', '', 2]]).root), ['l', '  0.a', '  1', '    a', '    b']);
    /* A name that is what others would be together. */
    assert.equal(shown(treeOf([['l.0.a', 'F16', '', 2], ['l.0.b', 'F16', '', 2], ['l.0.c', 'F16', '', 2], ['l.1.a\x000\nb', 'F16', '', 2], ['l.1.c', 'F16', '', 2]]).root).length, 8);
});

test('a tensor whose name is that of a group, and names without parts', () => {
    assert.deepEqual(shown(treeOf([['a', 'F16', '', 2], ['a.b', 'F16', '', 2], ['a.c', 'F32', '', 4], ['', 'F16', '', 2]]).root), ['', 'a', 'a', '  b', '  c']);
    assert.deepEqual(shown(treeOf([]).root), []);
    assert.deepEqual(shown(treeOf([['only', 'F16', '', 2]]).root), ['only']);
});

const moe = [...Array(3).keys()].flatMap((i) => [...Array(4).keys()].flatMap((k) => [
    [`l.${i}.e.${k}.down`, 'F16', '2', 4], [`l.${i}.e.${k}.up`, 'F16', '3', 6]]).concat([[`l.${i}.gate`, 'F32', '9', 36]]));

test('a row stands for the same place in all layers', () => {
    const { opened, root } = treeOf(moe);
    assert.deepEqual(shown(root), ['l.0–2 ×3', '  e.0–3 ×12', '    down ×12', '    up ×12', '  gate ×3']);
    const rows = treeRows(root), up = rows[3].node;
    assert.deepEqual([rows[3].outer, rows[3].outer * up.bytes, rows[1].outer * rows[1].node.bytes], [12, 72, 3 * 40]);
    assert.equal(shownNode(up), up);
    assert.deepEqual(nodesOf(up).map((one) => opened.names[one.tensor]), moe.map((one) => one[0]).filter((name) => name.endsWith('up')));
    assert.equal(nodeName(opened.names, up), 'l.{0–2}.e.{0–3}.up');
    assert.equal(nodeName(opened.names, rows[0].node), 'l.{0–2}');
    assert.equal(nodeName(opened.names, up, true), 'l.0.e.0.up');
    assert.equal(nodeName(opened.names, rows[1].node, true), 'l.0.e.{0–3}');
    assert.equal(nodeName(opened.names, root.kids[0].kids[2].kids[0]), 'l.2.e.{0–3}');
    assert.equal(nodeName(opened.names, root.kids[0].kids[2]), 'l.2');
    /* An area of the map in another layer selects that row. */
    const inside = root.kids[0].kids[2].kids[0].kids[3].kids[1];
    assert.equal(opened.names[inside.tensor], 'l.2.e.3.up');
    assert.equal(shownNode(inside), up);
    assert.equal(leavesOf(nodesOf(up)).length, 12);
    assert.equal(leavesOf(nodesOf(rows[1].node)).length, 0);
    root.kids[0].unfolded = true;
    assert.equal(nodeName(opened.names, shownNode(inside)), 'l.2.e.{0–3}.up');
    assert.equal(nodesOf(shownNode(inside)).length, 4);
    /* Layers inside of the first one are rows: so are those of another in their place. */
    root.kids[0].unfolded = false;
    root.kids[0].kids[0].kids[0].unfolded = true;
    assert.equal(opened.names[shownNode(inside).tensor], 'l.0.e.3.up');
    assert.equal(nodesOf(shownNode(inside)).length, 3);
});

test('layers that are tensors, in layers', () => {
    const { root } = treeOf(['0', '1', '2'].flatMap((i) => [[`l.${i}.0`, 'F16', '2', 4], [`l.${i}.1`, 'F16', '2', 4], [`l.${i}.x`, 'F16', '3', 6]]));
    assert.deepEqual(shown(root), ['l.0–2 ×3', '  0–1 ×6', '  x ×3']);
    assert.deepEqual(leavesOf(nodesOf(treeRows(root)[1].node)), [0, 1, 3, 4, 6, 7]);
});

test('a search keeps folds in which all layers have the same hits', () => {
    const { opened, root } = treeOf(moe);
    const search = (query) => {
        markHits(root, matchTensors(opened, query)?.hits ?? null);
        return treeRows(root).map(({ node, depth, times }) => '  '.repeat(depth) + node.label + (times > 1 ? ` ×${times}` : ''));
    };
    assert.deepEqual(search('up'), ['l.0–2 ×3', '  e.0–3 ×12', '    up ×12']);
    assert.deepEqual(search('l.1. gate'), ['l.0–2', '  1', '    gate']);
    assert.deepEqual(search('e.2.up'), ['l.0–2 ×3', '  e.0–3 ×3', '    2 ×3', '      up ×3']);
    assert.deepEqual(search('nothing'), []);
    assert.deepEqual(search(''), ['l.0–2 ×3'], 'what was closed is closed again');
});

test('words of a search', () => {
    const opened = openTensors(pageOf([['a.Weight', 'F16', '4,3,3', 72], ['a.bias', 'F32', '43', 172], ['b.weight', 'BF16', '', 2]],
        { files: ['x-1.st', 'x-2.st'], shard: [0, 1, 1], stats: { nan: [0, 2, 0], inf: [0, 0, 1] } }));
    const found = (query) => { const matched = matchTensors(opened, query); return matched && [...matched.hits].join(''); };
    assert.equal(found('  '), null);
    for (const [query, hits] of [['WEIGHT', '101'], ['a weight', '100'], ['-weight', '010'], ['dtype:f', '110'], ['dtype:BF16', '001'], ['-dtype:f16', '011'],
        ['shape:3', '100'], ['shape:4,3', '100'], ['shape:4x*x3', '100'], ['shape:3x4', '000'], ['shape:43', '010'], ['file:2', '011'], ['is:nan', '011'], ['is:x', '000'],
        ['shape:(.*)+', '000'], ['(', '000']])
        assert.equal(found(query), hits, query);
    assert.equal(matchTensors(opened, 'weight').count, 2);
});

test('natural order of names', () => {
    const { root } = treeOf([['x.b10', 'F16', '', 2], ['x.b9', 'F32', '', 4], ['y', 'F16', '9', 18]]);
    assert.deepEqual(shown(root), ['x', '  b9', '  b10', 'y']);
});

test('order by size, in each group', () => {
    const { root } = treeOf([['x.a', 'F16', '', 2], ['x.b', 'F32', '', 4], ['y', 'F16', '9', 18]]);
    shown(root);
    assert.deepEqual(treeRows(root, true).map(({ node }) => node.label), ['y', 'x', 'b', 'a']);
    assert.deepEqual(treeRows(root).map(({ node }) => node.label), ['x', 'a', 'b', 'y']);
});

test('some groups are open at first, the largest', () => {
    const { root } = treeOf(layers(3, [['z.a', 'F32', '2', 8], ['z.b', 'F32', '2', 8]]));
    openSome(root, 5);
    assert.deepEqual(treeRows(root).map(({ node }) => node.label), ['m.layers.0–2', 'a.weight', 'b', 'z']);
});

test('sums by dtype, and their colours', () => {
    const { opened } = treeOf(layers(2));
    assert.deepEqual(dtypeSums(opened).map(({ name, tensors, bytes }) => [name, tensors, bytes]), [['F16', 4, 96], ['F32', 2, 32]]);
    const { colours } = openTensors(pageOf([...Array(10).keys()].map((i) => [`t${i}`, `D${i}`, '', 1])));
    assert.deepEqual([new Set(colours).size, colours[8]], [8, colours[7]]);
});

test('areas fill their rectangle in proportion', () => {
    for (const sizes of [[6, 6, 4, 3, 2, 2, 1], [1], [5, 5], Array(1000).fill(1), [1e15, 1, 1e-3], [1e300, 1e300]]) {
        const total = sizes.reduce((sum, size) => sum + size, 0), rects = divide(sizes, 10, 20, 300, 200);
        assert.equal(rects.length, sizes.length);
        rects.forEach(([x, y, w, h], i) => {
            assert.ok(Math.abs(w * h - sizes[i] / total * 60000) < 1e-3, `${sizes.length}: ${w} × ${h}`);
            assert.ok(x >= 10 - 1e-6 && y >= 20 - 1e-6 && x + w <= 310 + 1e-6 && y + h <= 220 + 1e-6);
        });
    }
    const ratios = divide([6, 6, 4, 3, 2, 2, 1], 0, 0, 6, 4).map(([, , w, h]) => Math.max(w / h, h / w));
    assert.ok(Math.max(...ratios) < 3.2, 'nearly square');
});

test('the map: tensors inside of their groups, empty ones left out, few boxes', () => {
    const { root } = treeOf(layers(30, [['empty', 'F16', '0', 0]]));
    const boxes = layTreemap(root, 800, 600), places = new Map(boxes.map((box) => [box.node, box]));
    for (const { node, x, y, w, h } of boxes) {
        if (!node.parent) continue;
        const outer = places.get(node.parent);
        assert.ok(x >= outer.x - 1e-6 && y >= outer.y - 1e-6 && x + w <= outer.x + outer.w + 1e-6 && y + h <= outer.y + outer.h + 1e-6);
    }
    assert.equal(boxes.filter((box) => box.node.label === 'empty').length, 0);
    assert.equal(boxes.filter((box) => !box.node.kids.length).length, 90);
    const many = treeOf([...Array(20000).keys()].map((i) => [`g.${i}.${i % 7}`, 'F16', '2', 4])).root;
    assert.ok(layTreemap(many, 400, 300).length <= 20003);
    assert.deepEqual(layTreemap(treeOf([['a', 'F16', '0', 0]]).root, 10, 10).length, 1);
});

test('numbers and histograms', () => {
    assert.deepEqual(['NaN', null, undefined, 0, 12345, 0.00001234, 0.123456, 3.5e9, 1.5e20].map(numberText),
        ['NaN', '–', '–', '0', '12,345', '1.234e-5', '0.1235', '3,500,000,000', '1.5e+20']);
    assert.deepEqual(sumHistograms([[-3, 1, 2], [-4, 5], [], null]), [-4, [5, 1, 2]]);
    assert.deepEqual(sumHistograms([[]]), [0, []]);
    assert.deepEqual(sumHistograms(Array(200000).fill([2, 1])), [2, [200000]]);
});

test('norms by block', () => {
    assert.equal(blockOf('lora_unet_down_blocks_1_attentions_0_proj'), 'lora_unet_down_blocks_1');
    assert.equal(blockOf('transformer.single_blocks.10.linear'), 'transformer.single_blocks.10');
    assert.equal(blockOf('lm_head'), 'lm_head');
    const sums = blockNorms([{ module: 'a.10.x', norm: 1, rank: 4 }, { module: 'a.2.x', norm: 3, rank: 4 }, { module: 'a.2.y', norm: 4, rank: 4 }, { module: 'b', norm: 'NaN', rank: 4 }]);
    assert.deepEqual(sums.map(({ block, norm, end }) => [block, norm, end]), [['a.2', 5, '.'], ['a.10', 1, '.'], ['b', NaN, '']]);
    const [some] = blockNorms([{ module: 'a.1.x', rank: 4, norm: 1, spectrum: [100, 50] }, { module: 'a.1.y', rank: 16, spectrum: [100] }]);
    assert.deepEqual([some.count, some.low, some.high, some.isNormed, meanSpectrum(some.spectra)], [2, 4, 16, false, [100, 25]]);
});
