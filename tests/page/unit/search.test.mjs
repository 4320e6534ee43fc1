import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addDetails, makeHaystack, namedFirst, parseQuery, search } from '../../../page/search.js';
import { catalogOf } from './rows.mjs';

const catalog = catalogOf([
    { name: 'Watercolor Style', file: 'wtrclr.safetensors', folder: 2, kind: 0, base: 0, words: ['wtrclr style'], word_count: 1, tags: [0], hash: 'abcdef012345 99aabbccddee', author: 0 },
    { name: 'Portrait of a Woman', file: 'portrait_v2.safetensors', folder: 3, kind: 1, base: 1, tags: [1, 2], words: ['<style>guangying</style>'], word_count: 5 },
    { name: 'Éclair ＸＬ', file: 'x.safetensors', kind: 0, licence: 0 },
], [
    { model: { description: ['Soft light and PAPER grain', 0, 85] } },
    { model: {}, trigger_words: [{ text: 'fifth (word)', prompt: 'fifth \\(word\\)', source: 0, trust: 1 }, {}].map((one) => ({ text: '', prompt: '', ...one })) },
    { model: {}, frequent_tags: [{ tag: 'cake', count: 3 }] },
], ['x']);
const haystack = makeHaystack(catalog);
const found = (query) => [...search(haystack, parseQuery(query))].flatMap((hit, i) => hit ? [i] : []);

test('all words must be there, in any order and field', () => {
    assert.deepEqual(found(''), [0, 1, 2]);
    assert.deepEqual(found('style watercolor'), [0]);
    assert.deepEqual(found('style'), [0, 1]);
    assert.deepEqual(found('style nothing'), []);
});

test('-word excludes, "phrases" keep their order', () => {
    assert.deepEqual(found('style -watercolor'), [1]);
    assert.deepEqual(found('-style'), [2]);
    assert.deepEqual(found('"style watercolor"'), []);
    assert.deepEqual(found('"watercolor style"'), [0]);
    assert.deepEqual(found('-"watercolor style"'), [1, 2]);
    assert.deepEqual(found('"unclosed phra'), []);
});

test('fields: base:, word:, tag:, folder:, hash:, name:, by:', () => {
    assert.deepEqual(found('base:pony'), [0]);
    assert.deepEqual(found('base:"stable diffusion"'), [1]);
    assert.deepEqual(found('-base:pony'), [1, 2]);
    assert.deepEqual(found('word:wtrclr'), [0]);
    assert.deepEqual(found('word:woman'), []);
    assert.deepEqual(found('tag:nsfw'), [1]);
    assert.deepEqual(found('folder:styles'), [0]);
    assert.deepEqual(found('name:portrait_v2'), [1]);
    assert.deepEqual(found('by:renard'), [0]);
    assert.deepEqual(found('license:mit'), [2]);
    assert.deepEqual(found('kind:lora'), [0, 2]);
});

test('a hash is found by its beginning, whole ones too', () => {
    assert.deepEqual(found('hash:abcd'), [0]);
    assert.deepEqual(found('hash:bcde'), []);
    assert.deepEqual(found('99aabb'), [0]);
    assert.deepEqual(found('ABCDEF012345' + '0'.repeat(52)), [0]);
});

test('case, width and compatibility forms do not matter', () => {
    assert.deepEqual(found('éclair xl'), [2]);
    assert.deepEqual(found('ÉCLAIR'), [2]);
});

test('markup, names of properties and operators that are none are text', () => {
    assert.deepEqual(found('<style>guangying'), [1]);
    for (const word of ['__proto__', 'constructor:x', 'toString', 'x:y', ':', '-', '--', '"', '"":"', 'hasOwnProperty:1', '(', '[', '\\', '*'])
        assert.ok(Array.isArray(found(word)), word);
    assert.deepEqual(found('constructor:x'), []);
});

test('details join the haystack step by step', () => {
    const late = makeHaystack(catalog);
    const query = parseQuery('paper grain');
    assert.equal(search(late, query)[0], 0);
    assert.equal(addDetails(late, 1), false);
    assert.equal(search(late, query)[0], 1);
    assert.equal(addDetails(late, 5), true);
    assert.equal(search(late, parseQuery('cake'))[2], 1);
    assert.equal(search(late, parseQuery('"fifth (word)"'))[1], 1);
});

test('models that are called so come first, the rest keeps its order', () => {
    const first = (query) => [...namedFirst(haystack, parseQuery(query), Uint32Array.of(1, 2, 0))];
    assert.deepEqual(first('style'), [0, 1, 2]);
    assert.deepEqual(first('style wtrclr'), [0, 1, 2], 'name and file name');
    assert.deepEqual(first('style pony'), [1, 2, 0], 'all words');
    assert.deepEqual(first('style -pony base:x'), [0, 1, 2], 'only words to find');
    assert.deepEqual(first('base:pony'), [1, 2, 0]);
    assert.deepEqual(first('lora'), [1, 2, 0], 'what it is does not count');
});
