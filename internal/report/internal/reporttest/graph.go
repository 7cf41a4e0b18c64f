package reporttest

import "github.com/noether-ml/noether/scores"

// Graph returns the operations of a model of the generated run: a convolution before each layer,
// and around every three layers a block with a shortcut. The last two operations are a group of
// their own.
func (f FakeRun) Graph() []scores.OperationRecord {
	var out []scores.OperationRecord
	add := func(tensor, op string, group int, reads ...int) int {
		if reads == nil {
			reads = []int{}
		}
		out = append(out, scores.OperationRecord{Tensor: tensor, Op: op, Group: group, Reads: reads})
		return len(out) - 1
	}
	const each = 3 // layers in a block
	last := add(f.Name("tensor", 0), "Conv", 0)
	for l := 0; l < f.Layers; l += each {
		group, start := 1+l/each, last
		for k := l; k < min(l+each, f.Layers); k++ {
			last = add(f.Name("tensor", 2*k+1), "Conv", group, last)
			last = add(f.Name("layer", k), "Relu", group, last)
		}
		last = add(f.Name("tensor", 2*l+2), "Add", group, start, last)
	}
	head := out[last].Group + 1
	last = add(f.Name("tensor", 2*f.Layers+1), "GlobalAveragePool", head, last)
	add(f.Name("tensor", 2*f.Layers+2), "Gemm", head, last)
	return out
}
