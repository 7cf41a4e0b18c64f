package html

import (
	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// A networkData is a report.Network in the data of a page, by column.
type networkData struct {
	Model   string     `json:"model"`
	Names   []string   `json:"names"`   // of groups
	Tensors []string   `json:"tensors"` // of operations
	Ops     textColumn `json:"ops"`     // operators
	Groups  []int      `json:"groups"`  // group of each operation
	Reads   [][]int    `json:"reads"`   // for each operation, the indices of those whose output it reads
}

// packNetworks returns the graphs of the measured models.
func packNetworks(rows []scores.Row, models []scores.ModelRecord) []networkData {
	var out []networkData
	for _, n := range report.Networks(rows, models) {
		d := networkData{Model: report.Printable(n.Model), Ops: packText(n.Operations, func(o scores.OperationRecord) string { return o.Op })}
		for _, name := range n.Groups {
			d.Names = append(d.Names, report.Printable(name))
		}
		for _, o := range n.Operations {
			d.Tensors, d.Groups, d.Reads = append(d.Tensors, report.Printable(o.Tensor)), append(d.Groups, o.Group), append(d.Reads, o.Reads)
		}
		out = append(out, d)
	}
	return out
}
