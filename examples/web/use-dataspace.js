// Dataspaces in React.  <Dataspace url="ws://127.0.0.1:8080">..</Dataspace> connects for all that is in it; there,
// useMatches(pattern) is what matches, a list of captures for each, and useAssertion(value) asserts while it is shown.
import { createContext, createElement, useContext, useEffect, useState } from "react"
import { assert, connect, currentFacet, dataflow, onStop, querySet, react } from "syndicate-dataspace"

const Connected = createContext(null)

export function Dataspace({ url, cap, children }) {
  const [there, set] = useState(null)
  useEffect(() => {
    const connection = connect(url, cap ? { cap } : {}, (ds) => {
      set({ ds, facet: currentFacet() })
      onStop(() => set(null)) // lost: what was seen is gone until there is another connection
    })
    return () => connection.close()
  }, [url, cap])
  return createElement(Connected.Provider, { value: there }, children)
}

/** Run *boot* in a facet that lasts as long as the component and the connection; *inputs* are what it depends on. */
export function useFacet(boot, inputs) {
  const there = useContext(Connected)
  useEffect(() => {
    const over = new AbortController()
    there?.facet.enter(() => react(() => boot(there.ds), over))
    return () => over.abort()
  }, [there, ...inputs])
}
export function useMatches(pattern) {
  const [rows, set] = useState([])
  useFacet((ds) => {
    const rows = querySet(ds, pattern)
    dataflow(() => set(rows.value))
    onStop(() => set([]))
  }, [pattern])
  return rows
}
export const useAssertion = (value) => useFacet((ds) => assert(ds, value), [value])
