// Filters, and how many models each choice would show. A facet has the numbers of a model's choices:
// a count is one pass over an array.
import { FLAG } from './data.js';

/**
 * @typedef {object} Filters
 * @property {[key: string, id: string, wanted: boolean][]} choices of facets: any of those that are wanted,
 *     all of the traits; none of those that are not wanted
 * @property {boolean} all whether all tags that are wanted must be there, not any
 *
 * @typedef {object} Facet
 * @property {string} key
 * @property {string} title
 * @property {string[]} ids
 * @property {string[]} labels
 * @property {Int32Array} start of model i, choices start[i] to start[i + 1] of list
 * @property {Int32Array} list indices into ids
 * @property {number[]} [parents] of folders: index of the one around it, -1 of the outermost
 *
 * @typedef {object} Facets
 * @property {number} count
 * @property {Facet[]} list
 *
 * @typedef {object} Counts
 * @property {Uint8Array} mask 1 for each model that is shown
 * @property {number} total
 * @property {Record<string, Int32Array>} only by key of a facet, by id
 */

/** What models have or have not; flags by the names of their bits. @type {Record<string, string>} */
export const TRAITS = {
    favourite: 'favourites', noted: 'own notes', words: 'has trigger words', preview: 'has a preview', site: 'has a CivitAI page', hashed: 'hash is known', copies: 'duplicates',
    conflicts: 'facts conflict', differs: 'digest differs', broken: 'cannot be read', foreign: 'other formats', code: 'would run code',
};
const RATINGS = ['5', '4', '3', '2', '1', '0'];
/** @type {[string, string, number][]} */
const SIZES = [['10MB', 'up to 10 MB', 1e7], ['50MB', '10 to 50 MB', 5e7], ['200MB', '50 to 200 MB', 2e8], ['1GB', '200 MB to 1 GB', 1e9],
    ['4GB', '1 to 4 GB', 4e9], ['10GB', '4 to 10 GB', 1e10], ['more', 'over 10 GB', Infinity]];

/** @returns {Filters} */
export const noFilters = () => ({ choices: [], all: false });

/** Whether a choice is wanted, not wanted, or neither. @param {Filters} filters @param {string} key @param {string} id */
export const choiceOf = ({ choices }, key, id) => choices.find((one) => one[0] === key && one[1] === id)?.[2];

/** The filters with a choice that is wanted, not wanted or neither. @param {Filters} filters @param {string} key @param {string} id @param {boolean} [wanted] @returns {Filters} */
export function choose({ choices, all }, key, id, wanted) {
    const others = choices.filter((one) => one[0] !== key || one[1] !== id);
    return { choices: wanted === undefined ? others : [...others, [key, id, wanted]], all };
}

/** @param {number} count @param {(i: number) => Iterable<number>} choices of a model */
function columnOf(count, choices) {
    const start = new Int32Array(count + 1), list = [];
    for (let i = 0; i < count; i++) {
        for (const k of choices(i)) list.push(k);
        start[i + 1] = list.length;
    }
    return { start, list: Int32Array.from(list) };
}

/** The folders with those between them, parents first; a model is in all that are around it. @param {import('./data.js').Catalog} catalog */
function folderFacet({ rows, count }) {
    /** @type {Map<string, number>} */
    const known = new Map();
    /** @type {number[]} */
    const parents = [],
        around = rows.dict.folder.map((path) => {
            /** @type {number[]} */
            const places = [];
            path.split('/').forEach((_, depth, parts) => {
                const id = parts.slice(0, depth + 1).join('/'),
                    place = known.get(id) ?? parents.push(places[depth - 1] ?? -1) - 1;
                known.set(id, place);
                places.push(place);
            });
            return places;
        }),
        ids = [...known.keys()];
    return { key: 'folder', title: 'Folder', ids, labels: ids.map((id) => id.replace(/.*\//, '') || 'directly in the folder'), parents,
        ...columnOf(count, (i) => around[rows.folder[i]] ?? []) };
}

/** @param {import('./data.js').Catalog} catalog */
function traitColumn({ rows, count, isStarred }) {
    const traits = Object.keys(TRAITS);
    return columnOf(count, (i) => {
        /** @type {Record<string, unknown>} */
        const has = { favourite: isStarred(i), words: rows.word_count[i] > 0, preview: rows.preview[i], copies: rows.copies[i] >= 0 };
        return traits.flatMap((id, k) => (has[id] ?? rows.flags[i] & FLAG[/** @type {keyof typeof FLAG} */ (id)]) ? k : []);
    });
}

/** After a star was set or taken. @param {Facets} facets @param {import('./data.js').Catalog} catalog */
export const renewTraits = (facets, catalog) => Object.assign(/** @type {Facet} */ (facets.list.find((one) => one.key === 'is')), traitColumn(catalog));

/** @param {import('./data.js').Catalog} catalog @returns {Facets} */
export function makeFacets(catalog) {
    const { rows, count } = catalog, { dict } = rows,
        years = [...new Set(rows.date.map((date) => date.slice(0, 4)))].filter((year) => /^\d{4}$/.test(year)).sort().reverse();
    /** @param {string} key @param {string} title @param {(string | number)[][]} entries @param {ArrayLike<number>} column */
    function single(key, title, entries, column) {
        /* Models that cannot be read are as unknown as those of which no more is known. */
        const id = entries.findIndex(([one]) => one === 'unknown'), unknown = id < 0 ? entries.length : id;
        return { key, title, ids: [...entries.map(([one]) => String(one)), '?'], labels: [...entries.map(([one, label = one]) => String(label)), 'unknown'],
            ...columnOf(count, (i) => [entries[column[i]] ? column[i] : unknown]) };
    }
    /** @param {'kind' | 'base' | 'architecture' | 'precision' | 'licence'} key @param {string} title */
    const known = (key, title) => single(key, title, dict[key].map((one) => [one].flat()), rows[key]);
    return { count, list: [
        known('kind', 'Kind'), known('base', 'Base model'),
        { key: 'tag', title: 'Tags', ids: dict.tag, labels: dict.tag, ...columnOf(count, (i) => rows.tags[i]) },
        { key: 'is', title: 'Properties', ids: Object.keys(TRAITS), labels: Object.values(TRAITS), ...traitColumn(catalog) },
        single('rating', 'Rating', RATINGS.map((stars) => [stars, stars === '5' ? '5 stars' : stars === '1' ? '1 star' : `${stars} stars`]), Array.from(rows.rating, (rating) => rating < 0 ? -1 : RATINGS.indexOf(`${Math.min(5, Math.floor(rating))}`))),
        folderFacet(catalog), known('architecture', 'Architecture'), known('precision', 'Precision'),
        single('size', 'Size', SIZES, Array.from(rows.bytes, (bytes) => bytes < 0 ? -1 : SIZES.findIndex(([, , most]) => bytes <= most))),
        single('year', 'Published', years.map((year) => [year]), rows.date.map((date) => years.indexOf(date.slice(0, 4)))),
        known('licence', 'Licence')] };
}

/**
 * What the filters leave of the models that the search found, and counts for every choice: of the
 * models that all other facets leave, where the choices of a facet are alternatives.
 * @param {Facets} facets
 * @param {Filters} filters
 * @param {Uint8Array} found
 * @returns {Counts}
 */
export function applyFilters({ count, list: facets }, filters, found) {
    /* Bits: which facet hides a model; 30: what must not be there, 31: the search. */
    const fails = Uint32Array.from(found, (one) => one ? 0 : 1 << 31),
        isAll = (/** @type {string} */ key) => key === 'is' || key === 'tag' && filters.all;
    facets.forEach(({ key, ids, start, list }, f) => {
        for (const wanted of [true, false]) {
            const chosen = filters.choices.filter((one) => one[0] === key && one[2] === wanted).map((one) => one[1]), isChosen = Uint8Array.from(ids, (id) => +chosen.includes(id)),
                least = !wanted ? 0 : isAll(key) ? chosen.length : 1, most = wanted ? Infinity : 0;
            for (let i = 0; chosen.length && i < count; i++) {
                let having = 0;
                for (let k = start[i]; k < start[i + 1]; k++) having += isChosen[list[k]];
                if (having < least || having > most) fails[i] |= 1 << (wanted ? f : 30);
            }
        }
    });
    const mask = Uint8Array.from(fails, (bits) => +!bits);
    /** @type {Record<string, Int32Array>} */
    const only = {};
    facets.forEach(({ key, ids, start, list }, f) => {
        const counts = only[key] = new Int32Array(ids.length), others = isAll(key) ? -1 : ~(1 << f);
        for (let i = 0; i < count; i++)
            if (!(fails[i] & others)) for (let k = start[i]; k < start[i + 1]; k++) counts[list[k]]++;
    });
    return { mask, total: mask.reduce((sum, one) => sum + one, 0), only };
}
