// A line over time, in SVG.

import type { ComponentChildren } from "preact"
import { figure } from "./text.js"

interface Props {
  readonly values: readonly number[]
  readonly height?: number
  readonly axis?: boolean
  readonly label: string
}

export function Chart({ values, height = 30, axis = false, label }: Props): ComponentChildren {
  const high = Math.max(1e-9, ...values)
  const low = axis ? 0 : Math.min(high, ...values)
  const of = (value: number): number => height - 2 - ((value - low) * (height - 5)) / Math.max(1e-9, high - low)
  const points = values.map((each, i) => `${(i * 300) / Math.max(1, values.length - 1)},${of(each).toFixed(1)}`).join(" ")
  return (
    <div class="chart">
      {axis && <span class="soft top">{figure(high < 1e-6 ? 0 : high)}</span>}
      <svg viewBox={`0 0 300 ${height}`} height={height} preserveAspectRatio="none" role="img" aria-label={`${label}: ${figure(values.at(-1) ?? 0)}`}>
        {values.length > 1 && axis && <polygon points={`0,${height} ${points} 300,${height}`} />}
        {values.length > 1 && <polyline points={points} />}
      </svg>
    </div>
  )
}
