package blocks

import (
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// joins returns the indices in p.nodes of the sums and concatenations in which branches with
// weights come together.
func (p *path) joins() []int {
	return onnx.Joins(p.nodes, func(i int) []string { return slices.Collect(maps.Keys(p.reads[i])) },
		func(n *pb.NodeProto) bool { return products[n.GetOpType()] }, "Add", "Sum", "Concat")
}
