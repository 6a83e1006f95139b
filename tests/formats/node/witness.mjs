// node witness.mjs CHAIN...: what the official verifier says of each file of 73-byte entries, as a JSON list.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const wasm = createRequire(import.meta.url).resolve('@ruvector/rvf-wasm/wasm');
const { instance } = await WebAssembly.instantiate(readFileSync(wasm), {});
const { memory, rvf_alloc, rvf_witness_verify } = instance.exports;
const answers = process.argv.slice(2).map((file) => {
  const chain = readFileSync(file);
  const place = rvf_alloc(chain.length);
  new Uint8Array(memory.buffer).set(chain, place);
  return rvf_witness_verify(place, chain.length);
});
console.log(JSON.stringify(answers));
