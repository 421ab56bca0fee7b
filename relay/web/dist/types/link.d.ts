import { type Facet } from "./facet.js";
import { Ref } from "./value.js";
/** The capability that a server gives out which was started without a key. */
export declare const DEFAULT_CAP = "<ref {oid: \"syndicate\" sig: #x\"69ca300c1dbfa08fba692102dd82311a\"}>";
/** What a connection is: `waiting` for its next attempt, `refused` by the gatekeeper, `crashed` by a handler of ours. */
export type State = "connecting" | "connected" | "waiting" | "refused" | "crashed" | "closed";
export interface Options {
    /** The capability as text.  By default that in the address's fragment (`ws://host/#<ref ..>`), else the public one. */
    cap?: string;
    /** Called at each change of `state`. */
    onState?: (state: State, connection: Connection) => void;
    /** Called with what a handler has thrown, or why the gatekeeper refuses.  By default it is written to the console. */
    onError?: (error: unknown) => void;
    /** Closes the connection when aborted. */
    signal?: AbortSignal;
    /** Bytes that may wait to be sent before messages are dropped, and counted in `dropped`. */
    most?: number;
}
declare const DISPOSE: typeof Symbol.dispose;
/** Call *boot* with the dataspace that the capability stands for, whenever there is a connection to *url*.
 *
 *     const c = connect("ws://127.0.0.1:8001", {}, (ds) => {
 *       assert(ds, Present("ann"))
 *       onMessage(ds, Says(capture(), capture()), (who, what) => show(who, what))
 *     })
 *     c.close()
 *
 *  In a browser *url* begins with `ws:` or `wss:`; in Node also with `tcp:`, `tls:` or `unix:`.
 */
export declare function connect(url: string, options: Options, boot: (ds: Ref) => unknown): Connection;
/** The capability in the address of this page (`#cap=..`), which is taken from there at once, and kept for this tab. */
export declare function capabilityOfPage(): string | undefined;
export declare class Connection {
    #private;
    readonly options: Options;
    readonly boot: (ds: Ref) => unknown;
    state: State;
    /** Why it is not connected, in a line. */
    reason: string;
    /** Messages that were dropped because too much waited. */
    dropped: number;
    readonly url: string;
    /** The facet of the present connection, if there is one: `c.facet?.enter(() => send(..))`. */
    get facet(): Facet | null;
    /** Bytes that wait to be sent. */
    get waiting(): number;
    /** End it; what it has asserted goes at once. */
    close(): void;
    [DISPOSE](): void;
}
export {};
