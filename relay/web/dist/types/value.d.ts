/** A symbol, made by `sym`: what Preserves writes without quotes.  Not JavaScript's `Symbol`. */
export declare class Sym {
    readonly name: string;
    constructor(name: string);
    toString(): string;
}
/** The symbol *name*.  Those that are used often are one object; compare them by `same` all the same. */
export declare function sym(name: string): Sym;
/** A double that a `number` would not show: 1.0, -0.0, NaN, an infinity. */
export declare class DoubleValue {
    readonly value: number;
    constructor(value: number);
    valueOf(): number;
}
/** The double *value*, as a number where that says it. */
export declare function Double(value: number): number | DoubleValue;
/** What can receive: a dataspace, or an entity, of ours or of the other side.  Only for as long as its connection. */
export declare class Ref {
    readonly home: object | null;
    readonly oid: number;
    readonly entity: Entity | null;
}
/** What happens at a reference of ours; each is called in a turn. */
export interface Entity {
    assert?(value: Value, handle: number): unknown;
    retract?(handle: number): unknown;
    message?(value: Value): unknown;
}
/** A record: a label, and fields in order. */
export declare class Rec {
    readonly label: Value;
    readonly fields: readonly Value[];
    constructor(label: Value, fields: readonly Value[]);
}
/** A set of values: members are compared as values. */
export declare class SetOf implements Iterable<Value> {
    #private;
    constructor(members?: Iterable<Value>);
    get size(): number;
    has(value: Value): boolean;
    [Symbol.iterator](): Iterator<Value>;
}
/** A dictionary: keys are compared as values. */
export declare class Dict implements Iterable<[Value, Value]> {
    #private;
    constructor(entries?: Iterable<readonly [Value, Value]>);
    get size(): number;
    get(k: Value): Value | undefined;
    has(k: Value): boolean;
    [Symbol.iterator](): Iterator<[Value, Value]>;
}
export type Value = string | boolean | number | bigint | Uint8Array | Sym | DoubleValue | Ref | Rec | SetOf | Dict | readonly Value[];
/** What says whether two values are the same: canonical bytes, as text of one character a byte. */
export declare function key(value: Value): string;
/** Whether *a* and *b* are one value: `same(2, 2n)`, `!same(2, Double(2))`. */
export declare function same(a: Value, b: Value): boolean;
type Named<F extends readonly string[]> = Rec & {
    readonly [K in F[number]]: Value;
};
/** A class of records: applied to values it makes one, applied to patterns it makes a pattern. */
export interface RecordClass<F extends readonly string[]> {
    (...fields: {
        [K in keyof F]: Value;
    }): Named<F>;
    (...fields: {
        [K in keyof F]: unknown;
    }): Rec;
    is(value: unknown): value is Named<F>;
    readonly label: Value;
    readonly names: F;
}
/** The class of the records `<label ..>` whose fields have these names.
 *
 *     const Says = record("Says", ["who", "what"])
 *     Says("ann", "hi").who      // "ann"
 */
export declare function record<const F extends readonly string[]>(label: string, names: F): RecordClass<F>;
/** The record with this label and these fields, of the class that was last declared for it, if any. */
export declare function recordOf(label: Value, fields: Value[]): Rec;
export {};
