import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cleanedWords } from '../../../page/copy.js';
import { clean, visible } from '../../../page/text.js';

test('a trigger word that looks like markup is copied as it is', () => {
    for (const word of ['<style>guangying</style>', 'fym <artist>', '\\(style\\)', "it's \"q\" & <b>", '</script><script>x'])
        assert.equal(clean(word), word);
});

test('controls and line breaks do not reach the clipboard', () => {
    assert.equal(clean('rm -rf ~\nnext\r\nlast'), 'rm -rf ~ next last');
    assert.equal(clean('a\u0000b\u001b[31mc\u007f\u0085d'), 'ab[31mc d');
    assert.equal(clean('\u202eabc\u202c \u2066x\u2069\u200e\u200f\ufeff'), 'abc x');
    assert.equal(clean('a\u2028b\u2029c'), 'a b c');
});

test('what was changed is said', () => {
    assert.equal(cleanedWords('a b', clean('a b')), '');
    assert.equal(cleanedWords('a\n\nb', clean('a\n\nb')), 'line breaks became spaces');
    assert.equal(cleanedWords('a\u202eb', clean('a\u202eb')), 'without its control characters');
    assert.equal(cleanedWords('a\ufeff\nb', clean('a\ufeff\nb')), 'without its control characters');
});

test('what cannot be seen is shown as escapes', () => {
    assert.equal(visible('a\u202eb\u200bc\u0000'), 'a\\u{202e}b\\u{200b}c\\u{0}');
    assert.equal(visible('tag\u{e0041}'), 'tag\\u{e0041}');
    assert.equal(visible('a\u034fb\u0600c\u{13430}d\u180f'), 'a\\u{34f}b\\u{600}c\\u{13430}d\\u{180f}');
    assert.equal(visible('tab\tline\n'), 'tab\tline\n');
    assert.equal(visible('<style>guangying</style>'), '<style>guangying</style>');
    assert.equal(visible('👩‍🎤 ❤️'), '👩‍🎤 ❤️');
    assert.equal(visible('a\ufe0fb'), 'a\\u{fe0f}b');
    assert.equal(visible('❤a\ufe0f v1\ufe0f 1\u200d2 ❤\u200d'), '❤a\\u{fe0f} v1\\u{fe0f} 1\\u{200d}2 ❤\\u{200d}');
    assert.equal(visible('1\ufe0f\u20e3 👩🏽‍🚀 🏳️‍🌈'), '1\ufe0f\u20e3 👩🏽‍🚀 🏳️‍🌈');
    assert.equal(visible('tab\tline\nx\u034fy\u3164'), 'tab\tline\nx\\u{34f}y\\u{3164}');
});
