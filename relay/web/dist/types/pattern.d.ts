import { Dict, Rec, Ref, SetOf, Sym, type Value } from "./value.js";
declare const CLASSES: {
    readonly bool: (v: Value) => v is boolean;
    readonly float: (v: Value) => boolean;
    readonly int: (v: Value) => boolean;
    readonly str: (v: Value) => v is string;
    readonly bytes: (v: Value) => v is Uint8Array<ArrayBufferLike>;
    readonly symbol: (v: Value) => v is Sym;
    readonly ref: (v: Value) => v is Ref;
    readonly list: (v: Value) => v is any[];
    readonly set: (v: Value) => v is SetOf;
    readonly dict: (v: Value) => v is Dict;
    readonly record: (v: Value) => v is Rec;
};
export type AtomClass = keyof typeof CLASSES;
export declare class Any {
}
export declare class Capture {
    readonly pattern: Pattern | AtomClass;
    constructor(pattern: Pattern | AtomClass);
}
/** A pattern is written as a value with `ANY` and `capture()` in it. */
export type Pattern = Value | Any | Capture | readonly Pattern[];
/** Matches anything. */
export declare const ANY: any;
/** A hole whose content goes to the handler; *pattern*, or the name of a class of values, restricts it.
 *  A string that is no class is an error, so that a wrong class is not taken for a text.
 */
export declare function capture(pattern?: unknown): any;
/** A pattern as it is published, and what its captures have to be. */
export interface Compiled {
    readonly form: Value;
    passes(captures: Value): readonly Value[] | null;
}
/** The published form of *pattern*. */
export declare function compile(pattern: Pattern): Compiled;
export {};
