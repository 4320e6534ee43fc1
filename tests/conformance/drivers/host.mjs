// For drivers in JavaScript: takes paths and prints what read(path) finds, as host.py says.
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// Integers over 2^53 arrive as numbers with less precision: they are printed as they are.
export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

export const run = async (read) => {
    for await (const path of createInterface({ input: process.stdin })) {
        let found;
        try {
            found = { accept: true, ...await read(path) };
        } catch (error) {
            found = { accept: false, error: error?.name ?? typeof error, text: String(error?.message ?? error).slice(0, 300) };
        }
        process.stdout.write(`${JSON.stringify(found)}\n`);
    }
};

// A module of a package that lies in the environment's folder.
export const load = (...names) =>
    import(pathToFileURL([process.env.SFT_ENVIRONMENT, ...names].join("/")).href);
