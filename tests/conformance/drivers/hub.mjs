// @huggingface/hub: parseSafetensorsMetadata with a fetch that serves the file.
import { readFileSync } from "node:fs";
import { load, run } from "./host.mjs";

const { parseSafetensorsMetadata } = await load("node_modules/@huggingface/hub/dist/index.mjs");

const serve = (data) => async (url, init) => {
    const range = /bytes=(\d+)-(\d+)/.exec(new Headers(init?.headers).get("Range") ?? "");
    const [begin, end] = range ? [Number(range[1]), Math.min(Number(range[2]) + 1, data.length)] : [0, data.length];
    const headers = { "Content-Length": String(end - begin), ETag: '"1"' };
    if (range) headers["Content-Range"] = `bytes ${begin}-${end - 1}/${data.length}`;
    return new Response(data.subarray(begin, end), { status: range ? 206 : 200, headers });
};

await run(async (path) => {
    const { header } = await parseSafetensorsMetadata({
        repo: "a/b", path: "model.safetensors", fetch: serve(readFileSync(path)) });
    const { __metadata__: metadata = null, ...tensors } = header;
    return { metadata, tensors: Object.entries(tensors).map(([name, one]) =>
        [name, one.dtype, one.shape, one.data_offsets]) };
});
