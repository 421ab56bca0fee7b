// The shared cases, as the JavaScript client plays them: in Node, and in a page.

/** The traces of *cases*, by their names, played with the client *s*.  It uses nothing else from outside, so that a page can be given its text. */
export async function played(s, address, options, cases) {
  const CLASSES = { SignedInteger: "int", String: "str", Double: "float", Boolean: "bool", Symbol: "symbol" }

  /** The pattern that a text means: its holes are symbols. */
  function holes(value) {
    if (value instanceof s.Sym) return value.name === "_" ? s.ANY : value.name.startsWith("$") ? s.capture() : value
    if (value instanceof s.Rec) {
      if (value.label instanceof s.Sym && value.label.name === "$") {
        const [kind] = value.fields
        return s.capture(kind instanceof s.Sym && kind.name in CLASSES ? CLASSES[kind.name] : holes(kind))
      }
      const label = value.label instanceof s.Rec ? null : value.label
      return label === null ? null : new s.Rec(label, value.fields.map(holes))
    }
    if (value instanceof s.Dict) return new s.Dict([...value].map(([k, v]) => [k, holes(v)]))
    return Array.isArray(value) ? value.map(holes) : value
  }

  function play(ds, step, names, log) {
    const verb = Object.keys(step)[0]
    const name = step[verb]
    const note = (mark, captures) => log.push([name, mark, captures.map(s.show)])
    const acts = {
      assert: () => (names[name] = s.assert(ds, s.parse(step.value))),
      replace: () => names[name].replace(s.parse(step.value)),
      retract: () => names[name].retract(),
      send: () => s.send(ds, s.parse(name)),
      react: () => (names[name] = s.react(() => step.steps.forEach((each) => play(ds, each, names, log)))),
      stop: () => s.stop(names[name]),
      onstop: () => s.onStop(() => note("stop", [])),
      all: () => name.forEach((each) => play(ds, each, names, log)),
      observe: () => {
        const pattern = holes(s.parse(step.pattern))
        if (step.how === "asserted") s.onAsserted(ds, pattern, (...c) => note("+", c))
        if (step.how === "retracted") s.onRetracted(ds, pattern, (...c) => note("-", c))
        if (step.how === "message") s.onMessage(ds, pattern, (...c) => note("!", c))
        if (step.how === "during")
          s.during(ds, pattern, (...c) => {
            note("+", c)
            s.onStop(() => note("-", c))
          })
      },
    }
    acts[verb]()
  }

  const traces = {}
  await new Promise((resolve, reject) => {
    const connection = s.connect(address, { ...options, onError: reject }, async (ds) => {
      for (const { name, steps } of cases) {
        const log = []
        const names = {}
        let facet
        await s.synced(ds) // from here on outside of a turn
        connection.facet.enter(() => (facet = s.react(() => {})))
        for (const step of steps) {
          facet.enter(() => play(ds, step, names, log))
          await s.synced(ds)
        }
        traces[name] = [...log]
        facet.stop()
        await s.synced(ds)
      }
      connection.close()
      resolve()
    })
  })
  return traces
}
