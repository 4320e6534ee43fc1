// A small catalogue for unit tests, as page/types.d.ts describes it.
import { openCatalog } from '../../../page/data.js';

const COLUMNS = { name: '', file: '', folder: 0, kind: -1, base: -1, architecture: -1, precision: -1, licence: -1, author: -1, what: '',
    bytes: -1, parameters: -1, rank: -1, date: '', modified: -1, words: [], word_count: 0, tags: [], hash: '', copies: -1, flags: 0, rating: -1,
    preview: 0, picture_count: 0 };
const DICT = { kind: [['adapter', 'LoRA'], ['checkpoint', 'checkpoint']], base: [['Pony', 'Pony'], ['SD 1.5', 'Stable Diffusion 1.5']],
    architecture: [['sdxl', 'SDXL']], precision: [['fp16', 'fp16']], folder: ['', 'loras', 'loras/styles', 'loras #2'], tag: ['style', 'woman', 'nsfw'],
    licence: ['mit'], author: ['Renard'] };

/** The blocks of a page. */
export function blocksOf(models, infos = models.map(() => ({ model: {} })), sources = [], more = {}) {
    const rows = { format: 1, title: 't', id: '0', generator: 'g', newest: '', roots: ['r'], takes: [], count: models.length, block: 2, dict: DICT, error: {}, ...more };
    for (const [key, absent] of Object.entries(COLUMNS)) rows[key] = models.map((one) => one[key] ?? absent);
    const blocks = { rows: JSON.stringify(rows) };
    for (let k = 0; k * 2 < infos.length; k++) blocks[`more-${k}`] = JSON.stringify({ sources, models: infos.slice(2 * k, 2 * k + 2) });
    return blocks;
}

export function catalogOf(models, infos, sources, more) {
    const blocks = blocksOf(models, infos, sources, more);
    return openCatalog((id) => blocks[id] ?? null);
}
