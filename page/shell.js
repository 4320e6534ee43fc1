// Commands for a shell: paths of models, how its reader's shell quotes them, and lists of them.
import { clean } from './text.js';

/** @typedef {'sh' | 'powershell' | 'cmd'} Shell */

/** @type {Record<Shell, string>} */
export const SHELLS = { sh: 'sh, bash, zsh', powershell: 'PowerShell', cmd: 'Command Prompt (cmd)' };
/* What needs no quotes; words of cmd that have any of the others cannot be written: % and ! are
 * variables within quotes too, and a quote ends them. PowerShell takes four signs for single quotes,
 * and its older versions hand double quotes on as if they were none. */
const PLAIN = { sh: /^[\w.,/:@%+-][\w.,/:@%+=-]*$/, powershell: /^[A-Za-z-][\w./:\\-]*$/, cmd: /^[\w./:\\@+-]+$/ }, NEVER = { sh: /(?!)/, powershell: /"/, cmd: /["%!]/ };

/**
 * A word as the shell takes it; null where it cannot be written on a line, or not be copied.
 * @param {Shell} shell
 * @param {string} text
 */
export function quoted(shell, text) {
    if (clean(text) !== text || NEVER[shell].test(text)) return null;
    if (PLAIN[shell].test(text)) return text;
    if (shell === 'sh') return `'${text.replace(/'/g, "'\\''")}'`;
    /* A backslash at the end would escape the closing quote. */
    const word = text.replace(/\\+$/, '/');
    return shell === 'cmd' ? `"${word}"` : `'${word.replace(/['\u2018-\u201b]/g, '$&$&')}'`;
}

/** A path that no program takes for an option. @param {string} path */
export const asOperand = (path) => path.startsWith('-') ? './' + path : path;

/**
 * The folder of a page that was opened from a file, with a slash at its end; '' where none is known.
 * @param {string} address
 */
export function folderOfPage(address) {
    const [, host, path] = /^file:\/\/([^/]*)(\/[^?#]*)/.exec(address) ?? [];
    try {
        const folder = decodeURIComponent(path.replace(/[^/]*$/, ''));
        return host ? `//${host}${folder}` : folder.replace(/^\/(?=[A-Za-z]:\/)/, '');
    } catch {
        return '';
    }
}

/**
 * The path of a model, which the page has from its own folder on; null where the page does not have
 * it exactly, and of what is no file here.
 * @param {string} folder of folderOfPage
 * @param {string} path
 */
export function pathOnDisk(folder, path) {
    if (!path || /\ufffd/.test(path) || /^[a-z][a-z0-9+.-]+:\/\//i.test(path)) return null;
    if (/^(\/|\\\\|[A-Za-z]:[\\/])/.test(path) || !folder) return path;
    const [, root, rest] = /** @type {RegExpExecArray} */ (/^(\/\/[^/]+\/|[A-Za-z]:\/|\/)([^]*)$/.exec(folder + path)), parts = [];
    for (const part of rest.split('/')) if (part === '..') parts.pop(); else if (part && part !== '.') parts.push(part);
    return root + parts.join('/');
}

/** The shell that a page's reader most likely has. @param {string} folder of folderOfPage @param {string} agent */
export const likelyShell = (folder, agent) => /^([A-Za-z]:|\/\/)/.test(folder) || /Windows/.test(agent) ? 'powershell' : 'sh';

/** The text of a list for --files-from. @param {string[]} paths */
export const listOf = (paths) => paths.some((path) => /[\n\r]/.test(path)) ? paths.map((path) => path + '\0').join('') : paths.map((path) => path + '\n').join('');

/** Where browsers put a file of a plain name. @param {Shell} shell @param {string} name */
const inDownloads = (shell, name) => ({ sh: `~/Downloads/${name}`, powershell: `"$HOME/Downloads/${name}"`, cmd: `"%USERPROFILE%\\Downloads\\${name}"` })[shell];

const MOST_PATHS = 12, MOST_TEXT = 1500;

/**
 * A command with paths in it, or with a list of them where they are many, or where one of them cannot
 * be quoted; null where one of its other words cannot be.
 * @param {Shell} shell
 * @param {string[]} before words before the paths
 * @param {string[]} paths
 * @param {string[]} after words behind them
 * @param {string} name of the file of the list
 * @returns {{ text: string, list: string } | null}
 */
export function commandOf(shell, before, paths, after, name) {
    const words = paths.map((path) => quoted(shell, asOperand(path))), others = [...before, ...after].map((word) => quoted(shell, word)),
        text = words.join(' '), isList = paths.length > MOST_PATHS || text.length > MOST_TEXT || words.includes(null);
    if (others.includes(null)) return null;
    others.splice(before.length, 0, isList ? `--files-from ${inDownloads(shell, name)}` : text);
    return { text: `safetensors ${others.join(' ')}`, list: isList ? listOf(paths) : '' };
}
