// What is known of one thing, beside the page: a value, an event, a step.

import type { ComponentChildren } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"

interface Props {
  readonly title: ComponentChildren
  close(): void
  readonly children: ComponentChildren
}

export function Drawer({ title, close, children }: Props): ComponentChildren {
  const box = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const before = document.activeElement
    const key = (event: KeyboardEvent): void => void (event.key === "Escape" && close())
    addEventListener("keydown", key)
    return () => {
      removeEventListener("keydown", key)
      if (before instanceof HTMLElement) before.focus({ preventScroll: true })
    }
  }, [])
  return (
    <aside class="drawer" ref={box} aria-label="details">
      <header><h2>{title}</h2><button class="small" onClick={close} aria-label="close">close</button></header>
      {children}
    </aside>
  )
}

/** A name and what it is. */
export function Entry({ name, children }: { name: string; children: ComponentChildren }): ComponentChildren {
  return <div class="entry"><span class="soft">{name}</span><div>{children}</div></div>
}
