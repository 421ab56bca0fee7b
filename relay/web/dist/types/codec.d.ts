import { Ref, type Value } from "./value.js";
/** What no value is: the message names it, and the remedy. */
export declare class NotAValue extends TypeError {
}
/** What the other side did that no peer may; it ends the session. */
export declare class ProtocolError extends Error {
}
/** A reference as the wire has it: `[0 oid]`, of the sender, or `[1 oid]`, of the receiver. */
export type Outward = (ref: Ref) => [number, number];
export type Inward = (whose: number, oid: number, caveats: number) => Ref;
/** The canonical bytes of *value*.  Throws `NotAValue`. */
export declare function encode(value: Value, outward: Outward, depth?: number): Uint8Array;
/** More bytes are needed. */
export declare class Incomplete extends Error {
}
/** Reads values from bytes that may end too early: then it throws `Incomplete`. */
export declare class Reader {
    #private;
    readonly bytes: Uint8Array;
    readonly inward: Inward;
    constructor(bytes: Uint8Array, inward: Inward);
    get at(): number;
    get done(): boolean;
    /** The next value. */
    value(): Value;
}
