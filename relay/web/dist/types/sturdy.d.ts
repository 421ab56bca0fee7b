import { type Value } from "./value.js";
/** BLAKE2s of *data*, 32 bytes. */
export declare function blake2s(data: Uint8Array): Uint8Array;
/** The capability that *text* writes, narrowed by *caveats*, each a value or its text; throws what is wrong with it.
 *
 *     attenuate(cap, '<reject <rec Says [<lit "bob"> <_>]>>')
 */
export declare function attenuate(text: string, ...caveats: (Value | string)[]): string;
