// safetensors of npm: SafeTensor of the whole file.
import { readFileSync } from "node:fs";
import { load, run, sha256 } from "./host.mjs";

const { SafeTensor } = await load("node_modules/safetensors/dist/safetensors.es.js");

await run(async (path) => {
    const file = new SafeTensor(new Uint8Array(readFileSync(path)));
    return { tensors: [...file.metadata].map(([name, one]) =>
        [name, one.dtype, one.shape, sha256(file.getTensor(name))]) };
});
