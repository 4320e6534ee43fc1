// What to do with models: commands to copy, with the files that they are about.
import { clean, plural } from './text.js';
import { el, fill, foreign, makeDialog, saveText } from './dom.js';
import { icon, iconButton } from './icons.js';
import { prefs, setPref } from './prefs.js';
import { announce } from './copy.js';
import { copyLine } from './files.js';
import { commandOf, folderOfPage, likelyShell, pathOnDisk, SHELLS } from './shell.js';

/** @typedef {{ [field: string]: string }} Values */
/**
 * @typedef {object} Verb
 * @property {string} label
 * @property {string} says
 * @property {[name: string, label: string, options: string[] | string][]} fields options of a list, or what stands in an empty field
 * @property {(of: Values) => [before: string[], after: string[]] | string} words before and behind the paths; or what is missing
 * @property {boolean} [adapters] only those
 * @property {boolean} [dry] whether it has --dry-run
 */

/** A path that is meant as a folder. @param {string} path */
const folderWord = (path) => /[\\/]$/.test(path) ? path : path + '/';
/** @param {string} text @param {string} key */
const fact = (text, key) => text ? [key + text] : [];
const DTYPES = ['BF16', 'F16', 'F32', 'fp8', 'int8', 'mxfp8', 'nvfp4'];

/** @type {Record<string, Verb>} */
export const VERBS = {
    mv: { label: 'Move', says: 'Into a folder, with sidecars and pictures. mv --undo takes it back.', dry: true, fields: [['folder', 'Folder', 'attic/']],
        words: ({ folder }) => folder ? [['mv'], [folderWord(folder)]] : 'Which folder?' },
    sort: { label: 'Sort', says: 'Each to a path made of its facts, below the folder that it lies in.', dry: true, fields: [['pattern', 'Pattern', '{base_model|architecture}/{name|stem}']],
        words: ({ pattern }) => [['mv'], ['--to', pattern || '{base_model|architecture}/{name|stem}']] },
    note: { label: 'Note', says: 'Facts of your own, in a small file beside each model.', dry: true,
        fields: [['rating', 'Rating', ['', '5', '4', '3', '2', '1', '0']], ['favourite', 'Favourite', ['', 'yes', 'no']], ['tags', 'Add tags', 'style, portrait'], ['note', 'Note', '']],
        words({ rating, favourite, tags, note }) {
            const facts = [...fact(rating, 'rating='), ...favourite ? [`favourite${favourite === 'no' ? '=' : ''}`] : [], ...fact(tags, 'tags+='), ...fact(note, 'note=')];
            return facts.length ? [['note'], facts] : 'Which facts?';
        } },
    trash: { label: 'Trash', says: 'To the trash of the desktop, with everything that is their own.', dry: true, fields: [], words: () => [['trash'], []] },
    convert: { label: 'Convert', says: 'Into a folder, to another dtype or a quantised format.', dry: true, fields: [['to', 'To', DTYPES], ['out', 'Folder', 'converted/']],
        words: ({ to, out }) => out ? [['convert'], ['-o', folderWord(out), /^[A-Z]/.test(to) ? '--dtype' : '--quantize', to]] : 'Which folder?' },
    info: { label: 'LoRA info', says: 'Methods, ranks, norms and singular values.', adapters: true, fields: [], words: () => [['lora', 'info'], ['--spectrum']] },
    merge: { label: 'LoRA merge', says: 'The adapters into a model, which stays as it is.', adapters: true, dry: true, fields: [['model', 'Model', 'model.safetensors'], ['out', 'New file', 'merged.safetensors']],
        words: ({ model, out }) => model && out ? [['lora', 'merge', model], ['-o', out]] : 'Which model, and which new file?' },
    stack: { label: 'LoRA stack', says: 'Several adapters as one.', adapters: true, dry: true, fields: [['rank', 'Rank', ''], ['out', 'New file', 'stacked.safetensors']],
        words: ({ rank, out }) => out ? [['lora', 'stack'], ['-o', out, ...rank ? ['--rank', rank] : []]] : 'Which new file?' },
};

/**
 * The dialog of commands.
 * @param {import('./data.js').Catalog} catalog
 * @param {() => { set: number[], unset: number[] }} starred models whose star was changed in the page
 * @param {() => void} forget those
 */
export function makeCommands(catalog, starred, forget) {
    const folder = folderOfPage(location.href), { rows } = catalog, shell = () => /** @type {import('./shell.js').Shell} */ (shells.value);
    /** @type {number[]} */
    let models = [];
    let verb = 'mv', isDry = false;
    /** @type {Values} */
    const values = { folder: '', to: 'BF16' };
    const tabs = el('div.verbs', { role: 'group', label: 'What to do' }), fields = el('div.command-fields'), shown = el('div.stack', { 'aria-live': 'polite' }), title = el('h2'),
        shells = el('select', { onchange: () => { setPref('shell', shell()); show(); } }, Object.entries(SHELLS).map(([value, label]) => el('option', { value }, label))),
        dry = el('input', { type: 'checkbox', onchange: () => { isDry = dry.checked; show(); } }), dryBox = el('label.check', dry, 'only tell what would be done (--dry-run)'),
        dialog = makeDialog('commands', 'Commands', el('div.help-box', el('div.help-head', title, iconButton('.quiet', 'close', 'Close', () => dialog.close())), tabs, fields, shown,
            el('div.row.spread-ends', el('label.field', 'Your shell', shells), dryBox)));

    /** A command about some models, and its list. @param {string[]} before @param {number[]} some @param {string[]} after @param {string} what */
    function line(before, some, after, what) {
        const places = some.map((i) => pathOnDisk(folder, catalog.more(i).path)), paths = /** @type {string[]} */ (places.filter(Boolean)),
            lost = places.length - paths.length, name = `models-${what}-${paths.length}.txt`,
            made = commandOf(shell(), before, paths, [...after, ...isDry && !dryBox.hidden ? ['--dry-run'] : []], name);
        return [lost > 0 && el('p.note.warn', `Without ${plural(lost, 'model')} that ${lost === 1 ? 'is no file' : 'are no files'} here, or whose name is not UTF-8.`),
            !paths.length ? null : !made ? el('p.note.bad', `${SHELLS[shell()]} cannot be given one of these words as it is.`)
                : copyLine(made.text, el('code', foreign(made.text)), 'the command'),
            made?.list && el('div.row.list-row', el('button.button', { onclick: () => { saveText(name, made.list); announce(`saved: ${name}`); } }, icon('down'), `Save the list of ${plural(paths.length, 'file')}`),
                el('p.small-text.muted', 'Save it first. If your browser saves elsewhere than in Downloads, change the path in the command.'))];
    }

    function show() {
        const { words, says, adapters, dry: may } = VERBS[verb] ?? {}, some = adapters ? models.filter((i) => /^adapter/.test(rows.dict.kind[rows.kind[i]]?.[0])) : models,
            made = words?.(values), isStars = verb === 'stars', { set, unset } = starred();
        for (const tab of tabs.children) tab.ariaPressed = `${/** @type {HTMLElement} */ (tab).dataset.verb === verb}`;
        dryBox.hidden = !may;
        dry.checked = isDry;
        shells.value = prefs.shell || likelyShell(folder, navigator.userAgent);
        fill(shown, el('p.muted', isStars ? 'Stars that you set here are kept by this browser alone, and only for this page. These commands keep them beside the models; then write the page again.' : says),
            isStars ? [...set.length ? line(['note'], set, ['favourite'], 'starred') : [], ...unset.length ? line(['note'], unset, ['favourite='], 'unstarred') : [],
                el('div.row', el('button.button.small', { onclick: () => { forget(); dialog.close(); } }, 'Forget the stars set here'))]
                : typeof made === 'string' ? el('p.note', made) : [
                    some.length < models.length && el('p.note.warn', `${plural(models.length - some.length, 'model')} of the selection ${models.length - some.length === 1 ? 'is' : 'are'} no adapter: left out.`),
                    ...made && some.length ? line(made[0], some, made[1], verb) : []],
            !folder && el('p.small-text.muted', 'Run it in the folder of this page.'));
    }

    /** @param {string} next */
    function choose(next) {
        verb = next;
        fill(fields, (VERBS[verb]?.fields ?? []).map(([key, label, options]) => {
            const typed = (/** @type {any} */ { target }) => { values[key] = clean(target.value).trim(); show(); },
                input = typeof options === 'string' ? el('input', { type: 'text', placeholder: options, autocomplete: 'off', spellcheck: 'false', oninput: typed, value: values[key] ?? '' })
                    : el('select', { onchange: typed }, options.map((one) => el('option', { value: one, selected: one === (values[key] ?? '') }, one || '–')));
            return el('label.field', label, input);
        }));
        show();
    }

    return {
        element: dialog,
        /** @param {number[]} some @param {boolean} [isStars] */
        open(some, isStars = false) {
            const { set, unset } = starred(), changed = set.length + unset.length;
            models = some;
            fill(title, isStars ? 'Stars' : `Commands for ${plural(some.length, 'model')}`);
            fill(tabs, [...isStars ? [] : Object.entries(VERBS).map(([key, { label }]) => [key, label]), ...changed ? [['stars', 'Stars']] : []]
                .map(([key, label]) => el('button.button.small', { 'data-verb': key, onclick: () => choose(key) }, label)));
            choose(isStars ? 'stars' : verb === 'stars' ? 'mv' : verb);
            dialog.showModal();
            /** @type {HTMLElement | null} */ (tabs.querySelector('[aria-pressed=true]'))?.focus();
        },
    };
}
