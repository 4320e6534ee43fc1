import assert from 'node:assert/strict';
import { test } from 'node:test';

import { checkedHref, initials, isHidden, levelBit, levelName } from '../../../page/preview.js';
import { prefs } from '../../../page/prefs.js';

test('relative, percent-encoded paths and embedded pictures may be loaded', () => {
    for (const href of ['a.png', 'loras/a%20b%23%25.png', '../models/x.webp', './a.jpg', '%C3%A4/%E2%80%AE.png', 'a~b_c-d.mp4'])
        assert.equal(checkedHref(href), href);
    assert.equal(checkedHref('data:image/png;base64,iVBORw0KGgo='), 'data:image/png;base64,iVBORw0KGgo=');
    assert.equal(checkedHref('data:video/mp4;base64,AAAA'), 'data:video/mp4;base64,AAAA');
});

test('nothing else may', () => {
    for (const href of ['https://example.org/a.png', 'http:a.png', 'file:///etc/passwd', 'javascript:alert(1)', '//host/a.png',
        'a//b.png', '/etc/passwd.png', '\\\\server\\share\\x.png', 'a\\b.png', '%5C%5Cserver%5Cshare.png', 'a%2f%2Fb.png', 'a%00.png',
        'C:/a.png', 'C%3A/a.png?x', 'a b.png', 'a#b.png', 'a?b.png', 'a%zz.png', 'a%2.png', '', 'ä.png', 'a\n.png', 'a.png\n',
        'data:text/html;base64,AAAA', 'data:image/svg+xml,<svg onload=x>', 'data:image/png;base64,A A', ' data:image/png;base64,AAAA',
        'blob:x', 'ftp:x', 5, null, undefined, {}])
        assert.equal(checkedHref(href), '', String(href));
});

test('the highest bit of a level counts', () => {
    const names = { 0: 'unknown', 1: 'PG', 2: 'PG-13', 3: 'PG-13', 4: 'R', 7: 'R', 8: 'X', 15: 'X', 16: 'XXX', 31: 'XXX', 32: 'blocked', 60: 'blocked' };
    for (const [level, name] of Object.entries(names)) assert.equal(levelName(Number(level)), name, level);
    assert.equal(levelName(undefined), 'unknown');
    for (const odd of [64, 255, 2 ** 32, 2 ** 32 + 1, 1e300, Infinity]) assert.equal(levelName(odd), 'blocked', String(odd));
    for (const odd of [-1, 0.5, NaN, '', null]) assert.equal(levelBit(odd), 0, String(odd));
});

test('pictures are hidden from a level on, those of unknown level by a switch of their own', () => {
    const hidden = () => [0, 1, 2, 4, 8, 16, 32].filter(isHidden);
    Object.assign(prefs, { hideFrom: 4, hideUnknown: false });
    assert.deepEqual(hidden(), [4, 8, 16, 32]);
    Object.assign(prefs, { hideFrom: 16, hideUnknown: true });
    assert.deepEqual(hidden(), [0, 16, 32]);
    Object.assign(prefs, { hideFrom: 64, hideUnknown: false });
    assert.deepEqual(hidden(), []);
});

test('initials', () => {
    assert.equal(initials('Neon City XL'), 'NC');
    assert.equal(initials('[old] ガンダム'), 'Oガ');
    assert.equal(initials('<🎨>'), '');
});
