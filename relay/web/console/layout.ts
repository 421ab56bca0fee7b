// Places for the boxes of a graph, found in a worker, for that takes some time.

import { Graph, layout } from "@dagrejs/dagre"

export interface Asked {
  readonly nodes: readonly { readonly name: string; readonly width: number; readonly height: number }[]
  readonly edges: readonly (readonly [tail: string, head: string])[]
}
export interface Placed {
  readonly width: number
  readonly height: number
  readonly nodes: readonly (readonly [name: string, x: number, y: number])[]
  readonly edges: readonly (readonly { readonly x: number; readonly y: number }[])[]
}

onmessage = ({ data }: MessageEvent<Asked>): void => {
  const graph = new Graph({ multigraph: true })
  graph.setGraph({ rankdir: "TB", nodesep: 24, ranksep: 44, marginx: 12, marginy: 12 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { name, width, height } of data.nodes) graph.setNode(name, { width, height })
  data.edges.forEach(([tail, head], i) => graph.setEdge(tail, head, {}, String(i)))
  layout(graph)
  const { width = 0, height = 0 } = graph.graph()
  postMessage({
    width, height,
    nodes: data.nodes.map(({ name }) => [name, graph.node(name).x ?? 0, graph.node(name).y ?? 0] as const),
    edges: data.edges.map(([tail, head], i) => graph.edge(tail, head, String(i)).points ?? []),
  } satisfies Placed)
}
