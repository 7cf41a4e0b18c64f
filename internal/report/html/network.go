package html

import (
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// A networkData is a report.Network with the operations as columns.
type networkData struct {
	Model   string     `json:"model"`
	Names   []string   `json:"names"`   // of the groups
	Tensors []string   `json:"tensors"` // of each operation, the name of its output
	Ops     textColumn `json:"ops"`     // of each operation, its ONNX operator
	Groups  []int      `json:"groups"`  // of each operation, the index of its group in Names
	Reads   [][]int    `json:"reads"`   // of each operation, the indices of the operations that it reads from
}

// packNetworks returns the graphs of the measured models.
func packNetworks(rows []scores.Row, models []scores.ModelRecord) []networkData {
	var out []networkData
	for _, n := range report.Networks(rows, models) {
		d := networkData{Model: n.Model, Names: n.Groups, Ops: packText(n.Operations, func(o scores.OperationRecord) string { return o.Op })}
		for _, o := range n.Operations {
			d.Tensors, d.Groups, d.Reads = append(d.Tensors, o.Tensor), append(d.Groups, o.Group), append(d.Reads, o.Reads)
		}
		out = append(out, d)
	}
	return out
}
