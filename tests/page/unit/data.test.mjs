import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openCatalog } from '../../../page/data.js';
import { blocksOf, catalogOf } from './rows.mjs';

test('facts and sources are spelled out, and * stands for the stem', () => {
    const info = { path: 'models/loras/a.b.safetensors', model: { name: ['A', 0, 85, [['a', 1, 45]]], precision: 'fp16', tags: [['x', 'y'], 0, 85],
        components: [{ part: 'unet' }] }, trigger_words: [{ text: 'w', prompt: 'w', source: 1, trust: 5 }],
    training: { text_encoder_lr: [0.1, 1, 2] }, conflicts: [{ field: 'base_model', candidates: [{ value: 'x', source: 0, trust: 1 }] }] };
    const catalog = catalogOf([{ file: 'a.b.safetensors', folder: 1 }], [info], ['sidecar:*.json:/name', 'filename']);
    const more = catalog.more(0);
    assert.deepEqual(more.model.name, { value: 'A', source: 'sidecar:a.b.json:/name', trust: 85, others: [{ value: 'a', source: 'filename', trust: 45 }] });
    assert.deepEqual(more.model.tags, { value: ['x', 'y'], source: 'sidecar:a.b.json:/name', trust: 85, others: [] });
    assert.deepEqual(more.model.components, [{ part: 'unet' }]);
    assert.equal(more.model.precision, 'fp16');
    assert.equal(more.trigger_words[0].source, 'filename');
    assert.deepEqual(more.training.text_encoder_lr, [0.1, 1, 2]);
    assert.equal(more.conflicts[0].candidates[0].source, 'sidecar:a.b.json:/name');
    assert.equal(catalog.path(0), 'loras/a.b.safetensors');
    assert.equal(catalog.find('loras/a.b.safetensors'), 0);
    assert.equal(catalog.find('loras/none'), -1);
});

test('packed details are unpacked: shapes, lists, shared texts and lists, texts that begin with ~', () => {
    const part = { sources: ['tensors'], shapes: [['path', 'model', 'words', 'keys', 'pictures'], ['name', 'tags'], ['text', '__proto__']],
        shared: ['neon city', [-1, 'ss_a', '~~b'], '~~0'],
        models: [[0, '~0', [1, [-1, '~2', 0, 85, [-1, [-1, 'x', 0, 1]]], [-1, [-1, '~~', 'b'], 0, 5]], [-1, [2, '~0', 1]], '~1', [-1, { href: '~0.png' }]]] };
    const catalog = openCatalog((id) => ({ ...blocksOf([{}]), 'more-0': JSON.stringify(part) })[id] ?? null);
    const info = /** @type {any} */ (catalog.more(0));
    assert.equal(info.path, 'neon city');
    assert.deepEqual(info.model.name, { value: '~0', source: 'tensors', trust: 85, others: [{ value: 'x', source: 'tensors', trust: 1 }] });
    assert.deepEqual(info.model.tags.value, ['~', 'b']);
    assert.equal(info.words[0].text, 'neon city');
    assert.deepEqual(info.keys, ['ss_a', '~b']);
    assert.deepEqual(info.pictures, [{ href: '~0.png' }]);
});

test('a stem with $ signs is taken as it is', () => {
    const catalog = catalogOf([{ file: "a$&$'.safetensors" }], [{ model: { name: ['A', 0, 1] } }], ['sidecar:*.json']);
    assert.equal(catalog.more(0).model.name.source, "sidecar:a$&$'.json");
});

test('the same words of a row are a number of the row that has them', () => {
    const catalog = catalogOf([{ what: 'LoRA r16' }, { what: 0 }, { what: 0 }]);
    assert.deepEqual([...catalog.rows.what], ['LoRA r16', 'LoRA r16', 'LoRA r16']);
});

test('embedded pictures are found by their number', () => {
    const blocks = { ...blocksOf([{}]), 'embed-17': JSON.stringify('data:image/png;base64,BB==') };
    const catalog = openCatalog((id) => blocks[id] ?? null);
    assert.equal(catalog.picture({ href: 17 }), 'data:image/png;base64,BB==');
    assert.equal(catalog.picture({ href: 18 }), '');
    assert.equal(catalog.picture({ href: 'a.png' }), 'a.png');
});

test('details that are missing or cut off are said to be', () => {
    const blocks = blocksOf([{ name: 'x' }, {}, {}], undefined, [], { error: { 2: 'file is truncated' } });
    blocks['more-0'] = '{"sources":[],"mod';
    const catalog = openCatalog((id) => blocks[id] ?? null);
    assert.match(catalog.more(0).error.message, /missing/);
    assert.equal(catalog.more(2).error.message, 'file is truncated');
});

test('damaged rows are told from a page without models', () => {
    assert.equal(catalogOf([]).count, 0);
    for (const text of [null, '', '{', '{}', '{"format":2}', '{"format":1,"count":-1}', '{"format":1,"count":1,"name":[]}', 'null', '[]'])
        assert.throws(() => openCatalog(() => text), /damaged/, String(text));
});

test('keys of strangers are kept, whatever objects have by themselves', () => {
    const text = '{"model":{},"training":{"network_args":{"__proto__":"x","constructor":"y"}}}';
    const catalog = catalogOf([{}], [JSON.parse(text)]);
    const args = catalog.more(0).training.network_args;
    assert.deepEqual(Object.entries(args), [['__proto__', 'x'], ['constructor', 'y']]);
    assert.equal(Object.getPrototypeOf(args), Object.prototype);
});
