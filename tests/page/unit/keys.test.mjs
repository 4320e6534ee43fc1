import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

/** @type {((event: any) => void) | undefined} */
let listener;
globalThis.document = { addEventListener: (type, tell) => { if (type === 'keydown') listener = tell; } };
const { addAction, isLetter, keyName, keyText } = await import('../../../page/keys.js');
const { prefs } = await import('../../../page/prefs.js');

const ran = [];
addAction({ id: 'copy', keys: ['c'], label: 'Copy', run: () => { ran.push('copy'); } });
addAction({ id: 'search', keys: ['/', 'Ctrl+f'], label: 'Search', run: () => { ran.push('search'); } });
addAction({ id: 'back', keys: ['Escape'], label: 'Back', run: () => { ran.push('back'); } });
addAction({ id: 'next', keys: ['ArrowRight'], label: 'Next', run: () => { ran.push('next'); } });
addAction({ id: 'open', keys: ['Enter'], label: 'Open', when: () => opens, run: () => { ran.push('open'); } });
addAction({ id: 'other', keys: ['Enter'], label: 'Other', run: () => false });
let opens = true;

/** What a key does: the action, and whether the browser is kept from doing its own. */
function press(key, more = {}, target = { tagName: 'BODY' }) {
    let prevented = false;
    ran.length = 0;
    listener({ key, target, preventDefault: () => { prevented = true; }, ...more });
    return [...ran, ...(prevented ? ['prevented'] : [])].join(' ');
}

beforeEach(() => { prefs.letterKeys = true; opens = true; });

test('keys run actions', () => {
    assert.equal(press('c'), 'copy prevented');
    assert.equal(press('C', { shiftKey: true }), 'copy prevented');
    assert.equal(press('/', { shiftKey: true }), 'search prevented');
    assert.equal(press('f', { ctrlKey: true }), 'search prevented');
    assert.equal(press('f', { metaKey: true }), 'search prevented');
    assert.equal(press('x'), '');
});

test('with modifiers a key is another one', () => {
    assert.equal(press('c', { ctrlKey: true }), '');
    assert.equal(press('c', { metaKey: true }), '');
    assert.equal(press('c', { altKey: true }), '');
    assert.equal(press('ArrowRight', { shiftKey: true }), '');
    assert.equal(press('ArrowRight', { altKey: true }), '');
});

test('text fields keep their keys but Esc and Ctrl+F', () => {
    for (const field of [{ tagName: 'INPUT', type: 'search' }, { tagName: 'TEXTAREA' }, { tagName: 'SELECT' },
        { tagName: 'DIV', isContentEditable: true }]) {
        assert.equal(press('c', {}, field), '');
        assert.equal(press('ArrowRight', {}, field), '');
        assert.equal(press('/', {}, field), field.tagName === 'SELECT' ? 'search prevented' : '', 'nothing is typed into a list');
        assert.equal(press('Escape', {}, field), 'back prevented');
        assert.equal(press('f', { ctrlKey: true }, field), 'search prevented');
    }
});

test('controls keep the keys that they need', () => {
    const slider = { tagName: 'INPUT', type: 'range' };
    assert.equal(press('ArrowRight', {}, slider), '');
    assert.equal(press('c', {}, slider), 'copy prevented');
    assert.equal(press('Enter', {}, { tagName: 'BUTTON' }), '');
    assert.equal(press('Enter', {}, { tagName: 'A' }), '');
    assert.equal(press('Enter'), 'open prevented');
});

test('the first action that applies runs, and may leave the key to the browser', () => {
    opens = false;
    assert.equal(press('Enter'), '');
});

test('single letters can be switched off, and do not repeat', () => {
    assert.equal(press('c', { repeat: true }), '');
    assert.equal(press('ArrowRight', { repeat: true }), 'next prevented');
    prefs.letterKeys = false;
    assert.equal(press('c'), '');
    assert.equal(press('/'), '');
    assert.equal(press('Escape'), 'back prevented');
    assert.equal(press('f', { ctrlKey: true }), 'search prevented');
});

test('names of keys', () => {
    assert.equal(keyName({ key: 'Home', shiftKey: true }), 'Shift+Home');
    assert.equal(keyName({ key: '?', shiftKey: true }), '?');
    assert.equal(keyText('Ctrl+f'), 'Ctrl F');
    assert.equal(keyText('ArrowLeft'), '←');
    assert.equal(keyText('+'), '+');
    assert.equal(isLetter('c') && isLetter('?') && !isLetter('Escape') && !isLetter('Ctrl+f'), true);
});
