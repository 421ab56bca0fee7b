import { type Value } from "./value.js";
/** What is wrong with a text, and where. */
export declare class TextError extends SyntaxError {
}
/** The value that *text* writes.  Throws `TextError`. */
export declare function parse(text: string): Value;
/** *value* as text.  What a terminal or a page might take for a sign of its own (control, direction) is escaped. */
export declare function show(value: Value): string;
