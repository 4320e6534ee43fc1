// @jax-js/loaders: safetensors.parse.
import { readFileSync } from "node:fs";
import { load, run, sha256 } from "./host.mjs";

const { safetensors } = await load("node_modules/@jax-js/loaders/dist/index.js");

await run(async (path) => {
    const file = safetensors.parse(new Uint8Array(readFileSync(path)).buffer);
    return { metadata: file.metadata ?? null, tensors: Object.entries(file.tensors).map(([name, one]) =>
        [name, one.dtype, one.shape,
         sha256(new Uint8Array(one.data.buffer, one.data.byteOffset, one.data.byteLength))]) };
});
