// Builds dist/ from client/ and console/: the same bytes each time, with a hash of the sources beside them.
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { gzipSync } from "node:zlib"

process.chdir(import.meta.dirname)
rmSync("dist", { recursive: true, force: true })
const common = { bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" }
await build({
  ...common, entryPoints: ["client/index.ts"], outfile: "dist/syndicate.js", platform: "neutral", external: ["node:*"],
  banner: { js: "// syndicate-dataspace, Apache-2.0" },
})
const licences = (...names) => names.map((name) => `${name}:\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}`).join("\n\n")
await build({
  ...common, entryPoints: ["console/main.tsx"], outfile: "dist/console/console.js", platform: "browser", external: ["node:*"],
  jsx: "automatic", jsxImportSource: "preact", banner: { js: `/* syndicate-dataspace, Apache-2.0; ${licences("preact")} */` },
})
await build({
  ...common, entryPoints: ["console/layout.ts"], outfile: "dist/console/layout.js", platform: "browser", format: "iife",
  banner: { js: `/* syndicate-dataspace, Apache-2.0; ${licences("@dagrejs/dagre")} */` },
})
for (const name of ["index.html", "console.css"]) copyFileSync(`console/${name}`, `dist/console/${name}`)
const compiler = "node_modules/typescript/bin/tsc"
for (const project of [".", "tsconfig.console.json"]) execFileSync(process.execPath, [compiler, "-p", project], { stdio: "inherit" })

const sources = createHash("sha256")
for (const folder of ["client", "console"])
  for (const name of readdirSync(folder).sort()) sources.update(name).update(readFileSync(`${folder}/${name}`))
const gzipped = (...names) => names.reduce((size, name) => size + gzipSync(readFileSync(`dist/${name}`), { level: 9 }).length, 0)
const sizes = { client: gzipped("syndicate.js"), console: gzipped(...readdirSync("dist/console").map((name) => `console/${name}`)) }
for (const [name, most] of [["client", 15_000], ["console", 100_000]])
  if (sizes[name] > most) throw new Error(`the ${name} has ${sizes[name]} bytes gzipped, more than ${most}`)
writeFileSync("dist/manifest.json", JSON.stringify({ sources: sources.digest("hex"), gzipped: sizes.client, console: sizes.console }, null, 2) + "\n")
console.log(`client: ${sizes.client} bytes gzipped; console: ${sizes.console}`)
