// Texts of peers, as they can be shown: nothing in them turns the line around, or hides.

const HIDDEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/** A text with control and bidirectional characters written out.
 *
 *     visible("\u202egnp.exe")      // "\\u202egnp.exe"
 */
export function visible(text: string): string {
  return text.replace(HIDDEN, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`)
}

/** Seconds since 1970 as a time of day here: `12:03:04.5`. */
export function clock(seconds: number): string {
  const date = new Date(seconds * 1000)
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()].map((each) => String(each).padStart(2, "0"))
  return `${parts.join(":")}.${Math.floor(date.getMilliseconds() / 100)}`
}
