import { type Pattern } from "./pattern.js";
import { Rec, Ref, type Entity, type Value } from "./value.js";
/** A verb was called outside a turn. */
export declare class NotInTurn extends Error {
}
declare const DISPOSE: typeof Symbol.dispose;
/** Events for the other side: the oid that each is for, and its bytes. */
export type Entries = [number, Uint8Array][];
interface Export {
    readonly entity: Entity;
    readonly facet: Facet;
    holders: number;
}
/** What runs on one connection, from its beginning to its end. */
export declare class Program {
    #private;
    readonly leave: (entries: Entries) => void;
    readonly crashed: (error: unknown) => void;
    readonly root: Facet;
    readonly exports: Map<number, Export>;
    alive: boolean;
    constructor(leave: (entries: Entries) => void, crashed: (error: unknown) => void);
    /** Run *f* in a turn of *facet*; within a turn, right after it. */
    run(facet: Facet, f: () => unknown): void;
    /** Call *f* in *facet*, in the turn that runs. */
    within(facet: Facet, f: () => unknown): void;
    crash(error: unknown): void;
    /** The connection is gone: stop handlers run, and nothing leaves any more. */
    end(): void;
    export(entity: Entity, facet: Facet): Ref;
    event(target: Ref, event: Rec, pins: number[] | null): void;
    assert(target: Ref, value: Value): Assertion;
    retract({ target, handle, pins }: Assertion): void;
    /** Events of the other side, in one turn. */
    arrived(entries: [number, Rec][]): void;
}
interface Assertion {
    readonly target: Ref;
    readonly handle: number;
    readonly pins: number[];
}
/** What begins and ends together: assertions, handlers, fields' blocks, and the facets within. */
export declare class Facet {
    #private;
    readonly parent: Facet | null;
    readonly program: Program;
    alive: boolean;
    readonly exports: number[];
    /** Run *f* in a turn of this facet: from an event of the page, a timer, or after an `await`. */
    enter(f: () => unknown): void;
    /** Aborted when the facet stops: for `fetch`, `addEventListener` and the like. */
    get signal(): AbortSignal;
    /** Stop: the facets within first, then the stop handlers, then what was asserted here is retracted. */
    stop(): void;
    [DISPOSE](): void;
}
/** An assertion of ours. */
export declare class Handle {
    #private;
    readonly target: Ref;
    readonly facet: Facet;
    /** Assert *value*, or what the function says, in place of what is asserted: first the new one, then the old one goes. */
    replace(value: Value | (() => Value | null | undefined)): this;
    /** Take it back. */
    retract(): void;
    [DISPOSE](): void;
}
/** A variable that knows who reads it. */
export declare class Field<T> {
    #private;
    constructor(value: T);
    get value(): T;
    set value(value: T);
    /** Call *f* after each turn that has changed it; returns what ends that.  For libraries that draw. */
    subscribe(f: () => void): () => void;
}
/** Assert *value*, or what a function of fields says (`undefined`: nothing), at *target* until the facet stops. */
export declare function assert(target: Ref, value: Value | (() => Value | null | undefined)): Handle;
/** Send the message *value* to *target*. */
export declare function send(target: Ref, value: Value): void;
/** Call *then* once *target* has handled all that was done before. */
export declare function sync(target: Ref, then: () => unknown): void;
/** A promise for that: outside a turn. Rejected when the connection ends before. */
export declare function synced(target: Ref): Promise<void>;
/** A reference to an entity of ours, which lives as long as the facet. */
export declare function ref(entity: Entity): Ref;
/** Call *f* in a facet within the current one; with *signal*, it stops when that is aborted. */
export declare function react(f: () => unknown, { signal }?: {
    signal?: AbortSignal;
}): Facet;
/** Stop *facet*, or the current one. */
export declare function stop(facet?: Facet): void;
/** The facet that runs. */
export declare function currentFacet(): Facet;
/** Call *f* when the current facet stops, or its connection ends. */
export declare function onStop(f: () => unknown): void;
export declare function field<T>(value: T): Field<T>;
/** Call *f* now, and again whenever a field that it has read changes. */
export declare function dataflow(f: () => void): void;
type Handler = (...captures: any[]) => unknown;
/** Call *f* with the captures of each assertion that comes, and of those that are there. */
export declare function onAsserted(ds: Ref, pattern: Pattern, f: Handler): void;
/** Call *f* with the captures of each assertion that goes. */
export declare function onRetracted(ds: Ref, pattern: Pattern, f: Handler): void;
/** Call *f* with the captures of each message. */
export declare function onMessage(ds: Ref, pattern: Pattern, f: Handler): void;
/** Call *f* with the captures of each assertion, in a facet that lives as long as that is there. */
export declare function during(ds: Ref, pattern: Pattern, f: Handler): void;
/** A field with the captures of all that is asserted, a list for each. */
export declare function querySet(ds: Ref, pattern: Pattern): Field<readonly (readonly Value[])[]>;
/** A field with the first capture of what is asserted, the newest if there are several, else *orElse*. */
export declare function queryValue<T>(ds: Ref, pattern: Pattern, orElse: T): Field<Value | T>;
export {};
