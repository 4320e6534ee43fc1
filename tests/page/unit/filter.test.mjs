import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyFilters, choiceOf, choose, makeFacets, noFilters, TRAITS } from '../../../page/filter.js';
import { sorted, sortKey } from '../../../page/sort.js';
import { emptyState, formatState, parseState } from '../../../page/state.js';
import { catalogOf } from './rows.mjs';

const catalog = catalogOf([
    { name: 'b10', folder: 1, kind: 0, base: 0, tags: [0], bytes: 5e6, date: '2024-05-01', rank: 8, word_count: 1, words: ['x'], flags: 2 },
    { name: '[a] 2', folder: 2, kind: 0, base: 1, tags: [0, 1], bytes: 3e8, date: '2025-01-01', rank: 32, preview: { href: 'a.png' }, flags: 1 },
    { name: 'B9', folder: 3, kind: 1, base: 0, tags: [1, 2], bytes: 6e9, copies: 4, flags: 16 },
    { name: 'éa 1', folder: 0, tags: [] },
]);
const facets = makeFacets(catalog);
const facet = (key) => facets.list.find((one) => one.key === key);
const all = new Uint8Array(4).fill(1);
const choices = ({ only = {}, not = {}, all = false }) => ({ all, choices: [[only, true], [not, false]].flatMap(([lists, wanted]) =>
    Object.entries(lists).flatMap(([key, ids]) => ids.map((id) => [key, id, wanted]))) });
const shown = (filters, found = all) => [...applyFilters(facets, choices(filters), found).mask].flatMap((one, i) => one ? [i] : []);

test('choices of a facet are alternatives, facets go together', () => {
    assert.deepEqual(shown({}), [0, 1, 2, 3]);
    assert.deepEqual(shown({ only: { kind: ['adapter'] } }), [0, 1]);
    assert.deepEqual(shown({ only: { kind: ['adapter', 'checkpoint'] } }), [0, 1, 2]);
    assert.deepEqual(shown({ only: { kind: ['adapter'], base: ['Pony'] } }), [0]);
    assert.deepEqual(shown({ only: { kind: ['?'] } }), [3]);
    assert.deepEqual(shown({ only: { size: ['10MB'] } }), [0]);
    assert.deepEqual(shown({ only: { year: ['2025'] } }), [1]);
});

test('a folder stands for all below it', () => {
    assert.deepEqual(shown({ only: { folder: ['loras'] } }), [0, 1]);
    assert.deepEqual(shown({ only: { folder: ['loras/styles'] } }), [1]);
    assert.deepEqual(shown({ only: { folder: ['loras #2'] } }), [2]);
    assert.deepEqual(shown({ only: { folder: ['nowhere'] } }), []);
});

test('tags: any, all, without', () => {
    assert.deepEqual(shown({ only: { tag: ['style', 'nsfw'] } }), [0, 1, 2]);
    assert.deepEqual(shown({ only: { tag: ['style', 'woman'] }, all: true }), [1]);
    assert.deepEqual(shown({ not: { tag: ['woman'] } }), [0, 3]);
    assert.deepEqual(shown({ only: { tag: ['style'] }, not: { tag: ['woman'] } }), [0]);
});

test('traits: must be so, or must not', () => {
    assert.deepEqual(shown({ only: { is: ['words'] } }), [0]);
    assert.deepEqual(shown({ not: { is: ['words'] } }), [1, 2, 3]);
    assert.deepEqual(shown({ only: { is: ['preview'] } }), [1]);
    assert.deepEqual(shown({ only: { is: ['copies'] } }), [2]);
    assert.deepEqual(shown({ only: { is: ['conflicts'] } }), [1]);
    assert.deepEqual(shown({ only: { is: ['broken'] } }), [2]);
    assert.deepEqual(shown({ only: { is: ['hashed', 'words'] } }), [0]);
});

test('counts of a facet leave its own choice out, and no other', () => {
    const counts = applyFilters(facets, choices({ only: { kind: ['adapter'] } }), all);
    assert.deepEqual([...counts.only.kind], [2, 1, 1]);
    assert.deepEqual([...counts.only.base], [1, 1, 0]);
    assert.equal(counts.total, 2);
    const folder = Object.fromEntries(facet('folder').ids.map((path, i) => [path, counts.only.folder[i]]));
    assert.deepEqual(folder, { '': 0, loras: 2, 'loras/styles': 1, 'loras #2': 0 });
    assert.deepEqual([...counts.only.tag], [2, 1, 0]);
    assert.equal(counts.only.is[Object.keys(TRAITS).indexOf('conflicts')], 1);
});

test('every count is what its choice shows', () => {
    const base = { only: { kind: ['adapter'], tag: ['style'] } };
    const counts = applyFilters(facets, choices(base), all);
    for (const { key, ids } of facets.list)
        ids.forEach((id, k) => assert.equal(shown({ only: { ...base.only, [key]: [id] } }).length, counts.only[key][k], `${key} ${id}`));
});

test('what cannot be read counts as unknown, where the data has an id for that', () => {
    const dict = { ...JSON.parse(JSON.stringify(catalog.rows.dict)), kind: [['unknown', 'unknown kind'], ['adapter', 'adapter']] };
    const made = makeFacets(catalogOf([{ kind: 0 }, { kind: 1 }, { flags: 16 }], undefined, undefined, { dict }));
    const counts = applyFilters(made, choices({ only: { kind: ['unknown'] } }), new Uint8Array(3).fill(1));
    assert.deepEqual([[...counts.mask], [...counts.only.kind]], [[1, 0, 1], [2, 1, 0]]);
});

test('a choice is wanted, not wanted or neither', () => {
    let filters = noFilters();
    for (const wanted of [true, false, undefined]) {
        filters = choose(filters, 'tag', 'style', wanted);
        assert.equal(choiceOf(filters, 'tag', 'style'), wanted);
        assert.equal(filters.choices.length, wanted === undefined ? 0 : 1);
    }
    assert.deepEqual(filters, noFilters());
});

test('orders: natural, punctuation and accents apart, unknown last both ways', () => {
    const order = (key, reverse) => [...sorted(catalog, all, key, reverse)];
    assert.deepEqual(order('name', false), [1, 2, 0, 3]);
    assert.deepEqual(order('name', true), [3, 0, 2, 1]);
    assert.deepEqual(order('size', false), [0, 1, 2, 3]);
    assert.deepEqual(order('size', true), [2, 1, 0, 3]);
    assert.deepEqual(order('date', true), [1, 0, 2, 3]);
    assert.deepEqual(order('rank', true), [1, 0, 2, 3]);
    assert.deepEqual([...sorted(catalog, Uint8Array.from([0, 1, 0, 1]), 'path', false)], [1, 3]);
    const copies = catalogOf([{ copies: 5 }, {}, { copies: 0 }, { copies: 5 }, { copies: 0 }]);
    assert.deepEqual([...sorted(copies, new Uint8Array(5).fill(1), 'copies', false)], [2, 4, 0, 3, 1]);
    assert.ok(sortKey('v2') < sortKey('v10'));
    assert.equal(sortKey('[Éa] 007'), sortKey('ea 7'));
    assert.ok(sortKey('!!!').length > 0);
});

test('the fragment keeps the whole state', () => {
    const state = { ...emptyState(), q: 'a b "c d" -e & # % é', order: 'size', reverse: true, open: 'loras/a #1?.safetensors',
        filters: choices({ only: { kind: ['adapter', '?'], base: ['SD 1.5'], folder: ['', 'x/y'], tag: ['a,b', 'c&d'], is: ['words'] }, all: true,
            not: { tag: ['<b>'], is: ['preview'] } }) };
    assert.deepEqual(parseState(formatState(state)), state);
    assert.equal(formatState(emptyState()), '');
    assert.deepEqual(parseState(''), emptyState());
});

test('a fragment that makes no sense is no state', () => {
    for (const text of ['#', '#=', '#&&&', '#q', '#sort=evil', '#sort=__proto__', '#is=constructor', '#is=-', '#%', '#%zz', '#x=1', '#'.repeat(50), '#q=' + 'x'.repeat(99999)])
        assert.deepEqual(parseState(text), emptyState(), text.slice(0, 40));
    assert.equal(parseState('#' + 'tag=a&'.repeat(500)).filters.choices.length, 1);
    assert.deepEqual(parseState('#tag=a&-tag=a').filters.choices, [['tag', 'a', false]]);
});
