// A recording, with what is asserted at any moment of it: a slider over its time, at the speed at which it happened or faster.

import type { ComponentChildren } from "preact"
import { useEffect, useMemo, useState } from "preact/hooks"
import { Chart } from "./chart.js"
import { type Happened, Moments } from "./events.js"
import { Line } from "./tail.js"
import { brief, clock, figure, visible } from "./text.js"
import { Coloured } from "./value.js"

const SHOWN = 200
const ASSERTED = 500
const BARS = 120
const SPEEDS = [1, 4, 16, 64]

export function Replay({ events, close }: { events: readonly Happened[]; close(): void }): ComponentChildren {
  const [at, setAt] = useState(events.length)
  const [speed, setSpeed] = useState(0)
  const [part, setPart] = useState("")
  const moments = useMemo(() => new Moments(events), [events])
  const [begin, end] = [events[0]?.[0] ?? 0, events.at(-1)?.[0] ?? 0]
  const seconds = Math.max(0.001, end - begin)
  const density = useMemo(() => {
    const bars = Array.from({ length: BARS }, () => 0)
    for (const [time] of events) bars[Math.min(BARS - 1, Math.floor(((time - begin) * BARS) / seconds))]!++
    return bars
  }, [events])
  /** How many events there were until a moment. */
  const until = (time: number): number => {
    let [low, high] = [0, events.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (events[middle]![0] <= time) low = middle + 1
      else high = middle
    }
    return low
  }
  const now = at ? events[at - 1]![0] : begin
  useEffect(() => {
    if (!speed) return
    const [from, since] = [now, performance.now()]
    let frame = 0
    const go = (): void => {
      const time = from + ((performance.now() - since) / 1000) * speed
      setAt(until(time))
      if (time < end) frame = requestAnimationFrame(go)
      else setSpeed(0)
    }
    frame = requestAnimationFrame(go)
    return () => cancelAnimationFrame(frame)
  }, [speed])
  const there = [...moments.after(at)].filter(([text]) => text.includes(part))
  return (
    <>
      <div class="bar">
        <button onClick={close}>back to what happens now</button>
        <button onClick={() => setAt(Math.max(0, at - 1))}>one back</button>
        <button onClick={() => setAt(Math.min(events.length, at + 1))}>one on</button>
        {SPEEDS.map((each) => (
          <button class={speed === each ? "primary" : ""} onClick={() => {
            if (at === events.length && speed !== each) setAt(0)
            setSpeed(speed === each ? 0 : each)
          }}>{speed === each ? "stop" : `× ${each}`}</button>
        ))}
        <span class="count">event {figure(at)} of {figure(events.length)}, {at ? clock(now) : "before all"}</span>
      </div>
      <Chart values={density} height={40} axis label="events" />
      <input class="time" type="range" aria-label="moment" min={0} max={1000} step={1} value={at === 0 ? 0 : Math.round(((now - begin) * 1000) / seconds)}
        onInput={(moved) => (setSpeed(0), setAt(Number(moved.currentTarget.value) === 0 ? 0 : until(begin + (Number(moved.currentTarget.value) * seconds) / 1000)))} />
      <div class="halves">
        <section>
          <h2>Asserted then, of what has come since it began: {figure(there.length)}</h2>
          <div class="bar"><input type="search" placeholder="part of the text" aria-label="filter" value={part} onInput={(typed) => setPart(typed.currentTarget.value)} /></div>
          <div class="list">
            {there.slice(0, ASSERTED).map(([text, copies]) => <div class="text one"><Coloured text={text.slice(0, 300)} />{copies > 1 ? <i class="soft"> {copies} times</i> : ""}</div>)}
            {there.length > ASSERTED && <p class="soft">and {figure(there.length - ASSERTED)} more</p>}
          </div>
        </section>
        <section>
          <h2>Happened until then</h2>
          <div class="list">{events.slice(Math.max(0, at - SHOWN), at).reverse().map((each) => (
            <>
              <Line event={each} />
              {each[3]?.map((why) => <div class="soft because" title={visible(why)}>{visible(`by ${brief(why)}`)}</div>)}
            </>
          ))}</div>
        </section>
      </div>
      {!events.length && <p class="empty">{visible("There is no event.")}</p>}
    </>
  )
}
