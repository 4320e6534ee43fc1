import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { clean } from '../../../page/text.js';
import { commandOf, folderOfPage, likelyShell, listOf, pathOnDisk, quoted } from '../../../page/shell.js';

const HOSTILE = ['a', 'a b', "it's", "''", 'quo"te', '%PATH%', '100%', '!x!', '$HOME', '`id`', '$(id)', 'a;b', 'a&b', 'a|b', '<i>', '(x)', '{a,b}', '[a]', '*', '?', '~', '~/x', '#c', 'a#c',
    '-rf', '--help', '@file', '@{x}', 'a,b', 'a=b', '=x', '^', 'a^b', 'back\\slash', 'end\\', 'two words\\', '\\\\host\\share\\', 'C:\\x', 'ñandú', '日本語', '😀', '\u2018smart\u2019 \u201a\u201b', '\u201cq\u201d',
    '\uff02wide\uff02', '1.0', '0x10', 'if', 'rating=4', 'tab\tx', 'new\nline', 'a\rb', 'rtl\u202ex', '\ufeffmark', '', ' lead', 'trail ', "';id;'", '"&calc&"', '%%', '!', '%1', '--%', '$null', 'a\u00a0b', "\\'", '\\"'];

/** The words of a line as the parser of PowerShell divides it: single quotes take all as it is, but that two are one. */
function powershellWords(line) {
    const words = [], isQuote = (one) => /['\u2018-\u201b]/.test(one);
    for (let at = 0; at < line.length;) {
        if (line[at] === ' ') { at++; continue; }
        let word = '';
        if (isQuote(line[at])) {
            for (at++; ; at++) {
                assert.ok(at < line.length, `an open quote: ${line}`);
                if (!isQuote(line[at])) word += line[at];
                else if (isQuote(line[at + 1] ?? '')) word += line[++at];
                else break;
            }
            at++;
            assert.ok(at === line.length || line[at] === ' ', `text behind a quote: ${line}`);
        } else {
            for (; at < line.length && line[at] !== ' '; at++) {
                assert.match(line[at], /[A-Za-z0-9_./:\\-]/, `a sign that PowerShell reads: ${line}`);
                word += line[at];
            }
            assert.notEqual(word, '--%');
        }
        words.push(word);
    }
    return words;
}

/** What PowerShell 5.1 hands on: words with blanks in quotes, nothing escaped. */
const handedOn = (words) => words.map((word) => /\s/.test(word) || !word ? `"${word}"` : word).join(' ');

/** What cmd does to a line before a program sees it; refuses what it would read. */
function throughCmd(line) {
    let inQuotes = false;
    for (const one of line) {
        if (one === '"') inQuotes = !inQuotes;
        assert.ok(!'%!\n\r'.includes(one), `cmd reads ${one}: ${line}`);
        assert.ok(inQuotes || !'&|<>^()'.includes(one), `cmd reads ${one}: ${line}`);
    }
    assert.ok(!inQuotes, `an open quote: ${line}`);
    return line;
}

/** The words of a command line by the rules of Microsoft's C runtime. */
function runtimeWords(line) {
    const words = [];
    for (let at = 0; at < line.length;) {
        if (/[ \t]/.test(line[at])) { at++; continue; }
        let word = '', inQuotes = false;
        for (; at < line.length && (inQuotes || !/[ \t]/.test(line[at])); at++) {
            let slashes = 0;
            while (line[at] === '\\') { slashes++; at++; }
            if (line[at] !== '"') {
                word += '\\'.repeat(slashes);
                if (at >= line.length || !inQuotes && /[ \t]/.test(line[at])) break;
                word += line[at];
            } else {
                word += '\\'.repeat(slashes >> 1);
                if (slashes % 2) word += '"';
                else if (inQuotes && line[at + 1] === '"') { word += '"'; at++; } else inQuotes = !inQuotes;
            }
        }
        assert.ok(!inQuotes, `an open quote: ${line}`);
        words.push(word);
    }
    return words;
}

/** Backslashes at the end of a quoted word become a slash, which means the same there. @param {string} shell */
const meantFor = (shell) => (word) => /^['"]/.test(quoted(shell, word)) ? word.replace(/\\+$/, '/') : word;

test('sh: what is quoted comes out as it went in', () => {
    const kept = HOSTILE.filter((word) => quoted('sh', word) !== null);
    assert.deepEqual(HOSTILE.filter((word) => !kept.includes(word)), HOSTILE.filter((word) => clean(word) !== word));
    const line = kept.map((word) => quoted('sh', word)).join(' ');
    for (const shell of ['sh', 'bash']) {
        const out = execFileSync(shell, ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' });
        assert.deepEqual(out.split('\0').slice(0, -1), kept, shell);
    }
});

test('PowerShell: what is quoted comes out as it went in, through its older ways too', () => {
    const kept = HOSTILE.filter((word) => word && quoted('powershell', word) !== null), line = kept.map((word) => quoted('powershell', word)).join(' ');
    assert.ok(kept.length > 45 && kept.every((word) => !word.includes('"')), `${kept.length}`);
    assert.deepEqual(powershellWords(line), kept.map(meantFor('powershell')));
    assert.deepEqual(runtimeWords(handedOn(powershellWords(line))), kept.map(meantFor('powershell')));
});

test('cmd: what is quoted comes out as it went in; what cmd reads even in quotes is refused', () => {
    const kept = HOSTILE.filter((word) => quoted('cmd', word) !== null), line = kept.map((word) => quoted('cmd', word)).join(' ');
    assert.ok(kept.length > 40 && kept.every((word) => !/["%!\n\r]/.test(word)), `${kept.length}`);
    assert.deepEqual(runtimeWords(throughCmd(line)), kept.map(meantFor('cmd')));
});

test('paths: from the page on, through .., by the host', () => {
    assert.equal(folderOfPage('file:///home/me/my%20models/catalogue.html#q=x'), '/home/me/my models/');
    assert.equal(folderOfPage('file:///C:/Users/me/c.html'), 'C:/Users/me/');
    assert.equal(folderOfPage('file://nas/share/c.html?x'), '//nas/share/');
    assert.equal(folderOfPage('https://example.com/c.html'), '');
    assert.equal(folderOfPage('file:///home/%ff/c.html'), '');
    assert.equal(pathOnDisk('/home/me/', 'loras/a.safetensors'), '/home/me/loras/a.safetensors');
    assert.equal(pathOnDisk('/home/me/pages/', '../../x/./a//b'), '/home/x/a/b');
    assert.equal(pathOnDisk('/', '../a'), '/a');
    assert.equal(pathOnDisk('/x/', 'new\nline/\u2028a'), '/x/new\nline/\u2028a');
    assert.equal(pathOnDisk('C:/Users/', '../a b'), 'C:/a b');
    assert.equal(pathOnDisk('//nas/share/', 'a'), '//nas/share/a');
    assert.equal(pathOnDisk('', 'loras/a'), 'loras/a');
    assert.equal(pathOnDisk('/home/', '/abs/a'), '/abs/a');
    assert.equal(pathOnDisk('C:/', 'D:\\a'), 'D:\\a');
    for (const none of ['', 'bad\ufffdname', 'https://example.com/a', 'hf://a/b']) assert.equal(pathOnDisk('/x/', none), null, none);
    assert.equal(likelyShell('C:/x/', ''), 'powershell');
    assert.equal(likelyShell('/x/', 'X11; Linux'), 'sh');
});

test('commands: paths or a list of them, which says exactly what they are', () => {
    assert.deepEqual(commandOf('sh', ['mv'], ['a b', '-c'], ['to/'], 'l.txt'), { text: "safetensors mv 'a b' ./-c to/", list: '' });
    const many = Array.from({ length: 30 }, (_, i) => `m ${i}`);
    assert.deepEqual(commandOf('cmd', ['trash'], many, [], 'l.txt'), { text: 'safetensors trash --files-from "%USERPROFILE%\\Downloads\\l.txt"', list: many.map((one) => one + '\n').join('') });
    assert.equal(commandOf('powershell', ['trash'], ['a"b'], [], 'l.txt').list, 'a"b\n');
    assert.equal(commandOf('sh', ['trash'], ['a\nb', 'c'], [], 'l.txt').list, 'a\nb\0c\0');
    assert.equal(commandOf('sh', ['trash'], ['a\u202eb'], [], 'l.txt').text, 'safetensors trash --files-from ~/Downloads/l.txt');
    assert.equal(commandOf('cmd', ['note'], ['a'], ['note=100%'], 'l.txt'), null);
    assert.equal(listOf(['a', 'b\r']), 'a\0b\r\0');
});
