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

/** A number of bytes for people: `1.5 MB`. */
export function bytes(size: number): string {
  const power = size < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(size) / 3))
  return power ? `${(size / 1000 ** power).toFixed(size / 1000 ** power < 10 ? 1 : 0)} ${"kMGT"[power - 1]}B` : `${size} B`
}

/** A number with few digits: `1,234`, `12.3`, `0.012`. */
export function figure(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString("en")
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 4 })
}

/** The label and the fields of a record's text, as texts; null if it is no record, or is cut.
 *
 *     fieldsOf('<Says "ann" [1 2]>')      // ["Says", '"ann"', "[1 2]"]
 */
export function fieldsOf(text: string): string[] | null {
  if (!text.startsWith("<") || !text.endsWith(">") || /<cut \d+>$/.test(text)) return null
  const parts: string[] = []
  let [depth, from, quote] = [0, 1, ""]
  for (let i = 1; i < text.length - 1; i++) {
    const c = text[i]!
    if (quote) {
      if (c === "\\") i++
      else if (c === quote) quote = ""
    } else if (c === '"' || c === "'") quote = c
    else if ("<[{".includes(c)) depth++
    else if (">]}".includes(c)) depth--
    else if (c === " " && depth === 0) {
      if (i > from) parts.push(text.slice(from, i))
      from = i + 1
    }
  }
  if (from < text.length - 1) parts.push(text.slice(from, -1))
  return depth === 0 && !quote ? parts : null
}

/** Where a handler is written, without what everybody knows: `shop.py:3 sell` of `/home/ann/shop.py:3 boot.<locals>.sell`. */
export function brief(place: string): string {
  return place.replace(/(?:[^\s,]*\/)?([^\s,/]+:\d+) (?:[^\s,]*\.)?([^\s,.]+)/g, "$1 $2")
}
