import assert from 'node:assert/strict';
import { test } from 'node:test';

import { joinedWords, civitaiUrl, hubUrl, kindWords, promptParts, withStrength, wordGroups } from '../../../page/detail.js';
import { addIds, factText, isGiven, labelOf, rangeText, sourceWords, stemOf, timeText, trustWord, valueText } from '../../../page/facts.js';
import { hashRows, permissionWords, shellWord } from '../../../page/files.js';
import { durationText, percentText } from '../../../page/training.js';

test('links are made from numbers and names of repositories only', () => {
    assert.equal(civitaiUrl({ model_id: 12, version_id: 34 }), 'https://civitai.com/models/12?modelVersionId=34');
    assert.equal(civitaiUrl({ model_id: 12, version_id: null }), 'https://civitai.com/models/12');
    for (const id of ['12', '12/../x', -1, 0, 1.5, NaN, null, undefined, {}, 2 ** 60]) assert.equal(civitaiUrl({ model_id: id }), '', String(id));
    assert.equal(civitaiUrl({ model_id: 12, version_id: '34&x' }), 'https://civitai.com/models/12');
    assert.equal(civitaiUrl(undefined), '');
    assert.equal(hubUrl('black-forest-labs/FLUX.1-dev'), 'https://huggingface.co/black-forest-labs/FLUX.1-dev');
    for (const repo of ['models/sd15.safetensors', '../x', 'a/..', 'a/b/c', 'a', 'a/b?c', 'a/b\n', 'a /b', '//evil.org', 'https://x.org/y', '\\\\a\\b', null, undefined])
        assert.equal(hubUrl(repo), '', String(repo));
});

test('strength of a LoRA in a prompt', () => {
    const line = '<lora:neon:0.8> neon city, <b>';
    assert.equal(withStrength(line, 1), '<lora:neon:1> neon city, <b>');
    assert.equal(withStrength(line, 0.65), '<lora:neon:0.65> neon city, <b>');
    assert.equal(withStrength(line, 0.1 + 0.2), '<lora:neon:0.3> neon city, <b>');
    assert.equal(withStrength(line, -1), '<lora:neon:-1> neon city, <b>');
    assert.equal(withStrength('<lora:$1&:1> x', 0.5), '<lora:$1&:0.5> x');
    assert.equal(withStrength('<lora:a:b:1> x', 0.5), '<lora:a:b:0.5> x');
    assert.equal(withStrength('embedding:neon', 0.5), 'embedding:neon');
});

test('parts of a prompt', () => {
    assert.deepEqual(promptParts('a, b ,, c'), ['a', 'b', 'c']);
    assert.deepEqual(promptParts('(worst quality, low quality:1.4), blurry'), ['(worst quality, low quality:1.4)', 'blurry']);
    assert.deepEqual(promptParts('watercolor \\(medium\\), x'), ['watercolor \\(medium\\)', 'x']);
    assert.deepEqual(promptParts('<style>guangying</style>'), ['<style>guangying</style>']);
    assert.deepEqual(promptParts(':), a'), [':)', 'a']);
    assert.deepEqual(promptParts(' , '), []);
});

const word = (prompt, more = {}) => ({ text: prompt, prompt, source: 'sidecar:m.civitai.info:/trainedWords/0', trust: 90, ...more });

test('trigger words by group', () => {
    const groups = wordGroups([word('mikumo, winter coat'), word('mikumo, yukata'), word('mikumo style'), word('<style>guangying</style>'),
        word('ink', { coverage: 1, folder: '10_m' }), word('soft, light', { coverage: .9, folder: '10_m' }), word('z', { source: 'header:modelspec.trigger_phrase' })], 'm');
    assert.deepEqual(groups.map((one) => [one.title, one.words.map((each) => each.text)]), [
        ['set 1', ['mikumo', 'winter coat']], ['set 2', ['mikumo', 'yukata']], ['civitai.info file', ['mikumo style', '<style>guangying</style>']],
        ['captions of 10_m', ['ink', 'soft, light']], ['header', ['z']]]);
    assert.equal(groups[3].words[1].share, .9);
});

test('all trigger words, each once; those of captions only if no others are known', () => {
    assert.equal(joinedWords({ trigger_words: [word('a, b'), word('a, c'), word('z', { coverage: 1 })] }), 'a, b, c');
    assert.equal(joinedWords({ trigger_words: [word('y', { coverage: 1 }), word('z', { coverage: 0 })] }), 'y, z');
    assert.equal(joinedWords({}), '');
});

test('words for kinds', () => {
    const kind = (value) => ({ kind: { value } });
    assert.equal(kindWords({ model: kind('adapter'), adapter: { type: 'lora', rank: { min: 4, max: 32, mode: 16 } } }), 'LoRA r16');
    assert.equal(kindWords({ model: kind('adapter'), adapter: { type: 'ia3', rank: null } }), 'IA3');
    assert.equal(kindWords({ model: kind('diffusion_model') }), 'diffusion model');
    assert.equal(kindWords({ model: {} }), 'unknown kind');
});

test('where facts come from', () => {
    const words = { 'header:ss_tag_frequency': 'header', 'sidecar:a.b.civitai.info:/model/name': 'civitai.info file', 'sidecar:sub/README.md': 'README.md',
        'sidecar:config.json:/a:/b': 'config.json', tensors: 'tensors', filename: 'file name', folder: 'folder name', 'online:civitai': 'CivitAI, online', hub: 'Hugging Face' };
    for (const [source, said] of Object.entries(words)) assert.equal(sourceWords(source, 'a.b'), said);
    assert.equal(stemOf({ path: 'x/y\\a.b.safetensors', model: {} }), 'a.b');
});

test('how far facts can be trusted', () => {
    assert.deepEqual([['tensors', 100], ['tensors', 60], ['header:a', 85], ['header:a', 40], ['sidecar:a', 10], ['filename', 20], ['filename', 85]].map(([source, trust]) => trustWord(source, trust)),
        ['measured', 'inferred', 'declared', 'uncertain', 'mismatched', 'guessed', 'by name']);
});

test('only ids are put into words', () => {
    assert.equal(factText('kind', 'diffusion_model'), 'diffusion model');
    assert.equal(factText('type', 'lokr'), 'LoKr');
    for (const [key, text] of [['name', 'mikumo_v2'], ['author', 'full'], ['repo', 'a_b/c_d'], ['base_model', 'sdxl_base_v1-0']]) assert.equal(factText(key, text), text);
    addIds([['sdxl', 'SDXL'], ['license', 'not a key']]);
    assert.equal(factText('architecture', 'sdxl'), 'SDXL');
    assert.equal(labelOf('license'), 'licence');
    assert.equal(factText('dtypes', { F16: { bytes: 2000 }, U8: { bytes: 5 } }), 'F16 2.00 KB, U8 5 B');
});

test('values as text', () => {
    assert.equal(valueText([1, 'a', true]), '1, a, yes');
    assert.equal(valueText({ conv_dim: '4', algo: null, dora: false, x: [1, 2] }), 'conv dim 4, x 1, 2');
    assert.equal(valueText(null) + valueText(undefined), '');
    assert.equal(rangeText({ min: 4, max: 32, mode: 16 }), '16 (4 to 32)');
    assert.equal(rangeText({ min: 4, max: 4, mode: 4 }), '4');
    assert.equal(rangeText({ min: 0.6, max: 1 }), '0.6 to 1');
    assert.equal(rangeText({ min: null, max: 1 }), 'at most 1');
    assert.equal(rangeText({ min: 0, max: null }), 'at least 0');
    assert.equal(timeText('2025-04-05T17:41:40Z'), '2025-04-05 17:41');
    assert.equal(timeText('2025-04') + timeText(null), '2025-04');
    assert.deepEqual([0, '', false, null, undefined, 'x'].map(isGiven), [true, false, false, false, false, true]);
    assert.deepEqual([20, 60, 3600, 4806].map(durationText), ['20 s', '1 min', '1 h', '1 h 20 min']);
    assert.deepEqual([0, 0.001, 0.5, 1].map(percentText), ['0 %', '<1 %', '50 %', '100 %']);
});

test('digests: verified, differing, computed, recorded', () => {
    const rows = hashRows({
        recorded: [{ algo: 'sha256', value: 'aa', source: 's' }, { algo: 'sha256', value: 'aa', source: 't' }, { algo: 'autov3', value: 'bb', source: 'h' },
            { algo: 'autov1', value: 'cc', source: 'h' }, { algo: 'autov1', value: 'cc', source: 'i' }],
        computed: { sha256: 'aa', autov3: 'b0', content: 'dd', autov1: null },
        mismatches: [{ algo: 'autov3', recorded: 'bb', computed: 'b0', source: 'h', known: null }],
    }).map(({ algo, value, state, source }) => [algo, value, state, source]);
    assert.deepEqual(rows, [['sha256', 'aa', 'verified', 's'], ['autov3', 'b0', 'computed', undefined], ['autov3', 'bb', 'differs', 'h'],
        ['autov1', 'cc', 'recorded', 'h'], ['content', 'dd', 'computed', undefined]]);
    assert.deepEqual(hashRows(undefined), []);
    assert.equal(hashRows({ computed: { autov3: 'b' }, mismatches: [{ algo: 'autov3', recorded: 'a', known: 'LyCORIS module order' }] })[1].state, 'differs, harmless');
});

test('permissions in words', () => {
    assert.deepEqual(permissionWords({ credit: true, commercial: ['Image', 'RentCivit'], derivatives: false, relicense: null }),
        ['credit is required', 'commercial use: selling pictures, generation on CivitAI', 'merges may not be shared']);
    assert.deepEqual(permissionWords({ commercial: ['None'] }), ['no commercial use']);
    assert.deepEqual(permissionWords(undefined), []);
});

test('paths in commands cannot run anything', () => {
    assert.equal(shellWord('loras/a_b-1.0+x.safetensors'), 'loras/a_b-1.0+x.safetensors');
    assert.equal(shellWord('a b.safetensors'), "'a b.safetensors'");
    assert.equal(shellWord("it's; $(rm -rf ~) `x`"), "'it'\\''s; $(rm -rf ~) `x`'");
    assert.equal(shellWord('-rf'), './-rf');
    assert.equal(shellWord(''), "''");
});

test('names of properties are no labels, digests or sources', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
        assert.equal(sourceWords(name, ''), name);
        assert.deepEqual(hashRows({ recorded: [{ algo: name, value: 'ab', source: 'x' }] }).map((row) => [row.algo, row.value, row.state]), [[name, 'ab', 'recorded']]);
        assert.deepEqual(permissionWords({ commercial: [name] }), ['no commercial use']);
    }
});
