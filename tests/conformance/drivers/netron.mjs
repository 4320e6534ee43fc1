// netron: the model factory of its safetensors.js, and the bytes of each initializer.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { load, run, sha256 } from "./host.mjs";

const library = `${process.env.SFT_ENVIRONMENT}/lib`;
const python = readdirSync(library).find((name) => name.startsWith("python"));
const place = ["lib", python, "site-packages", "netron"];
const names = {
    boolean: "BOOL", int8: "I8", uint8: "U8", int16: "I16", uint16: "U16", int32: "I32",
    uint32: "U32", int64: "I64", uint64: "U64", float16: "F16", bfloat16: "BF16", float32: "F32",
    float64: "F64", float8e4m3fn: "F8_E4M3", float8e5m2: "F8_E5M2", float8e8m0: "F8_E8M0",
};

// The wheel has modules without the file that says so to Node.js.
writeFileSync(`${process.env.SFT_ENVIRONMENT}/${place.join("/")}/package.json`, '{"type":"module"}');
const { ModelFactory } = await load(...place, "safetensors.js");
const { BinaryStream } = await load(...place, "base.js");

await run(async (path) => {
    const stream = new BinaryStream(new Uint8Array(readFileSync(path)));
    const context = {
        identifier: path, stream,
        set(type, value) {
            Object.assign(this, { type, value });
            return type;
        },
        peek: async () => null,
    };
    const factory = new ModelFactory();
    if (!await factory.match(context)) throw new Error("not recognised");
    const model = await factory.open(context);
    const found = model.modules.flatMap((module) => module.nodes)
        .flatMap((node) => node.inputs).flatMap((input) => input.value);
    return { tensors: found.map((value) => [value.name, names[value.type.dataType] ?? value.type.dataType,
        value.type.shape.dimensions, sha256(value.initializer.values)]) };
});
